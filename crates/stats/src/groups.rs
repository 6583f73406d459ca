//! The same rows by group: request classes, clients.

use crate::goodput::verdict;
use crate::summary::RequestCounts;
use crate::{Dist, RunFacts, output_tokens, tpot_ns};
use tailbound_record::Row;

/// What the requests of one group came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// How they ended.
    pub requests: RequestCounts,
    /// Prompt tokens of completed requests, as far as they are known.
    pub input_tokens: u64,
    /// Output tokens of completed requests.
    pub output_tokens: u64,
    /// Time to first token in ns, from the scheduled arrival in an open loop, else from the write.
    pub ttft: Dist,
    /// Time per output token in ns.
    pub tpot: Dist,
    /// End-to-end latency in ns, likewise.
    pub e2e: Dist,
    /// Requests judged by objectives.
    pub judged: usize,
    /// Of those, the ones that met all of theirs.
    pub good: usize,
}

/// Sums up `groups` groups of rows; `of` says which one a row belongs to.
pub fn by_group(rows: &[Row], facts: &RunFacts, groups: usize, of: impl Fn(&Row) -> Option<usize>) -> Vec<Group> {
    let mut tallies: Vec<Tally> = (0..groups).map(|_| Tally::default()).collect();
    for row in rows {
        if let Some(tally) = of(row).and_then(|i| tallies.get_mut(i)) {
            tally.add(row, facts);
        }
    }
    tallies.into_iter().map(Tally::finish).collect()
}

#[derive(Default)]
struct Tally {
    group: Group,
    ttft: Vec<f64>,
    tpot: Vec<f64>,
    e2e: Vec<f64>,
}

impl Tally {
    fn add(&mut self, row: &Row, facts: &RunFacts) {
        let group = &mut self.group;
        group.requests.planned += 1;
        group.requests.count(row);
        if !facts.objectives.is_empty()
            && let Some(good) = verdict(row, facts)
        {
            group.judged += 1;
            group.good += usize::from(good);
        }
        if !row.ok() {
            return;
        }
        group.input_tokens += u64::from(row.prompt_tokens().unwrap_or(0));
        group.output_tokens += u64::from(output_tokens(row).0);
        let (ttft, e2e) = match facts.open_loop() {
            true => (row.ttft_scheduled(), row.e2e_scheduled()),
            false => (row.ttft(), row.e2e()),
        };
        self.ttft.extend(ttft.map(|d| d.ns() as f64));
        self.e2e.extend(e2e.map(|d| d.ns() as f64));
        self.tpot.extend(tpot_ns(row));
    }

    fn finish(self) -> Group {
        Group { ttft: Dist::new(self.ttft), tpot: Dist::new(self.tpot), e2e: Dist::new(self.e2e), ..self.group }
    }
}
