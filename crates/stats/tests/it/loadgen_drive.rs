//! A virtual driver: one heap of (time, number, event), and a system under test that is a rule.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tailbound_clock::{Dur, Time};
use tailbound_stats::loadgen::round::Issue;
use tailbound_stats::loadgen::scenario::{Effect, Event, Test};

/// What will happen to a sample: moments of its first token (if reported) and completion, tokens; `None` loses it.
pub type Fate = Option<(Option<Time>, Time, Option<i64>)>;

/// When, its number (which breaks ties), what, to which sample, with how many tokens.
type Happening = (Time, u64, u8, u64, Option<i64>);

/// Runs a test to its end. `fate` is asked once per sample at the moment of its issue; `late` says when a wake meant for
/// a moment really comes.
pub fn drive(
    test: &mut Test,
    mut fate: impl FnMut(Time, &Issue, u64) -> Fate,
    mut late: impl FnMut(Time) -> Time,
) -> Time {
    let mut heap: BinaryHeap<Reverse<Happening>> = BinaryHeap::new();
    let (mut number, mut now, mut steps) = (0u64, Time(5_000), 0u64);
    let mut out = Vec::new();
    test.on(now, Event::Start, &mut out);
    loop {
        steps += 1;
        assert!(steps < 5_000_000, "the test does not end");
        for effect in std::mem::take(&mut out) {
            match effect {
                Effect::Load(_) => heap.push(Reverse((now + Dur(1000), number, 0, 0, None))),
                Effect::Issue(batch) => {
                    for issue in &batch {
                        for sample in (issue.first_sample..).take(issue.samples.len()) {
                            let Some((first, done, tokens)) = fate(now, issue, sample) else { continue };
                            number += 2;
                            if let Some(first) = first {
                                heap.push(Reverse((first, number, 1, sample, None)));
                            }
                            heap.push(Reverse((done, number + 1, 2, sample, tokens)));
                        }
                    }
                }
                Effect::Flush => {}
                Effect::Finished => return now,
            }
            number += 1;
        }
        let wake = test.next_wake().map(&mut late);
        let event = heap.peek().map(|Reverse((t, ..))| *t);
        match (wake, event) {
            (Some(w), e) if e.is_none_or(|e| w < e) => {
                now = now.max(w);
                test.on(now, Event::Wake, &mut out);
            }
            (_, Some(_)) => {
                let Some(Reverse((at, _, kind, sample, tokens))) = heap.pop() else { return now };
                now = now.max(at);
                let event = match kind {
                    0 => Event::Loaded,
                    1 => Event::FirstToken { sample },
                    _ => Event::Completed { sample, tokens },
                };
                test.on(now, event, &mut out);
            }
            _ => panic!("nothing will ever happen again, and the test has not ended"),
        }
    }
}

/// One server, first come first served, with a fixed service time.
pub fn fifo(service: Dur) -> impl FnMut(Time, &Issue, u64) -> Fate {
    let mut free = Time::ZERO;
    move |now, _, _| {
        free = free.max(now) + service;
        Some((None, free, None))
    }
}
