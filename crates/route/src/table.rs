use crate::endpoint::{Endpoint, EndpointId, ROLE_LABEL, Roles};
use crate::load::{Charge, Load};
use crate::names::{Key, Map};
use crate::signals::Signals;
use std::collections::VecDeque;
use tailbound_clock::{Dur, Time};

/// The replicas: who is there, what they last said, what we have sent them.
///
/// Columns by slot, since a pick reads one figure of all replicas rather than all figures of one. A slot is used again
/// after its replica left; `born` tells the two apart.
#[derive(Debug, Default)]
pub(crate) struct Table {
    by_id: Map<EndpointId, u32>,
    /// Slots of the replicas there are, in no order that matters.
    pub(crate) live: Vec<u32>,
    place: Vec<u32>,
    free: Vec<u32>,
    pub(crate) id: Vec<EndpointId>,
    pub(crate) info: Vec<Endpoint>,
    pub(crate) roles: Vec<Roles>,
    /// How often the slot was given out.
    pub(crate) born: Vec<u32>,
    /// Whether it answers its health checks.
    pub(crate) ready: Vec<bool>,
    /// Labels and figures that plugins read, by their place in [`Wanted`].
    wanted: Wanted,
    pub(crate) ranges: Vec<Vec<Option<(u64, u64)>>>,
    pub(crate) attributes: Vec<Vec<f64>>,
    /// When the last signals were true.
    pub(crate) heard: Vec<Option<Time>>,
    pub(crate) waiting: Vec<f64>,
    pub(crate) running: Vec<f64>,
    pub(crate) kv: Vec<f64>,
    /// Waiting, and what we have sent since the signals.
    pub(crate) queue: Vec<f64>,
    /// Running, and what we have sent since: whoever goes by this figure alone would send all to one replica until it speaks again.
    pub(crate) running_now: Vec<f64>,
    /// KV use, and what the requests sent since will use.
    pub(crate) kv_now: Vec<f64>,
    pub(crate) block_size: Vec<Option<u32>>,
    pub(crate) blocks: Vec<Option<u32>>,
    pub(crate) lora: Vec<LoraState>,
    pub(crate) load: Vec<Load>,
    since: Vec<Since>,
    /// When signals were last looked through for old ones.
    aged: Time,
    /// Replicas that don't answer their health checks.
    unready: usize,
    /// Some slot is out of use, or `live` not in order.
    holes: bool,
}

/// What was sent to one replica since its last signals.
#[derive(Debug, Default)]
struct Since {
    /// When, and how many tokens.
    sent: VecDeque<(Time, u64)>,
    tokens: u64,
}

impl Since {
    fn clear(&mut self) {
        self.sent.clear();
        self.tokens = 0;
    }

    fn push(&mut self, sent: Time, tokens: u64) {
        self.sent.push_back((sent, tokens));
        self.tokens += tokens;
    }

    fn forget_until(&mut self, at: Time) {
        while let Some((_, tokens)) = self.sent.front().copied().filter(|(sent, _)| *sent <= at) {
            self.sent.pop_front();
            self.tokens -= tokens;
        }
    }

    fn forget(&mut self, sent: Time, tokens: u64) {
        let first = self.sent.partition_point(|(at, _)| *at < sent);
        let alike = self.sent.iter().skip(first).take_while(|(at, _)| *at == sent);
        let Some(offset) = alike.enumerate().find(|(_, (_, t))| *t == tokens).map(|(i, _)| i) else { return };
        self.sent.remove(first + offset);
        self.tokens -= tokens;
    }
}

/// Labels and figures that configured plugins read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) range_labels: Vec<String>,
    pub(crate) attributes: Vec<String>,
}

impl Wanted {
    pub(crate) fn range(&mut self, label: &str) -> usize {
        place(&mut self.range_labels, label)
    }

    pub(crate) fn attribute(&mut self, name: &str) -> usize {
        place(&mut self.attributes, name)
    }
}

fn place(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|n| n == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

/// The adapters of one replica.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoraState {
    pub(crate) max: u32,
    pub(crate) running: Vec<Key>,
    pub(crate) waiting: Vec<Key>,
}

impl Table {
    pub(crate) fn new(wanted: Wanted) -> Table {
        Table { wanted, ..Table::default() }
    }

    /// Plugins read other labels and figures from now on. What isn't known of the latter comes with the next signals.
    pub(crate) fn want(&mut self, wanted: Wanted) {
        let before = std::mem::replace(&mut self.wanted, wanted);
        let Table { wanted, info, ranges, attributes, .. } = self;
        for (ranges, info) in ranges.iter_mut().zip(info) {
            *ranges = wanted.range_labels.iter().map(|l| info.label(l).and_then(range)).collect();
        }
        for figures in attributes {
            let known = |name: &String| before.attributes.iter().position(|n| n == name).and_then(|i| figures.get(i));
            *figures = wanted.attributes.iter().map(|name| known(name).copied().unwrap_or(f64::NAN)).collect();
        }
    }

    /// Slots there are or have been.
    pub(crate) fn slots(&self) -> usize {
        self.id.len()
    }

    pub(crate) fn slot(&self, id: EndpointId) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// Whether the slot still belongs to who had it when it was given out the `born`-th time.
    pub(crate) fn is(&self, slot: u32, born: u32) -> bool {
        self.born[slot as usize] == born && self.by_id.get(&self.id[slot as usize]) == Some(&slot)
    }

    /// A replica came, or discovery says something new of one: its load and signals stay.
    pub(crate) fn join(&mut self, id: EndpointId, info: &Endpoint) -> u32 {
        let slot = match self.slot(id) {
            Some(slot) => slot,
            None => self.take_slot(id),
        };
        let s = slot as usize;
        self.roles[s] = Roles::of(info.label(ROLE_LABEL));
        self.ranges[s] = self.wanted.range_labels.iter().map(|l| info.label(l).and_then(range)).collect();
        self.info[s] = info.clone();
        slot
    }

    /// A replica is gone. What was in flight on it is no longer anybody's load.
    pub(crate) fn leave(&mut self, id: EndpointId) -> Option<u32> {
        let slot = self.by_id.remove(&id)?;
        let place = self.place[slot as usize] as usize;
        self.live.swap_remove(place);
        if let Some(&moved) = self.live.get(place) {
            self.place[moved as usize] = place as u32;
        }
        self.free.push(slot);
        self.unready -= usize::from(!self.ready[slot as usize]);
        self.holes = !self.live.iter().enumerate().all(|(i, s)| i == *s as usize);
        Some(slot)
    }

    fn take_slot(&mut self, id: EndpointId) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.add_slot(),
        };
        let s = slot as usize;
        self.by_id.insert(id, slot);
        self.id[s] = id;
        self.born[s] += 1;
        self.ready[s] = true;
        self.heard[s] = None;
        self.block_size[s] = None;
        self.blocks[s] = None;
        self.load[s] = Load::default();
        self.since[s].clear();
        self.attributes[s] = vec![f64::NAN; self.wanted.attributes.len()];
        self.lora[s] = LoraState::default();
        for column in self.figures() {
            column[s] = 0.0;
        }
        self.holes |= s != self.live.len();
        self.place[s] = self.live.len() as u32;
        self.live.push(slot);
        slot
    }

    fn add_slot(&mut self) -> u32 {
        self.id.push(EndpointId(0));
        self.info.push(Endpoint::default());
        self.roles.push(Roles::default());
        self.born.push(0);
        self.ready.push(false);
        self.ranges.push(Vec::new());
        self.attributes.push(Vec::new());
        self.heard.push(None);
        for column in self.figures() {
            column.push(0.0);
        }
        self.block_size.push(None);
        self.blocks.push(None);
        self.lora.push(LoraState::default());
        self.load.push(Load::default());
        self.since.push(Since::default());
        self.place.push(0);
        self.id.len() as u32 - 1
    }

    fn figures(&mut self) -> [&mut Vec<f64>; 6] {
        let Table { waiting, running, kv, queue, running_now, kv_now, .. } = self;
        [waiting, running, kv, queue, running_now, kv_now]
    }

    /// A replica passes its health checks, or doesn't.
    pub(crate) fn set_ready(&mut self, slot: u32, ready: bool) {
        let was = std::mem::replace(&mut self.ready[slot as usize], ready);
        self.unready = self.unready + usize::from(was) - usize::from(ready);
    }

    /// Whether all are well.
    pub(crate) fn all_ready(&self) -> bool {
        self.unready == 0
    }

    /// Whether these, which are some of the live ones in their order, are the slots from 0 up.
    pub(crate) fn is_all(&self, candidates: &[u32]) -> bool {
        !self.holes && candidates.len() == self.live.len()
    }

    /// Signals came. Older than what we have: they lost their way, and are ignored.
    pub(crate) fn hear(&mut self, slot: u32, signals: &Signals) {
        let s = slot as usize;
        if self.heard[s].is_some_and(|at| signals.at < at) {
            return;
        }
        self.heard[s] = Some(signals.at);
        self.waiting[s] = f64::from(signals.waiting);
        self.running[s] = f64::from(signals.running);
        self.kv[s] = signals.kv_usage.clamp(0.0, 1.0);
        self.block_size[s] = signals.block_size.filter(|n| *n > 0).or(self.block_size[s]);
        self.blocks[s] = signals.blocks.filter(|n| *n > 0).or(self.blocks[s]);
        if let Some(lora) = &signals.lora {
            let state = &mut self.lora[s];
            state.max = lora.max;
            state.running.clear();
            state.running.extend(lora.running.iter().map(|n| Key::of(n)));
            state.waiting.clear();
            state.waiting.extend(lora.waiting.iter().map(|n| Key::of(n)));
        }
        for (value, name) in self.attributes[s].iter_mut().zip(&self.wanted.attributes) {
            if let Some((_, v)) = signals.attributes.iter().find(|(n, _)| n == name) {
                *value = *v;
            }
        }
        self.since[s].forget_until(signals.at);
        self.credit(s);
    }

    /// A request was sent there.
    pub(crate) fn charge(&mut self, now: Time, slot: u32, charge: &Charge) {
        let s = slot as usize;
        self.load[s].add(charge);
        self.since[s].push(now, charge.kv_tokens);
        self.credit(s);
    }

    /// A request sent at `sent`, with `sent_tokens` then, is over.
    pub(crate) fn discharge(&mut self, slot: u32, charge: &Charge, sent: Time, sent_tokens: u64) {
        let s = slot as usize;
        self.load[s].sub(charge);
        self.since[s].forget(sent, sent_tokens);
        self.credit(s);
    }

    /// Brings what we know of a replica up to what we have sent it since it spoke.
    fn credit(&mut self, s: usize) {
        let sent = self.since[s].sent.len() as f64;
        self.queue[s] = self.waiting[s] + sent;
        self.running_now[s] = self.running[s] + sent;
        self.kv_now[s] = (self.kv[s] + self.share(s, self.since[s].tokens)).min(1.0);
    }

    fn share(&self, s: usize, tokens: u64) -> f64 {
        let capacity = self.blocks[s].zip(self.block_size[s]).map(|(n, size)| f64::from(n) * f64::from(size));
        capacity.map_or(0.0, |c| tokens as f64 / c)
    }

    /// Now and then: where the last signals are older than `limit`, what we have in flight ourselves takes their place, so
    /// that a replica whose metrics stopped at a bad moment isn't shunned for ever.
    pub(crate) fn age(&mut self, now: Time, limit: Dur) {
        if now.since(self.aged) < limit {
            return;
        }
        self.aged = now;
        for i in 0..self.live.len() {
            let s = self.live[i] as usize;
            if self.heard[s].is_some_and(|at| now.since(at) > limit) {
                self.waiting[s] = 0.0;
                self.running[s] = f64::from(self.load[s].requests);
                self.kv[s] = 0.0;
                self.queue[s] = f64::from(self.load[s].requests);
                self.running_now[s] = self.running[s];
                self.kv_now[s] = self.share(s, self.load[s].kv_tokens).min(1.0);
            }
        }
    }

    /// Whether the last signals are older than `limit`, or there never were any.
    pub(crate) fn is_stale(&self, now: Time, slot: u32, limit: Dur) -> bool {
        self.heard[slot as usize].is_none_or(|at| now.since(at) > limit)
    }
}

/// `min-max`.
fn range(text: &str) -> Option<(u64, u64)> {
    let (min, max) = text.split_once('-')?;
    let (min, max) = (min.trim().parse().ok()?, max.trim().parse().ok()?);
    (min <= max).then_some((min, max))
}
