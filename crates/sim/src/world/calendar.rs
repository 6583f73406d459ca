use std::cmp::Reverse;
use std::collections::BinaryHeap;
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

/// What is to happen, and when; of one moment, in the order in which it was put down.
#[derive(Default)]
pub(super) struct Calendar {
    heap: BinaryHeap<Reverse<(Time, u64, Next)>>,
    pushed: u64,
}

impl Calendar {
    pub(super) fn push(&mut self, at: Time, what: Next) {
        self.pushed += 1;
        self.heap.push(Reverse((at, self.pushed, what)));
    }

    pub(super) fn pop(&mut self) -> Option<(Time, Next)> {
        self.heap.pop().map(|Reverse((at, _, what))| (at, what))
    }
}
