//! Traces made faster, shorter, smaller or larger, without breaking what belongs together.

mod lengths;

use crate::collect::Trace;
use crate::error::Error;
use crate::hash::FixedMap;
use crate::row::{Name, Row};
use tailbound_clock::Seed;

/// What was taken out by [`Trace::cap_gaps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capped {
    /// Gaps that were longer than the cap.
    pub gaps: u64,
    /// Silence taken out of the trace, in nanoseconds.
    pub removed_ns: i64,
}

/// What is sampled as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// All requests of a client.
    Client,
    /// All requests of a session; a request without one stands for itself.
    Session,
}

fn refuse<T>(what: impl Into<String>) -> Result<T, Error> {
    Err(Error::Asked(what.into()))
}

impl Trace {
    /// Stretches time so that the mean rate, (n − 1)/span, is `rps`; the pattern (gap CV, order) stays. Returns the factor by which
    /// it became faster.
    pub fn scale_to_rate(&mut self, rps: f64) -> Result<f64, Error> {
        let (n, span) = (self.times().len(), self.span_ns());
        if n < 2 || span == 0 {
            return refuse("failed to scale the rate: it takes arrivals at two different times");
        }
        if !(rps > 0.0 && rps.is_finite()) {
            return refuse(format!("failed to scale the rate: it must be above zero, not {rps}"));
        }
        let factor = rps * span as f64 / 1e9 / (n - 1) as f64;
        self.speed_up(factor)?;
        Ok(factor)
    }

    /// Divides every time by `factor`. Waits inside sessions are people's, not the trace's: they stay.
    pub fn speed_up(&mut self, factor: f64) -> Result<(), Error> {
        if !(factor > 0.0 && factor.is_finite()) {
            return refuse(format!("failed to change the speed: the factor must be above zero, not {factor}"));
        }
        let faster = |at: i64| libm::round(at as f64 / factor) as i64;
        self.rows.iter_mut().filter_map(|r| r.at.as_mut()).for_each(|at| *at = faster(*at));
        Ok(())
    }

    /// Keeps the arrivals in [from, to) nanoseconds and counts time from the first of them. Rows without a time go too. Returns how
    /// many rows went.
    pub fn window(&mut self, from_ns: i64, to_ns: i64) -> u64 {
        let before = self.rows.len();
        self.rows.retain(|r| r.at.is_some_and(|at| (from_ns..to_ns).contains(&at)));
        self.settle();
        (before - self.rows.len()) as u64
    }

    /// Shortens every gap between successive arrivals to `cap_ns` at most.
    pub fn cap_gaps(&mut self, cap_ns: i64) -> Capped {
        let mut capped = Capped { gaps: 0, removed_ns: 0 };
        let mut before = 0;
        for at in self.rows.iter_mut().filter_map(|r| r.at.as_mut()) {
            let excess = (*at - before - cap_ns.max(0)).max(0);
            before = *at;
            capped.gaps += u64::from(excess > 0);
            capped.removed_ns += excess;
            *at -= capped.removed_ns;
        }
        capped
    }

    /// Keeps about `share` of the clients or sessions, each wholly or not at all. Which ones depends on the seed and their names
    /// alone. Returns how many rows went.
    pub fn sample(&mut self, unit: Unit, share: f64, seed: Seed) -> Result<u64, Error> {
        if !(0.0..=1.0).contains(&share) {
            return refuse(format!("failed to sample: a share lies between 0 and 1, not {share}"));
        }
        if unit == Unit::Client && self.rows.iter().all(|r| r.client.is_none()) {
            return refuse("failed to sample by client: the trace names none");
        }
        let before = self.rows.len();
        let mut lone = seed.stream("sample.lone");
        let mut chosen: FixedMap<Name, bool> = FixedMap::default();
        let names = &self.names;
        self.rows.retain(|row| {
            let name = if unit == Unit::Client { row.client } else { row.session };
            match name {
                None => lone.unit() < share,
                Some(name) => *chosen.entry(name).or_insert_with(|| seed.stream(names.text(name)).unit() < share),
            }
        });
        self.settle();
        Ok((before - self.rows.len()) as u64)
    }

    /// The part of the trace that worker `index` of `count` sends: sessions whole, other rows in turn. Times stay those of the whole.
    pub fn shard(&self, index: u32, count: u32) -> Trace {
        let count = count.max(1) as usize;
        let own = |(i, row): (usize, &Row)| {
            let part = row.session.map_or(i, Name::index) % count;
            (part == index as usize).then(|| row.clone())
        };
        let rows = self.rows.iter().enumerate().filter_map(own).collect();
        Trace { rows, ..self.clone_without_rows() }
    }

    fn clone_without_rows(&self) -> Trace {
        Trace {
            rows: Vec::new(),
            names: self.names.clone(),
            origin_ns: self.origin_ns,
            clock: self.clock,
            block_tokens: self.block_tokens,
            accounting: self.accounting.clone(),
            format: self.format,
        }
    }

    /// Exactly `n` rows: the first n, or the trace over and over, each repetition a mean gap after the one before, its sessions
    /// new ones.
    pub fn take_exactly(&mut self, n: usize) -> Result<(), Error> {
        let whole = self.rows.len();
        if whole == 0 && n > 0 {
            return refuse(format!("failed to take {n} rows: there are none"));
        }
        let timed = self.times().len().max(2) as i64;
        let period = self.span_ns() + self.span_ns() / (timed - 1);
        self.rows.truncate(n);
        for i in whole..n {
            let (copy, mut row) = (i / whole, self.rows[i % whole].clone());
            row.at = row.at.map(|at| at + period * copy as i64);
            row.session = row.session.map(|s| {
                let name = format!("{}+{copy}", self.names.text(s));
                self.names.intern(&name)
            });
            self.rows.push(row);
        }
        self.settle();
        Ok(())
    }

    /// Several traces at once, each from its own beginning. Sessions, clients and block ids of different traces stay different.
    pub fn merge(traces: Vec<Trace>) -> Result<Trace, Error> {
        let mut sizes = traces.iter().filter_map(|t| t.block_tokens);
        let block_tokens = sizes.next();
        if let Some(other) = sizes.find(|s| Some(*s) != block_tokens) {
            let one = block_tokens.unwrap_or_default();
            return refuse(format!("failed to merge: one trace has blocks of {one} tokens, another of {other}"));
        }
        let mut merged = Trace::of_rows(Vec::new(), crate::row::Names::default(), block_tokens);
        for (i, trace) in traces.into_iter().enumerate() {
            let Trace { rows, names, accounting, .. } = trace;
            let account = &mut merged.accounting;
            account.records += accounting.records;
            account.rows_read += accounting.rows_read;
            account.rows_emitted += accounting.rows_emitted;
            for (why, seen) in accounting.dropped {
                account.dropped.entry(why).and_modify(|s| s.count += seen.count).or_insert(seen);
            }
            for mut row in rows {
                let mut own = |n: Option<Name>| n.map(|n| merged.names.intern(&format!("{i}:{}", names.text(n))));
                row.session = own(row.session);
                row.client = own(row.client);
                if let Some(more) = &mut row.more {
                    more.id = own(more.id);
                    more.parent = own(more.parent);
                    let salt = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    more.blocks.iter_mut().flatten().for_each(|id| *id ^= salt);
                }
                let mut shared = |n: Option<Name>| n.map(|n| merged.names.intern(names.text(n)));
                row.model = shared(row.model);
                row.class = shared(row.class);
                merged.rows.push(row);
            }
        }
        merged.clock = crate::row::Clock::Offset;
        merged.settle();
        Ok(merged)
    }
}
