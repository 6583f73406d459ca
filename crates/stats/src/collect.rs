//! One pass over the rows: each is looked at once, by everything that needs it, while it is in the cache.

use crate::concurrency::Spans;
use crate::peak::TokenEvents;
use crate::summary::{COALESCED_BOUND, Coalesced, RequestCounts, StampMix, Summary, Throughput};
use crate::{
    Concurrency, Dist, Lengths, RunFacts, Steady, Tokens, departure, failures, fluidity, goodput, latency, vllm,
};
use tailbound_clock::{Dur, Time};
use tailbound_record::{Moment, Row, StampSource};

/// Sums up a run. Rows may come in any order.
pub fn summarize(rows: &[Row], facts: &RunFacts) -> Summary {
    let events = rows.iter().filter(|r| r.ok()).map(|r| r.chunks.len()).sum();
    let mut c = Collector {
        requests: RequestCounts { planned: rows.len(), ..RequestCounts::default() },
        tokens: Tokens::default(),
        lengths: Lengths::default(),
        latency: latency::Samples::with_room_for(events),
        goodput: goodput::Judge::new(facts),
        fluidity: fluidity::Collect::new(facts),
        spans: Spans::default(),
        events: TokenEvents::with_room_for(events, facts.start),
        coalesced: Coalesced::default(),
        stamps: StampMix::default(),
        failures: failures::Groups::default(),
        retries: 0,
        queued_ns: 0,
        whole_ns: 0,
        scheduled: Span::NONE,
        sent: Span::NONE,
        vllm: vllm::Tally::new(facts),
    };
    for row in rows {
        c.add(row);
    }
    c.finish(rows, facts)
}

struct Collector<'a> {
    requests: RequestCounts,
    tokens: Tokens,
    lengths: Lengths,
    latency: latency::Samples,
    goodput: Option<goodput::Judge<'a>>,
    fluidity: Option<fluidity::Collect>,
    spans: Spans,
    events: TokenEvents,
    coalesced: Coalesced,
    stamps: StampMix,
    failures: failures::Groups,
    retries: u64,
    queued_ns: u64,
    whole_ns: u64,
    scheduled: Span,
    sent: Span,
    vllm: vllm::Tally<'a>,
}

impl Collector<'_> {
    fn add(&mut self, row: &Row) {
        self.requests.count(row);
        self.latency.add(row);
        if let Some(goodput) = &mut self.goodput {
            goodput.add(row);
        }
        if let Some(fluidity) = &mut self.fluidity {
            fluidity.add(row);
        }
        self.spans.add(row);
        self.failures.add(row);
        self.retries += u64::from(row.net.retries);
        self.scheduled.add(row.at.get(Moment::Scheduled));
        self.sent.add(departure(row));
        if row.ok() {
            self.add_completed(row);
        }
    }

    fn add_completed(&mut self, row: &Row) {
        self.tokens.add(row);
        self.lengths.add(row);
        self.events.add(row);
        self.vllm.add(row);
        stamp(&mut self.stamps, row.stamps);
        share_reads(&mut self.coalesced, row);
        if let Some(whole) = row.e2e_scheduled() {
            self.whole_ns += whole.ns();
            self.queued_ns += row.at.between(Moment::Scheduled, Moment::Released).map_or(0, Dur::ns);
        }
    }

    fn finish(mut self, rows: &[Row], facts: &RunFacts) -> Summary {
        self.events.sort();
        let latency = self.latency.finish();
        let concurrency = Concurrency::of(self.spans, facts);
        let warm = latency.e2e.median().map(|ns| Dur(ns as u64));
        let arrivals = self.sent.ends().zip(self.scheduled.ends()).zip(warm);
        // A run that was stopped has arrivals on its schedule that never came.
        let arrivals = arrivals.map(|((sent, scheduled), warm)| (sent.0 + warm, scheduled.1.min(sent.1)));
        set_blurred_gaps_apart(&mut self.coalesced, rows);
        Summary {
            throughput: Throughput {
                scheduled_per_s: self.scheduled.rate(),
                sent_per_s: self.sent.rate(),
                ..throughput(facts, &self.requests, &self.tokens, &self.events)
            },
            requests: self.requests,
            duration: facts.duration(),
            lengths: self.lengths,
            goodput: self.goodput.map(goodput::Judge::finish),
            fluidity: self.fluidity.and_then(fluidity::Collect::finish),
            steady: Steady::of(rows, facts, &concurrency, arrivals, &self.events),
            coalesced: self.coalesced,
            stamps: self.stamps,
            failures: self.failures.finish(),
            retries: self.retries,
            queued_share: (self.whole_ns > 0).then(|| self.queued_ns as f64 / self.whole_ns as f64),
            vllm: self.vllm.finish(&self.tokens, &self.events),
            tokens: self.tokens,
            latency,
            concurrency,
        }
    }
}

/// First and last of some moments, and how many there were.
struct Span {
    n: u64,
    first: Time,
    last: Time,
}

impl Span {
    const NONE: Span = Span { n: 0, first: Time::MAX, last: Time::ZERO };

    fn add(&mut self, at: Option<Time>) {
        let Some(at) = at else { return };
        self.n += 1;
        self.first = self.first.min(at);
        self.last = self.last.max(at);
    }

    fn ends(&self) -> Option<(Time, Time)> {
        (self.n > 0).then_some((self.first, self.last))
    }

    /// Moments per second from the first to the last.
    fn rate(&self) -> Option<f64> {
        let seconds = self.last.since(self.first).ns() as f64 / 1e9;
        (self.n > 1 && seconds > 0.0).then(|| (self.n - 1) as f64 / seconds)
    }
}

fn throughput(facts: &RunFacts, n: &RequestCounts, tokens: &Tokens, events: &TokenEvents) -> Throughput {
    let seconds = facts.duration().ns() as f64 / 1e9;
    let per_second = |n: u64| (seconds > 0.0).then(|| n as f64 / seconds);
    Throughput {
        requests_per_s: per_second(n.completed as u64),
        input_tokens_per_s: tokens.input.and_then(per_second),
        output_tokens_per_s: per_second(tokens.output),
        total_tokens_per_s: tokens.input.and_then(|input| per_second(input + tokens.output)),
        peak_output_tokens_per_s: events.peak_per_second().map(|n| n as f64),
        ..Throughput::default()
    }
}

fn stamp(mix: &mut StampMix, source: StampSource) {
    match source {
        StampSource::Kernel => mix.kernel += 1,
        StampSource::Mixed => mix.mixed += 1,
        StampSource::User => mix.user += 1,
        StampSource::Virtual => mix.virtual_time += 1,
    }
}

fn share_reads(c: &mut Coalesced, row: &Row) {
    let events = row.chunks.as_slice();
    c.events += events.len().saturating_sub(1) as u64;
    c.shared += row.chunks.coalesced() as u64;
    c.first_tokens += u64::from(events.get(1).is_some_and(|second| second.read == events[0].read));
}

/// Where many events shared a read: the gaps that end in an event alone in its read, and the median gap between reads.
fn set_blurred_gaps_apart(c: &mut Coalesced, rows: &[Row]) {
    if c.share().is_none_or(|share| share <= COALESCED_BOUND) {
        return;
    }
    let (mut clean, mut between_reads) = (Vec::new(), Vec::new());
    for row in rows.iter().filter(|r| r.ok()) {
        let events = row.chunks.as_slice();
        for (i, pair) in events.windows(2).enumerate() {
            if pair[0].read == pair[1].read {
                continue;
            }
            let gap = pair[1].at.since(pair[0].at).ns() as f64;
            between_reads.push(gap);
            if events.get(i + 2).is_none_or(|next| next.read != pair[1].read) {
                clean.push(gap);
            }
        }
    }
    c.median_read_gap = Dist::new(between_reads).median();
    c.clean_gaps = Some(Dist::new(clean));
}
