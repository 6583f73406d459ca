use crate::request::{Request, Stage};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tailbound_clock::{Dur, Time};

/// Sheddable requests in flight, and those whose end was asked for.
#[derive(Debug, Default)]
pub(super) struct Flights {
    /// The least important first, of those the last sent.
    sheddable: BTreeSet<(i32, Reverse<Time>, u32)>,
    /// Asked to end and not ended: when, and which.
    revoked: Vec<(Time, u32)>,
}

/// Most that are asked to end at a time.
const AT_ONCE: usize = 2;
/// How long an end may take to be confirmed before others are asked.
const GRACE: Dur = Dur::from_ms(500);

impl Flights {
    pub(super) fn sent(&mut self, at: Time, index: u32, priority: i32) {
        if priority < 0 {
            self.sheddable.insert((priority, Reverse(at), index));
        }
    }

    pub(super) fn ended(&mut self, at: Time, index: u32, priority: i32) {
        self.sheddable.remove(&(priority, Reverse(at), index));
        self.revoked.retain(|(_, i)| *i != index);
    }

    /// Whom to ask to end, so that some of `waiting` of priority `for_priority` can go.
    pub(super) fn revoke(
        &mut self,
        now: Time,
        for_priority: i32,
        waiting: usize,
        requests: &mut [Request],
        mut ask: impl FnMut(u32),
    ) {
        let pending = self.revoked.iter().filter(|(at, _)| now.since(*at) < GRACE).count();
        for _ in pending..AT_ONCE.min(waiting) {
            let Some(&(priority, at, index)) = self.sheddable.first() else { return };
            if priority >= for_priority {
                return;
            }
            self.sheddable.remove(&(priority, at, index));
            self.revoked.push((now, index));
            if let Stage::Sent(sent) = &mut requests[index as usize].stage {
                sent.evicted = Some(now);
            }
            ask(index);
        }
    }

    /// When the next request that was asked to end will have had its time.
    pub(super) fn next_grace(&self) -> Option<Time> {
        (!self.sheddable.is_empty()).then_some(())?;
        self.revoked.iter().map(|(at, _)| *at + GRACE).min()
    }

    /// Those that took too long no longer hold up others.
    pub(super) fn forgive(&mut self, now: Time) {
        self.revoked.retain(|(at, _)| now.since(*at) < GRACE);
    }
}
