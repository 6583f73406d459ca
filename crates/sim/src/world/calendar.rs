use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tailbound_clock::Time;

/// What is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Next {
    /// A part of the load begins.
    Begin(u32),
    /// A load wants to be woken.
    Load(u32),
    /// A request is due.
    Arrive(u32),
    /// A replica's step ends.
    Engine(u32),
    Router,
    Scrape(u32),
    /// A letter arrives.
    Deliver(u32),
    /// A client leaves.
    Leave(u32),
    /// A change for the worse or the better.
    Fault(u32),
}

/// What is put down in the order in which it will happen, and so needs no sorting.
#[derive(Clone, Copy)]
pub(super) enum Turn {
    Scrapes,
    Signals,
    KvEvents,
}

/// What is to happen, and when; of one moment, in the order in which it was put down.
#[derive(Default)]
pub(super) struct Calendar {
    heap: BinaryHeap<Reverse<(Time, u64, Next)>>,
    /// By [`Turn`].
    turns: [VecDeque<(Time, u64, Next)>; 3],
    pushed: u64,
}

impl Calendar {
    pub(super) fn push(&mut self, at: Time, what: Next) {
        self.pushed += 1;
        self.heap.push(Reverse((at, self.pushed, what)));
    }

    /// The same, for what comes after all of its kind that was put down before.
    pub(super) fn push_in_turn(&mut self, turn: Turn, at: Time, what: Next) {
        self.pushed += 1;
        let list = &mut self.turns[turn as usize];
        debug_assert!(list.back().is_none_or(|(last, ..)| *last <= at));
        list.push_back((at, self.pushed, what));
    }

    pub(super) fn pop(&mut self) -> Option<(Time, Next)> {
        let fronts = self.turns.iter().enumerate().filter_map(|(i, list)| Some((*list.front()?, i)));
        let front = fronts.min();
        let sorted = self.heap.peek().map(|Reverse(next)| *next);
        let (at, _, what) = match front {
            Some((next, i)) if sorted.is_none_or(|sorted| next < sorted) => {
                self.turns[i].pop_front();
                next
            }
            _ => self.heap.pop()?.0,
        };
        Some((at, what))
    }
}
