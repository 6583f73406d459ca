//! Comparisons: what others make of the same samples, and what may and may not be claimed.
#![allow(clippy::unwrap_used, reason = "a test that cannot read its own vectors must fail")]

mod claims;
mod others;

use tailbound_clock::{Seed, Time};
use tailbound_record::{End, Finish, Moment, Row};
use tailbound_stats::RunFacts;

/// Rows sent every 100 ms whose first token came after so many ns, and nine more one each 20 ms.
pub fn rows(ttft: impl IntoIterator<Item = u64>) -> Vec<Row> {
    let row = |(id, ttft): (u64, u64)| {
        let mut row = Row::new(id);
        let sent = Time(id * 100_000_000);
        for moment in [Moment::Scheduled, Moment::Released, Moment::WriteStart, Moment::Written] {
            row.at.set(moment, sent);
        }
        for token in 0..10 {
            let at = Time(sent.ns() + ttft + token * 20_000_000);
            row.chunks.push(at, token as u32, 1, true);
            row.at.set_first(Moment::FirstToken, at);
            row.at.set(Moment::LastToken, at);
        }
        row.end = End::Done(Finish::Length);
        row
    };
    (0..).zip(ttft).map(row).collect()
}

pub fn facts(rows: &[Row]) -> RunFacts {
    let end = rows.iter().filter_map(|r| r.at.get(Moment::LastToken)).max().unwrap();
    RunFacts { request_rate: Some(10.0), ..RunFacts::new(Time::ZERO, end) }
}

/// `n` log-normal lengths around `median` ms.
pub fn lengths(seed: u64, n: usize, median: f64) -> Vec<u64> {
    let mut rng = Seed(seed).stream("lengths");
    (0..n).map(|_| (median * 1e6 * (0.3 * rng.normal()).exp()) as u64).collect()
}
