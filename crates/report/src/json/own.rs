//! Tailbound's own part: base units with the unit in the key, null for what is missing.

use super::{Detail, Num, servers};
use crate::run::percentile_word;
use crate::{Grouping, Run, ThresholdOutcome};
use serde_json::{Map, Value, json};
use tailbound_stats::fluidity::Figures;
use tailbound_stats::{Dist, Goodput, Group, Lengths, Metric, Reason, Steady, Summary, TokenSource};

/// Raised when a key changes its meaning or goes away.
const SCHEMA_VERSION: &str = "1.0.0";
/// Percentiles always given, beside those asked for.
const ALWAYS: [f64; 6] = [5.0, 50.0, 90.0, 95.0, 99.0, 99.9];
const NS: f64 = 1e-9;

pub(super) fn value(run: &Run<'_>, detail: Detail) -> Value {
    let s = run.summary;
    json!({
        "schema_version": SCHEMA_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "metadata": run.description.metadata.iter().cloned().map(|(k, v)| (k, json!(v))).collect::<Map<_, _>>(),
        "verdict": {
            "valid": run.verdict.valid(),
            "word": run.verdict.word(),
            "reasons": reasons(&run.verdict.reasons),
            "cautions": reasons(&run.verdict.cautions),
        },
        "open_loop": run.facts.open_loop(),
        "interrupted": run.facts.interrupted,
        "headline_start": if run.facts.open_loop() { "scheduled" } else { "write_start" },
        "duration_s": s.duration.ns() as f64 / 1e9,
        "requests": {
            "planned": s.requests.planned,
            "completed": s.requests.completed,
            "failed": s.requests.failed,
            "failed_here": s.requests.failed_here,
            "cancelled": s.requests.cancelled,
            "never_sent": s.requests.never_sent,
            "never_due": s.requests.never_due,
            "retries": s.retries,
        },
        "throughput": throughput(s),
        "tokens": tokens(s),
        "lengths": lengths(&s.lengths),
        "latency": latency(run),
        "interactivity_tokens_per_s": dist(run, &s.latency.interactivity, 1.0, None),
        "queued_share": s.queued_share,
        "goodput": s.goodput.as_ref().map(goodput),
        "fluidity": s.fluidity.as_ref().map(fluidity),
        "concurrency": {
            "cap": run.facts.max_concurrency,
            "peak": s.concurrency.peak,
            "mean": s.concurrency.mean,
            "at_cap_share": s.concurrency.at_cap,
        },
        "steady": s.steady.as_ref().map(|w| steady(run, w)),
        "protocol": run.description.protocol,
        "stamps": {
            "source": s.stamps.name(),
            "kernel": s.stamps.kernel,
            "mixed": s.stamps.mixed,
            "user": s.stamps.user,
            "virtual": s.stamps.virtual_time,
        },
        "coalesced": {
            "events": s.coalesced.events,
            "shared": s.coalesced.shared,
            "share": s.coalesced.share(),
            "first_tokens": s.coalesced.first_tokens,
            "clean_gaps_s": s.coalesced.clean_gaps.as_ref().map(|d| dist(run, d, NS, None)),
        },
        "server_metrics": run.extras.servers.as_ref().map(|s| servers::value(s, detail)),
        "thresholds": run.extras.thresholds.iter().map(threshold).collect::<Value>(),
        "trace": run.extras.trace,
        "groups": groups(run),
        "failures": failures(s),
    })
}

fn reasons(reasons: &[Reason]) -> Value {
    let one = |r: &Reason| {
        let figures: Map<String, Value> = r.figures.iter().map(|(name, v)| ((*name).to_owned(), number(*v))).collect();
        json!({ "code": r.code.name(), "sentence": r.sentence, "figures": figures, "mend": r.mend })
    };
    reasons.iter().map(one).collect()
}

fn throughput(s: &Summary) -> Value {
    let t = &s.throughput;
    json!({
        "requests_per_s": t.requests_per_s,
        "input_tokens_per_s": t.input_tokens_per_s,
        "output_tokens_per_s": t.output_tokens_per_s,
        "total_tokens_per_s": t.total_tokens_per_s,
        "peak_output_tokens_per_s": t.peak_output_tokens_per_s,
        "scheduled_per_s": t.scheduled_per_s,
        "sent_per_s": t.sent_per_s,
    })
}

fn tokens(s: &Summary) -> Value {
    let t = &s.tokens;
    let from: Map<String, Value> = [TokenSource::Server, TokenSource::Tokenizer, TokenSource::Events]
        .into_iter()
        .map(|source| (source.name().to_owned(), json!(t.output_from[source as usize])))
        .collect();
    json!({
        "input": t.input,
        "input_from_server": t.input_from_server,
        "cached": t.cached,
        "output": t.output,
        "reasoning": t.reasoning,
        "events": t.events,
        "per_event": t.per_event(),
        "output_source": t.output_source().map(TokenSource::name),
        "output_from": from,
    })
}

fn lengths(l: &Lengths) -> Value {
    let pairs = [("prompt", l.prompt), ("output", l.output), ("recount", l.recount)];
    let one = |p: tailbound_stats::Pair| json!({ "requests": p.requests, "differing": p.differing, "expected": p.expected, "counted": p.counted, "off_share": p.off() });
    pairs.into_iter().map(|(name, p)| (name.to_owned(), one(p))).collect::<Map<_, _>>().into()
}

fn latency(run: &Run<'_>) -> Value {
    let latency = &run.summary.latency;
    let misses = run.summary.misses();
    let mut map = Map::new();
    for metric in Metric::ALL {
        let whole_request =
            matches!(metric, Metric::Ttft | Metric::TtftScheduled | Metric::Ttfo | Metric::E2e | Metric::E2eScheduled);
        let value = dist(run, latency.get(metric), NS, whole_request.then_some(misses));
        map.insert(format!("{}_s", metric.name()), value.clone());
        if metric == Metric::TpotInclTtft {
            map.insert("ntpot_s".to_owned(), value);
        }
    }
    Value::Object(map)
}

/// A distribution. `percentiles` interpolate (type 7); `nearest_rank` are measured values; `with_misses` count so many failed and
/// never-sent requests as infinite; `interval_95` encloses the true percentile, null where the sample is too small.
fn dist(run: &Run<'_>, d: &Dist, unit: f64, misses: Option<usize>) -> Value {
    let mut wanted: Vec<f64> = ALWAYS.iter().chain(&run.selection.percentiles).copied().collect();
    wanted.sort_by(f64::total_cmp);
    wanted.dedup();
    let in_unit = |v: Option<f64>| v.map_or(Value::Null, |v| number(v * unit));
    let by = |f: &dyn Fn(f64) -> Value| -> Map<String, Value> {
        wanted.iter().map(|p| (format!("p{}", percentile_word(*p)), f(*p))).collect()
    };
    let mut map = Map::new();
    map.insert("n".to_owned(), json!(d.n()));
    for (name, v) in [("mean", d.mean()), ("std", d.std()), ("min", d.min()), ("max", d.max())] {
        map.insert(name.to_owned(), in_unit(v));
    }
    map.insert("percentiles".to_owned(), by(&|p| in_unit(d.percentile(p))).into());
    map.insert("nearest_rank".to_owned(), by(&|p| in_unit(d.nearest_rank(p))).into());
    if let Some(misses) = misses.filter(|n| *n > 0) {
        map.insert("with_misses".to_owned(), by(&|p| in_unit(d.nearest_rank_with_failures(p, misses))).into());
    }
    let interval = |p: f64| match d.interval(p, 0.95) {
        Some((low, high)) => json!([low * unit, high * unit]),
        None => Value::Null,
    };
    map.insert("interval_95".to_owned(), by(&interval).into());
    Value::Object(map)
}

/// etalon's figures: its code's fluidity-index and its documents', each under its own name.
fn fluidity(f: &Figures) -> Value {
    let at = |d: &Dist, p: f64| d.percentile(p).map_or(Value::Null, number);
    let index =
        |d: &Dist| json!({ "mean": d.mean().map_or(Value::Null, number), "p1": at(d, 1.0), "median": at(d, 50.0) });
    json!({
        "ttft_deadline_s": f.due.ttft,
        "tbt_deadline_s": f.due.tbt,
        "missed_deadlines": f.level.missed,
        "deadlines": f.level.deadlines,
        "deadline_miss_rate": number(f.level.miss_rate()),
        "late_tokens": f.level.late,
        "tokens": f.level.tokens,
        "fluidity_index_code": index(&f.index),
        "fluidity_index_docs": index(&f.index_by_tokens),
        "fluid_token_rate": f.rates.map(|r| number(r.fluid)),
        "tpot_token_rate": f.rates.map(|r| number(r.by_tpot)),
        "tbt_p99_token_rate": f.rates.map(|r| number(r.by_tbt)),
    })
}

fn goodput(g: &Goodput) -> Value {
    let metrics: Map<String, Value> = g
        .by_metric
        .iter()
        .map(|m| {
            let value = json!({
                "limit_s": m.limit_ms.map(|ms| ms / 1e3),
                "judged": m.judged,
                "within": m.within,
                "vacuous": m.vacuous,
                "share": m.share(),
                "at_required_share_s": m.at_required_ns.map_or(Value::Null, |ns| number(ns * NS)),
            });
            (m.metric.name().to_owned(), value)
        })
        .collect();
    let classes: Vec<Value> = g
        .by_class
        .iter()
        .map(|(class, judged, good)| json!({ "class": class, "judged": judged, "good": good }))
        .collect();
    json!({
        "met": g.met(),
        "required_share": g.required_share,
        "judged": g.judged,
        "good": g.good,
        "excused": g.excused,
        "attainment": g.attainment,
        "attainment_interval_95": g.interval.map(|(low, high)| [low, high]),
        "requests_per_s": g.requests_per_s,
        "tokens_per_s": g.tokens_per_s,
        "by_metric": metrics,
        "by_class": classes,
    })
}

fn groups(run: &Run<'_>) -> Value {
    let one = |(name, g): &(String, Group)| {
        json!({
            "name": name,
            "planned": g.requests.planned,
            "completed": g.requests.completed,
            "failed": g.requests.failed,
            "cancelled": g.requests.cancelled,
            "never_sent": g.requests.never_sent,
            "input_tokens": g.input_tokens,
            "output_tokens": g.output_tokens,
            "judged": g.judged,
            "good": g.good,
            "ttft_s": dist(run, &g.ttft, NS, None),
            "tpot_s": dist(run, &g.tpot, NS, None),
            "e2e_s": dist(run, &g.e2e, NS, None),
        })
    };
    let all = |by: &Grouping| (by.by.to_owned(), by.groups.iter().map(one).collect::<Value>());
    run.extras.groups.iter().map(all).collect::<Map<_, _>>().into()
}

fn steady(run: &Run<'_>, w: &Steady) -> Value {
    json!({
        "from_s": w.from.since(run.facts.start).secs(),
        "until_s": w.until.since(run.facts.start).secs(),
        "short": w.short,
        "target_concurrency": w.target,
        "mean_concurrency": w.concurrency,
        "requests_per_s": w.requests_per_s,
        "input_tokens_per_s": w.input_tokens_per_s,
        "output_tokens_per_s": w.output_tokens_per_s,
        "output_tokens_per_s_interval_95": w.output_interval.map(|(low, high)| [low, high]),
        "ttft_s": dist(run, &w.ttft, NS, None),
        "tpot_s": dist(run, &w.tpot, NS, None),
    })
}

fn threshold(t: &ThresholdOutcome) -> Value {
    json!({
        "metric": t.metric,
        "percentile": t.percentile,
        "class": t.class,
        "unit": if t.percentile.is_some() { "s" } else { "share" },
        "below": t.below,
        "value": Num(t.value),
        "held": t.held,
    })
}

fn failures(s: &Summary) -> Value {
    let one = |g: &tailbound_stats::FailureGroup| {
        json!({
            "cause": g.cause.name(),
            "status": match g.cause { tailbound_record::Cause::Status(code) => Some(code), _ => None },
            "what": g.cause.to_string(),
            "phase": format!("{:?}", g.phase).to_lowercase(),
            "blame": format!("{:?}", g.blame).to_lowercase(),
            "count": g.count,
            "sample": { "id": g.sample.0, "detail": g.sample.1 },
        })
    };
    s.failures.iter().map(one).collect()
}

pub(super) fn number(v: f64) -> Value {
    serde_json::to_value(Num(Some(v))).unwrap_or(Value::Null)
}
