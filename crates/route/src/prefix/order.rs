use std::collections::VecDeque;

/// Each replica's entries in the order of their last use.
///
/// A use is written at the end of the replica's list and the ones before it stay where they are, told from the last by
/// their turn: that touches one place in memory, where taking an entry out of the middle of a linked list touches four.
/// What is no longer valid is swept out when it is more than half.
#[derive(Debug, Default)]
pub(super) struct Order {
    queues: Vec<Queue>,
    uses: Vec<VecDeque<(u32, u32)>>,
}

/// One replica's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    /// Entries there are.
    pub(super) len: u32,
    /// Entries there may be.
    pub(super) limit: u32,
}

/// Uses that may be out of date whatever the number of entries.
const SLACK: usize = 64;

impl Order {
    pub(super) fn len_of(&self, slot: u32) -> u32 {
        self.queues.get(slot as usize).map_or(0, |q| q.len)
    }

    pub(super) fn queue(&mut self, slot: u32) -> &mut Queue {
        if self.queues.len() <= slot as usize {
            self.queues.resize(slot as usize + 1, Queue::default());
            self.uses.resize_with(slot as usize + 1, VecDeque::new);
        }
        &mut self.queues[slot as usize]
    }

    /// An entry is used for the `turn`-th time. `turn_of`: how often each was.
    pub(super) fn push(&mut self, slot: u32, entry: u32, turn: u32, turn_of: impl Fn(u32) -> u32) {
        let uses = &mut self.uses[slot as usize];
        let most = 2 * self.queues[slot as usize].len as usize + SLACK;
        if uses.len() >= most {
            uses.retain(|(entry, turn)| turn_of(*entry) == *turn);
        }
        // So that only what is new makes it grow.
        if uses.capacity() < most {
            uses.reserve(most - uses.len());
        }
        uses.push_back((entry, turn));
    }

    /// The longest unused.
    pub(super) fn first(&mut self, slot: u32, turn_of: impl Fn(u32) -> u32) -> Option<u32> {
        let uses = self.uses.get_mut(slot as usize)?;
        while let Some((entry, turn)) = uses.pop_front() {
            if turn_of(entry) == turn {
                return Some(entry);
            }
        }
        None
    }
}
