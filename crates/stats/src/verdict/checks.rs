//! The checks, one function each, in the order in which their reasons are printed.

use super::words::{ms, percent, signed_percent};
use super::{Bounds, ClientHealth, Code, Reason};
use crate::lengths::Pair;
use crate::{Dist, RunFacts, Summary, TokenSource};

pub(super) struct Case<'a> {
    pub summary: &'a Summary,
    pub facts: &'a RunFacts,
    pub health: &'a ClientHealth,
    pub bounds: &'a Bounds,
}

/// What a finding counts against.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Against {
    /// The whole run: it is INVALID.
    Run,
    /// A number: a caution is printed beside it.
    Number,
}

type Findings = Vec<(Against, Reason)>;

pub(super) const ALL: [fn(&Case<'_>) -> Findings; 14] = [
    nothing_completed,
    sends_late,
    cap_shaped,
    rate_short,
    local_limit,
    saturated,
    shared_reads,
    noise,
    server_errors,
    lengths,
    token_counts,
    backlog,
    few_samples,
    conditions,
];

fn nothing_completed(case: &Case<'_>) -> Findings {
    let n = &case.summary.requests;
    if n.completed > 0 {
        return Vec::new();
    }
    let sentence = match case.summary.failures.first() {
        Some(group) => format!("none of {} requests completed; most often: {}", n.planned, group.cause),
        None => format!("none of {} requests completed", n.planned),
    };
    let figures = vec![("planned", n.planned as f64), ("failed", n.failed as f64)];
    against_run(
        Code::NothingCompleted,
        sentence,
        figures,
        "see the failures listed; `tailbound doctor URL` checks a server",
    )
}

fn sends_late(case: &Case<'_>) -> Findings {
    let Some((p99, max)) = case.lateness() else { return Vec::new() };
    let bound = case.bound_ns();
    if p99 <= bound {
        return Vec::new();
    }
    let sentence = format!(
        "sends left up to {} late (p99 {}, bound {}): this client is the bottleneck",
        ms(max),
        ms(p99),
        ms(bound)
    );
    let figures = vec![("lateness_p99_ms", p99 * 1e-6), ("lateness_max_ms", max * 1e-6), ("bound_ms", bound * 1e-6)];
    let known = case.health.calibrated_lateness_p99_ns.filter(|known| *known > bound);
    let mend = match known {
        Some(known) => format!(
            "this machine is calibrated to a lateness p99 of {} at this load; lower the rate or use a faster one",
            ms(known)
        ),
        None => "lower the rate, free a core for the client, or allow --realtime".to_owned(),
    };
    against_run(Code::SendsLate, sentence, figures, &mend)
}

fn cap_shaped(case: &Case<'_>) -> Findings {
    let Some(share) = case.held_back() else { return Vec::new() };
    let cap = case.facts.max_concurrency.unwrap_or(0);
    let queue = &case.summary.latency.client_queue;
    let longest = queue.max().unwrap_or(0.0);
    let mut sentence = format!(
        "the cap of {cap} held back {} of an open-loop run's requests, by up to {}",
        percent(share),
        ms(longest)
    );
    let mut figures = vec![("held_back_share", share), ("queue_max_ms", longest * 1e-6)];
    if let Some((asked, sent)) = case.rates() {
        sentence += &format!("; {asked:.2} req/s asked, {sent:.2} sent");
        figures.extend([("asked_per_s", asked), ("sent_per_s", sent)]);
    }
    against_run(
        Code::CapShaped,
        sentence,
        figures,
        "drop --max-concurrency to let the rate rule, or --request-rate for a closed loop at that concurrency",
    )
}

fn rate_short(case: &Case<'_>) -> Findings {
    // Where the cap held requests back, that is the reason, and given above.
    if case.held_back().is_some() {
        return Vec::new();
    }
    let Some((asked, sent)) = case.rates() else { return Vec::new() };
    // Over a handful of requests a jitter within the bound on lateness is a large share of a rate.
    let slip_ns = (case.summary.requests.planned - 1) as f64 * (1.0 / sent - 1.0 / asked) * 1e9;
    if sent >= asked * case.bounds.rate_share || slip_ns <= case.bound_ns() {
        return Vec::new();
    }
    let sentence =
        format!("{asked:.2} req/s asked, {sent:.2} sent ({}): this client could not keep up", percent(sent / asked));
    against_run(
        Code::RateShort,
        sentence,
        vec![("asked_per_s", asked), ("sent_per_s", sent)],
        "lower the rate, give the client more cores, or spread the load over several machines",
    )
}

fn local_limit(case: &Case<'_>) -> Findings {
    let n = case.summary.requests.local_limit;
    let what = match (case.health.fd_limit_hit, case.health.port_limit_hit) {
        (Some(true), _) => "open files",
        (_, Some(true)) => "local ports",
        _ if n > 0 => "files, ports or memory",
        _ => return Vec::new(),
    };
    let sentence = format!("this machine ran out of {what}; {n} requests failed for it");
    against_run(
        Code::LocalLimit,
        sentence,
        vec![("failed_for_it", n as f64)],
        "raise `ulimit -n` or net.ipv4.ip_local_port_range, or cap the concurrency",
    )
}

fn saturated(case: &Case<'_>) -> Findings {
    let Some(share) = case.health.cpu_share.filter(|share| *share >= 0.8) else { return Vec::new() };
    let beyond = share >= case.bounds.cpu_share;
    let sentence = format!("the client's threads were busy {} of the time", percent(share));
    let mend = "give the client more cores or threads, or lower the load";
    finding(against(beyond), Code::ClientSaturated, sentence, vec![("cpu_share", share)], mend)
}

fn shared_reads(case: &Case<'_>) -> Findings {
    let coalesced = &case.summary.coalesced;
    let median_gap = coalesced.median_read_gap.or_else(|| case.summary.latency.icl.median());
    let late = case.health.reader_late_p99_ns;
    let mut found = Vec::new();
    if let Some((late, gap)) = late.zip(median_gap).filter(|(late, gap)| late > gap) {
        let sentence = format!("bytes waited {} (p99) to be read, longer than the median gap of {}", ms(late), ms(gap));
        let figures = vec![("reader_late_p99_ms", late * 1e-6), ("median_gap_ms", gap * 1e-6)];
        found.extend(against_run(Code::ReaderLate, sentence, figures, "free a core for the client or lower the load"));
    }
    let Some(share) = case.health.coalesced_share.or(coalesced.share()) else { return found };
    if share <= case.bounds.coalesced_share {
        return found;
    }
    // A reader known to be prompt did not cause the sharing: the server wrote those events together.
    let prompt = late.zip(median_gap).is_some_and(|(late, gap)| late <= (gap * 0.1).min(1e6));
    let (whose, mend) = if prompt {
        (
            "; the reader was prompt, so the server sends them together",
            "read TPOT rather than gaps: the gaps are the server's bundles",
        )
    } else {
        (
            "; their gaps are not known",
            "free a core for the client or lower the load; ITL percentiles leave those events out",
        )
    };
    let sentence = format!("{} of events came in the same read as the one before{whose}", percent(share));
    let mut figures = vec![("coalesced_share", share)];
    figures.extend(late.map(|late| ("reader_late_p99_ms", late * 1e-6)));
    found.extend(finding(against(!prompt), Code::ReadsShared, sentence, figures, mend));
    found
}

fn noise(case: &Case<'_>) -> Findings {
    let Some(samples) = case.health.probe_noise_ns.as_deref().filter(|s| !s.is_empty()) else { return Vec::new() };
    let noise = Dist::new(samples.iter().map(|ns| *ns as f64).collect());
    let (p99, max) = (noise.nearest_rank(99.0).unwrap_or(0.0), noise.max().unwrap_or(0.0));
    let bound = case.bound_ns();
    if p99 <= bound {
        return Vec::new();
    }
    // Late wake-ups move receive times only where this process takes them.
    let stamps = &case.summary.stamps;
    let moved = stamps.user > 0 || stamps.mixed > 0 || case.bounds.demanding;
    let sentence =
        format!("timers on this machine woke {} late at p99 (max {}, bound {})", ms(p99), ms(max), ms(bound));
    let figures = vec![("noise_p99_ms", p99 * 1e-6), ("noise_max_ms", max * 1e-6), ("bound_ms", bound * 1e-6)];
    let mend = "stop other work on this machine, pin the client (--pin), or allow --realtime";
    finding(against(moved), Code::NoisyMachine, sentence, figures, mend)
}

fn server_errors(case: &Case<'_>) -> Findings {
    let n = &case.summary.requests;
    let failed = n.failed - n.failed_here;
    if failed == 0 || n.completed == 0 {
        return Vec::new();
    }
    let share = failed as f64 / n.planned as f64;
    let beyond = share > case.bounds.error_share;
    let cause = case.summary.failures.first().map_or(String::new(), |g| format!("; most often: {}", g.cause));
    let sentence = format!(
        "{failed} of {} requests failed ({}, allowed {}){cause}",
        n.planned,
        percent(share),
        percent(case.bounds.error_share)
    );
    let figures = vec![("failed", failed as f64), ("share", share), ("allowed_share", case.bounds.error_share)];
    finding(
        against(beyond),
        Code::ServerErrors,
        sentence,
        figures,
        "look at the failures listed, or allow a larger share of errors",
    )
}

fn lengths(case: &Case<'_>) -> Findings {
    let mut found = Vec::new();
    let output = case.summary.lengths.output;
    if let Some(off) = output.off().filter(|off| case.facts.output_forced && off.abs() > case.bounds.output_off) {
        let sentence = format!(
            "the server generated {} tokens where {} were forced ({})",
            output.counted,
            output.expected,
            signed_percent(off)
        );
        let mend =
            "check that the server honours ignore_eos and max_tokens, and that prompts leave room for the answer";
        found.extend(against_run(Code::OutputLengths, sentence, figures_of(&output, off), mend));
    }
    let prompt = case.summary.lengths.prompt;
    let allowed = prompt.requests as f64 * f64::from(case.facts.prompt_overhead);
    let excess = prompt.counted as f64 - prompt.expected as f64;
    // One or two special tokens a prompt are nobody's mistake.
    let special = 2.0 * prompt.requests as f64;
    let beyond = if excess > 0.0 { (excess - allowed - special).max(0.0) } else { (-excess - special).max(0.0) };
    if prompt.expected > 0 && beyond / prompt.expected as f64 > case.bounds.prompt_off {
        let off = excess / prompt.expected as f64;
        let sentence = format!(
            "the server counted {} prompt tokens where {} were asked for ({})",
            prompt.counted,
            prompt.expected,
            signed_percent(off)
        );
        let (sentence, mend) = match case.facts.templated && excess > 0.0 {
            true => {
                let each = excess / prompt.requests as f64;
                let whose = format!("{sentence}: {each:.1} more in each, as its chat template adds");
                (
                    whose,
                    "nothing, if the template is that long; prompts sent to a completions endpoint have no template",
                )
            }
            false => (sentence, "use the model's own tokenizer (--tokenizer), or send token ids"),
        };
        let exact = case.facts.prompt_lengths_exact;
        found.extend(finding(against(exact), Code::PromptLengths, sentence, figures_of(&prompt, off), mend));
    }
    found
}

fn token_counts(case: &Case<'_>) -> Findings {
    let recount = case.summary.lengths.recount;
    let Some(off) = recount.off().filter(|off| off.abs() > case.bounds.recount_off.min(0.02)) else {
        return Vec::new();
    };
    let beyond = off.abs() > case.bounds.recount_off;
    let sentence = format!(
        "the server's usage says {} output tokens, our tokenizer {} ({})",
        recount.counted,
        recount.expected,
        signed_percent(off)
    );
    let mend = "use the tokenizer of the model that the server runs; hidden reasoning also counts in usage only";
    finding(against(beyond), Code::TokenCounts, sentence, figures_of(&recount, off), mend)
}

/// An open loop that the server cannot follow: what is measured then describes the growing queue, and grows with the run's length.
fn backlog(case: &Case<'_>) -> Findings {
    if !case.facts.open_loop() || case.held_back().is_some() {
        return Vec::new();
    }
    let Some(sent) = case.summary.throughput.sent_per_s else { return Vec::new() };
    let found = match &case.summary.steady {
        Some(steady) => (steady.requests_per_s, case.facts.end.since(steady.until).secs(), steady.length().secs()),
        None => match backlog_without_window(case, sent) {
            Some(found) => found,
            None => return Vec::new(),
        },
    };
    let (done, drain, length) = found;
    // The drain must be long too, and longer than a request that had not to wait: a window with few requests in it may be short by chance.
    let quick = case.summary.latency.e2e.nearest_rank(5.0).unwrap_or(0.0) * 1e-9;
    if done >= sent * 0.9 || drain <= 2.0 * quick || drain < length * 0.1 {
        return Vec::new();
    }
    let sentence = format!(
        "the server finished {done:.2} req/s of {sent:.2} sent and took {drain:.1} s more to drain: latencies describe its backlog"
    );
    let figures = vec![("finished_per_s", done), ("sent_per_s", sent), ("drain_s", drain)];
    finding(
        Against::Number,
        Code::Backlog,
        sentence,
        figures,
        "lower the rate below what the server finishes to measure its latency",
    )
}

/// Where half of the answers took longer than all arrivals together, there is no window between ramp-up and drain. Long answers do
/// that as well as a queue; but only a queue spreads the first tokens over the drain. Rate finished, seconds of drain, seconds of arrivals.
fn backlog_without_window(case: &Case<'_>, sent_per_s: f64) -> Option<(f64, f64, f64)> {
    let counts = &case.summary.requests;
    let sent = counts.planned - counts.never_sent;
    let arrivals = sent.saturating_sub(1) as f64 / sent_per_s;
    let drain = case.summary.duration.secs() - arrivals;
    let ttft = case.summary.headline_ttft(case.facts);
    let spread = (ttft.nearest_rank(95.0)? - ttft.nearest_rank(5.0)?) * 1e-9;
    (spread >= drain * 0.5).then_some((case.summary.throughput.requests_per_s?, drain, arrivals))
}

fn few_samples(case: &Case<'_>) -> Findings {
    let ttft = case.summary.headline_ttft(case.facts);
    if ttft.is_empty() {
        return Vec::new();
    }
    let thin: Vec<String> =
        case.bounds.percentiles.iter().filter(|p| ttft.too_few_for(**p)).map(|p| format!("p{p}")).collect();
    if thin.is_empty() {
        return Vec::new();
    }
    let sentence = format!("{} requests are too few for a 95 % interval of {}", ttft.n(), thin.join(", "));
    let figures = vec![("requests", ttft.n() as f64)];
    let mend = "send more requests (p99 needs 368), or read a lower percentile";
    finding(against(case.bounds.demanding), Code::FewSamples, sentence, figures, mend)
}

fn conditions(case: &Case<'_>) -> Findings {
    let (summary, mut found) = (case.summary, Vec::new());
    let mut caution =
        |code, sentence: String, mend| found.extend(finding(Against::Number, code, sentence, Vec::new(), mend));
    if case.facts.interrupted {
        caution(
            Code::Interrupted,
            "the run was stopped before its end; what follows is what was done".into(),
            "let it run to its end",
        );
    }
    let by_us = summary.stamps.user + summary.stamps.mixed;
    if by_us > 0 {
        let sentence = format!("receive times of {by_us} requests were taken by this process, not by the kernel");
        caution(Code::UserStamps, sentence, "run on Linux with SO_TIMESTAMPNS allowed");
    }
    if summary.tokens.output_source() == Some(TokenSource::Events) {
        let n = summary.tokens.output_from[TokenSource::Events as usize];
        let sentence = format!("nobody counted the tokens of {n} answers: each event counts as one");
        caution(Code::TokensUncounted, sentence, "give --tokenizer, or a server that sends usage");
    }
    found
}

impl Case<'_> {
    /// What client-side delays must stay under at p99, ns.
    fn bound_ns(&self) -> f64 {
        let ttft = self.summary.headline_ttft(self.facts).median().unwrap_or(0.0);
        self.bounds.lateness_ns.max(self.bounds.lateness_share * ttft)
    }

    /// p99 (nearest rank) and maximum of send lateness, ns.
    fn lateness(&self) -> Option<(f64, f64)> {
        let own;
        let dist = match &self.health.lateness_ns {
            Some(samples) => {
                own = Dist::new(samples.iter().map(|ns| *ns as f64).collect());
                &own
            }
            None => &self.summary.latency.lateness,
        };
        Some((dist.nearest_rank(99.0)?, dist.max()?))
    }

    /// The share of an open-loop run's requests that the cap held back noticeably, where it is beyond the bound.
    fn held_back(&self) -> Option<f64> {
        if !self.facts.open_loop() || self.facts.max_concurrency.is_none() {
            return None;
        }
        let share = 1.0 - self.summary.latency.client_queue.share_within(self.bound_ns())?;
        (share > self.bounds.capped_share).then_some(share)
    }

    /// Arrivals per second by the schedule and as sent.
    fn rates(&self) -> Option<(f64, f64)> {
        let t = &self.summary.throughput;
        t.scheduled_per_s.zip(t.sent_per_s).filter(|_| self.facts.open_loop())
    }
}

fn against(beyond: bool) -> Against {
    if beyond { Against::Run } else { Against::Number }
}

fn against_run(code: Code, sentence: String, figures: Vec<(&'static str, f64)>, mend: &str) -> Findings {
    finding(Against::Run, code, sentence, figures, mend)
}

fn finding(against: Against, code: Code, sentence: String, figures: Vec<(&'static str, f64)>, mend: &str) -> Findings {
    vec![(against, Reason { code, sentence, figures, mend: mend.to_owned() })]
}

fn figures_of(pair: &Pair, off: f64) -> Vec<(&'static str, f64)> {
    vec![("expected", pair.expected as f64), ("counted", pair.counted as f64), ("off_share", off)]
}
