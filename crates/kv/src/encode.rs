//! KV events written as vLLM writes them.

use crate::vllm::{Batch, Event, Removed, Stored};

/// How vLLM of some version writes a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Batch and events as arrays, told apart by place (2025).
    Arrays,
    /// The batch as an array, each event as a map with its type (0.33).
    #[default]
    Events,
    /// Both as maps.
    Maps,
}

/// The payload of one message.
pub fn encode(batch: &Batch, encoding: Encoding) -> Vec<u8> {
    let mut w = Writer(Vec::new());
    let rank = batch.dp_rank.map(u64::from);
    if encoding == Encoding::Maps {
        w.map(2 + usize::from(rank.is_some()));
        w.str("ts");
        w.float(batch.ts);
        w.str("events");
        events(&mut w, batch, encoding);
        if let Some(rank) = rank {
            w.str("data_parallel_rank");
            w.uint(rank);
        }
        return w.0;
    }
    w.array(3);
    w.float(batch.ts);
    events(&mut w, batch, encoding);
    w.maybe(rank, Writer::uint);
    w.0
}

/// What isn't known of an event can't be written: it is left out.
fn events(w: &mut Writer, batch: &Batch, encoding: Encoding) {
    let known: Vec<&Event> = batch.events.iter().filter(|e| **e != Event::Unknown).collect();
    w.array(known.len());
    for event in known {
        match event {
            Event::Stored(s) => w.event(encoding, "BlockStored", &STORED, |w, name| stored(w, s, name)),
            Event::Removed(r) => w.event(encoding, "BlockRemoved", &REMOVED, |w, name| removed(w, r, name)),
            Event::Cleared | Event::Unknown => w.event(encoding, "AllBlocksCleared", &[], |_, _| ()),
        }
    }
}

const STORED: [&str; 10] = [
    "block_hashes",
    "parent_block_hash",
    "token_ids",
    "block_size",
    "lora_id",
    "medium",
    "lora_name",
    "extra_keys",
    "group_idx",
    "kv_cache_spec_kind",
];
const REMOVED: [&str; 3] = ["block_hashes", "medium", "group_idx"];

fn stored(w: &mut Writer, s: &Stored, name: &str) {
    match name {
        "block_hashes" => w.list(&s.hashes, |w, hash| w.uint(*hash)),
        "parent_block_hash" => w.maybe(s.parent, Writer::uint),
        "token_ids" => w.list(&s.tokens, |w, token| w.uint(u64::from(*token))),
        "block_size" => w.uint(u64::from(s.block_size)),
        "lora_id" => w.maybe(s.lora_id, Writer::int),
        "medium" => w.maybe(s.medium.as_deref(), Writer::str),
        "lora_name" => w.maybe(s.lora_name.as_deref(), Writer::str),
        "extra_keys" if s.extra_keys.is_empty() => w.nil(),
        "extra_keys" => w.list(&s.extra_keys, |w, keys| match keys.is_empty() {
            true => w.nil(),
            false => w.list(keys, |w, key| w.str(key)),
        }),
        "group_idx" => w.maybe(s.group.map(u64::from), Writer::uint),
        // Of one kind of cache only, as is ours.
        _ => w.maybe(s.group.map(|_| "full_attention"), Writer::str),
    }
}

fn removed(w: &mut Writer, r: &Removed, name: &str) {
    match name {
        "block_hashes" => w.list(&r.hashes, |w, hash| w.uint(*hash)),
        "medium" => w.maybe(r.medium.as_deref(), Writer::str),
        _ => w.maybe(r.group.map(u64::from), Writer::uint),
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn event(&mut self, encoding: Encoding, kind: &str, names: &[&str], mut field: impl FnMut(&mut Writer, &str)) {
        if encoding == Encoding::Arrays {
            self.array(1 + names.len());
            self.str(kind);
            names.iter().for_each(|name| field(self, name));
            return;
        }
        self.map(1 + names.len());
        self.str("type");
        self.str(kind);
        for name in names {
            self.str(name);
            field(self, name);
        }
    }

    fn maybe<T>(&mut self, value: Option<T>, mut write: impl FnMut(&mut Writer, T)) {
        match value {
            Some(value) => write(self, value),
            None => self.nil(),
        }
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Writer, &T)) {
        self.array(items.len());
        items.iter().for_each(|item| write(self, item));
    }

    fn nil(&mut self) {
        self.0.push(0xc0);
    }

    fn float(&mut self, x: f64) {
        self.0.push(0xcb);
        self.0.extend(x.to_bits().to_be_bytes());
    }

    fn uint(&mut self, n: u64) {
        match n {
            0..=0x7f => self.0.push(n as u8),
            0x80..=0xff => self.0.extend([0xcc, n as u8]),
            0x100..=0xffff => self.tagged(0xcd, &(n as u16).to_be_bytes()),
            0x1_0000..=0xffff_ffff => self.tagged(0xce, &(n as u32).to_be_bytes()),
            _ => self.tagged(0xcf, &n.to_be_bytes()),
        }
    }

    fn int(&mut self, n: i64) {
        match u64::try_from(n) {
            Ok(n) => self.uint(n),
            Err(_) => self.tagged(0xd3, &n.to_be_bytes()),
        }
    }

    fn str(&mut self, text: &str) {
        match text.len() {
            n @ 0..=31 => self.0.push(0xa0 | n as u8),
            n @ 32..=255 => self.0.extend([0xd9, n as u8]),
            n => self.tagged(0xdb, &(n as u32).to_be_bytes()),
        }
        self.0.extend_from_slice(text.as_bytes());
    }

    fn array(&mut self, n: usize) {
        match n {
            0..=15 => self.0.push(0x90 | n as u8),
            16..=0xffff => self.tagged(0xdc, &(n as u16).to_be_bytes()),
            _ => self.tagged(0xdd, &(n as u32).to_be_bytes()),
        }
    }

    fn map(&mut self, n: usize) {
        debug_assert!(n <= 15, "no event has more fields");
        self.0.push(0x80 | n as u8);
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.0.push(tag);
        self.0.extend_from_slice(bytes);
    }
}
