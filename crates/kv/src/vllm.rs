//! KV events as vLLM publishes them: MessagePack, in older versions as arrays, in newer ones as maps.

use crate::Log;
use crate::msgpack::{Head, Reader};

/// One message: the events of one step, and when it was.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Batch {
    /// Seconds since 1970, by the engine's clock.
    pub ts: f64,
    /// In the order of the changes.
    pub events: Vec<Event>,
    /// Of which data-parallel rank.
    pub dp_rank: Option<u32>,
}

/// A change of what an engine has cached.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Event {
    /// Blocks became findable.
    Stored(Stored),
    /// Blocks were evicted from a medium.
    Removed(Removed),
    /// Everything was forgotten.
    Cleared,
    /// An event of a kind that this version doesn't know.
    Unknown,
}

/// `BlockStored`: a run of blocks, each the child of the one before.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Stored {
    /// The engine's names of them. Of longer names the last eight bytes.
    pub hashes: Vec<u64>,
    /// Whose child the first one is; `None` at the start of a prompt.
    pub parent: Option<u64>,
    /// Their tokens, `block_size` for each.
    pub tokens: Vec<u32>,
    /// Tokens in a block.
    pub block_size: u32,
    /// The adapter's number.
    pub lora_id: Option<i64>,
    /// The adapter's name.
    pub lora_name: Option<String>,
    /// Where they are: `GPU`, `CPU`, …
    pub medium: Option<String>,
    /// Per block, what else went into its hash: adapter, media as `(name,offset)`, salt.
    pub extra_keys: Vec<Vec<String>>,
    /// Of models with several kinds of cache, which.
    pub group: Option<u32>,
}

/// `BlockRemoved`.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Removed {
    /// The engine's names of the blocks.
    pub hashes: Vec<u64>,
    /// Where they no longer are.
    pub medium: Option<String>,
    /// Of models with several kinds of cache, which.
    pub group: Option<u32>,
}

/// Bytes that aren't a batch of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a batch of KV events: {0}")]
pub struct NotEvents(&'static str);

/// The changes of a step as vLLM would tell them: blocks whose parents chain are one event.
pub fn of_log(log: &Log) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for event in log.events() {
        match event {
            crate::Event::Stored(s) => {
                let tokens = log.tokens(s).unwrap_or(&[]);
                let parent = s.parent.map(|p| p.get());
                match events.last_mut() {
                    Some(Event::Stored(run)) if parent.is_some() && run.hashes.last() == parent.as_ref() => {
                        run.hashes.push(s.hash.get());
                        run.tokens.extend_from_slice(tokens);
                    }
                    _ => events.push(Event::Stored(Stored {
                        hashes: vec![s.hash.get()],
                        parent,
                        tokens: tokens.to_vec(),
                        block_size: log.block_size(),
                        ..Stored::default()
                    })),
                }
            }
            crate::Event::Removed { hash } => match events.last_mut() {
                Some(Event::Removed(run)) => run.hashes.push(hash.get()),
                _ => events.push(Event::Removed(Removed { hashes: vec![hash.get()], ..Removed::default() })),
            },
            crate::Event::Cleared => events.push(Event::Cleared),
        }
    }
    events
}

/// Reads the payload of one message, in either encoding.
pub fn decode(payload: &[u8]) -> Result<Batch, NotEvents> {
    let mut r = Reader::new(payload);
    let batch = match r.head() {
        Some(Head::Array(n)) => array_batch(&mut r, n),
        Some(Head::Map(n)) => map_batch(&mut r, n),
        _ => return Err(NotEvents("neither an array nor a map")),
    };
    let batch = batch.ok_or(NotEvents("cut off, or of another shape"))?;
    if !r.is_empty() {
        return Err(NotEvents("followed by something else"));
    }
    Ok(batch)
}

fn array_batch(r: &mut Reader, n: usize) -> Option<Batch> {
    if n < 2 {
        return None;
    }
    let mut batch = Batch { ts: number(r.head()?)?, ..Batch::default() };
    batch.events = events(r)?;
    for i in 2..n {
        let head = r.head()?;
        match (i, head) {
            (2, Head::Uint(rank)) => batch.dp_rank = u32::try_from(rank).ok(),
            (_, other) => r.skip(other)?,
        }
    }
    Some(batch)
}

fn map_batch(r: &mut Reader, n: usize) -> Option<Batch> {
    let mut batch = Batch::default();
    for _ in 0..n {
        let Head::Str(key) = r.head()? else { return None };
        match key {
            "ts" => batch.ts = number(r.head()?)?,
            "events" => batch.events = events(r)?,
            "data_parallel_rank" => batch.dp_rank = uint(r)?.and_then(|n| u32::try_from(n).ok()),
            _ => {
                let head = r.head()?;
                r.skip(head)?;
            }
        }
    }
    Some(batch)
}

fn events(r: &mut Reader) -> Option<Vec<Event>> {
    let Head::Array(n) = r.head()? else { return None };
    (0..n)
        .map(|_| match r.head()? {
            Head::Array(n) => array_event(r, n),
            Head::Map(n) => map_event(r, n),
            _ => None,
        })
        .collect()
}

/// Names of the fields in the order of the arrays.
const STORED: &[&str] = &[
    "block_hashes",
    "parent_block_hash",
    "token_ids",
    "block_size",
    "lora_id",
    "medium",
    "lora_name",
    "extra_keys",
    "group_idx",
];
const REMOVED: &[&str] = &["block_hashes", "medium", "group_idx"];

fn array_event(r: &mut Reader, n: usize) -> Option<Event> {
    let Head::Str(kind) = r.head()? else { return None };
    let names = match kind {
        "BlockStored" => STORED,
        "BlockRemoved" => REMOVED,
        _ => &[],
    };
    let mut fields = Fields::default();
    for i in 1..n {
        fields.read(r, names.get(i - 1).copied().unwrap_or(""))?;
    }
    fields.event(kind)
}

/// The type may stand anywhere among the fields.
fn map_event(r: &mut Reader, n: usize) -> Option<Event> {
    let mut fields = Fields::default();
    let mut kind = None;
    for _ in 0..n {
        let Head::Str(key) = r.head()? else { return None };
        if key == "type" {
            let Head::Str(name) = r.head()? else { return None };
            kind = Some(name);
        } else {
            fields.read(r, key)?;
        }
    }
    fields.event(kind?)
}

#[derive(Default)]
struct Fields {
    stored: Stored,
}

impl Fields {
    fn read(&mut self, r: &mut Reader, name: &str) -> Option<()> {
        let s = &mut self.stored;
        match name {
            "block_hashes" => s.hashes = list(r, |r| hash(r)?)?,
            "parent_block_hash" => s.parent = hash(r)?,
            "token_ids" => s.tokens = list(r, |r| u32::try_from(uint(r)??).ok())?,
            "block_size" => s.block_size = u32::try_from(uint(r)??).ok()?,
            "lora_id" => s.lora_id = int(r)?,
            "medium" => s.medium = text(r)?,
            "lora_name" => s.lora_name = text(r)?,
            "extra_keys" => s.extra_keys = extra_keys(r)?,
            "group_idx" => s.group = uint(r)?.and_then(|n| u32::try_from(n).ok()),
            _ => {
                let head = r.head()?;
                r.skip(head)?;
            }
        }
        Some(())
    }

    fn event(self, kind: &str) -> Option<Event> {
        let s = self.stored;
        Some(match kind {
            "BlockStored" if s.block_size == 0 => return None,
            "BlockStored" => Event::Stored(s),
            "BlockRemoved" => Event::Removed(Removed { hashes: s.hashes, medium: s.medium, group: s.group }),
            "AllBlocksCleared" => Event::Cleared,
            _ => Event::Unknown,
        })
    }
}

fn list<'a, T>(r: &mut Reader<'a>, mut one: impl FnMut(&mut Reader<'a>) -> Option<T>) -> Option<Vec<T>> {
    match r.head()? {
        Head::Array(n) => (0..n).map(|_| one(r)).collect(),
        Head::Nil => Some(Vec::new()),
        _ => None,
    }
}

/// An integer of either sign as its 64 bits, or the last eight of some bytes.
fn hash(r: &mut Reader) -> Option<Option<u64>> {
    Some(match r.head()? {
        Head::Nil => None,
        Head::Uint(n) => Some(n),
        Head::Int(n) => Some(n as u64),
        Head::Bin(bytes) => {
            let last = bytes.len().checked_sub(8)?;
            Some(bytes[last..].iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
        }
        _ => return None,
    })
}

/// Per block a list, or nothing; what is in it is told apart as text only.
fn extra_keys(r: &mut Reader) -> Option<Vec<Vec<String>>> {
    list(r, |r| list(r, written))
}

fn written(r: &mut Reader) -> Option<String> {
    Some(match r.head()? {
        Head::Str(text) => text.to_owned(),
        Head::Uint(n) => n.to_string(),
        Head::Int(n) => n.to_string(),
        Head::Bin(bytes) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
        Head::Array(n) => format!("({})", (0..n).map(|_| written(r)).collect::<Option<Vec<_>>>()?.join(",")),
        head => {
            r.skip(head)?;
            String::new()
        }
    })
}

fn number(head: Head) -> Option<f64> {
    Some(match head {
        Head::Float(x) => x,
        Head::Uint(n) => n as f64,
        Head::Int(n) => n as f64,
        _ => return None,
    })
}

fn uint(r: &mut Reader) -> Option<Option<u64>> {
    match r.head()? {
        Head::Nil => Some(None),
        Head::Uint(n) => Some(Some(n)),
        _ => None,
    }
}

fn int(r: &mut Reader) -> Option<Option<i64>> {
    match r.head()? {
        Head::Nil => Some(None),
        Head::Uint(n) => Some(i64::try_from(n).ok()),
        Head::Int(n) => Some(Some(n)),
        _ => None,
    }
}

fn text(r: &mut Reader) -> Option<Option<String>> {
    match r.head()? {
        Head::Nil => Some(None),
        Head::Str(text) => Some(Some(text.to_owned())),
        _ => None,
    }
}
