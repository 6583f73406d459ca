use super::chain::{HashInput, Hashing, hash_chain};
use super::matches::Matches;
use crate::names::Map;
use crate::request::Arrival;
use std::collections::VecDeque;
use tailbound_clock::{Dur, Time};

/// Equal prompts that come in a burst go together, before any cache could know of them.
///
/// The published producer holds every request for the length of its window to see who comes; this one never waits: the
/// first of a burst goes where the other scorers send it, and those after it follow.
#[derive(Debug)]
pub(crate) struct Burst {
    config: BurstConfig,
    groups: Map<u64, Group>,
    /// In the order in which they began.
    begun: VecDeque<(Time, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BurstConfig {
    pub(crate) window: Dur,
    /// Most of one group at one replica.
    pub(crate) per_replica: Option<u32>,
    pub(crate) block_tokens: u32,
    pub(crate) most_blocks: usize,
    /// Prompts that share so many blocks belong together too.
    pub(crate) colocate: usize,
    pub(crate) most_groups: usize,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    began: Time,
    slot: u32,
    sent: u32,
}

impl Burst {
    pub(crate) fn new(config: BurstConfig) -> Burst {
        Burst { config, groups: Map::default(), begun: VecDeque::new() }
    }

    pub(crate) fn chain(&self, model: &str, arrival: &Arrival, out: &mut Vec<u64>) {
        let how = Hashing {
            input: HashInput::Tokens,
            block_tokens: self.config.block_tokens,
            most_blocks: self.config.most_blocks,
        };
        hash_chain(&how, model, arrival.salt, arrival.prompt, out);
    }

    pub(crate) fn find(&self, now: Time, chain: &[u64], slots: usize, out: &mut Matches) {
        out.begin(slots, chain.len(), self.config.block_tokens);
        let found = self.keys(chain).find_map(|key| self.groups.get(&key));
        let Some(group) = found.filter(|g| now.since(g.began) <= self.config.window) else { return };
        if self.config.per_replica.is_none_or(|most| group.sent < most) && (group.slot as usize) < slots {
            out.set(group.slot, chain.len() as u32);
        }
    }

    pub(crate) fn sent(&mut self, now: Time, slot: u32, chain: &[u64]) {
        self.expire(now);
        let room = self.config.most_groups;
        for key in self.keys(chain) {
            let full = self.groups.len() >= room;
            match self.groups.get_mut(&key) {
                Some(group) if group.slot == slot => group.sent += 1,
                Some(group) => *group = Group { slot, sent: 1, ..*group },
                None if !full => {
                    self.groups.insert(key, Group { began: now, slot, sent: 1 });
                    self.begun.push_back((now, key));
                }
                None => {}
            }
        }
    }

    pub(crate) fn left(&mut self, slot: u32) {
        self.groups.retain(|_, group| group.slot != slot);
        let groups = &self.groups;
        self.begun.retain(|(_, key)| groups.contains_key(key));
    }

    fn expire(&mut self, now: Time) {
        while let Some((began, key)) = self.begun.front().copied().filter(|(t, _)| now.since(*t) > self.config.window) {
            debug_assert!(self.groups.get(&key).is_none_or(|g| g.began == began));
            self.groups.remove(&key);
            self.begun.pop_front();
        }
    }

    /// What a prompt is known by: the whole of it, and its first blocks.
    fn keys(&self, chain: &[u64]) -> impl Iterator<Item = u64> + use<> {
        let whole = chain.last().copied();
        let first = self.config.colocate.checked_sub(1).and_then(|i| chain.get(i).copied());
        whole.into_iter().chain(first.filter(|f| Some(*f) != whole))
    }
}
