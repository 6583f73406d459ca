//! From flags to what is asked of a load.

use super::args::CapacityArgs;
use crate::bench::serve::plan;
use crate::bench::serve::replay::Outline;
use crate::failure::{Failure, Outcome};
use crate::units;
use tailbound_clock::Seed;
use tailbound_clock::Time;
use tailbound_stats::capacity::{Criterion, FirstToken, Spec, Threshold, Unit};
use tailbound_stats::fluidity::PrefillProfile;
use tailbound_stats::{Metric, RunFacts};

/// The slack after a prompt's own prefill in which its first token is due, if no deadline is given, s: etalon's runs use 0.3 to 1.
pub const SLACK: f64 = 1.0;

/// What is asked, and the facts of the runs it is asked of.
pub struct Asked {
    /// What is asked.
    pub criterion: Criterion,
    /// Objectives, and whether arrivals wait for answers.
    pub facts: RunFacts,
    /// Whether arrivals and requests come in no order of their own, as those of a trace do.
    drawn: bool,
}

/// Which kind of objective the flags give; refused if it is none.
pub fn asked(args: &CapacityArgs, outline: Option<&Outline>, prefill: Option<PrefillProfile>) -> Outcome<Asked> {
    let a = &args.asked;
    share("--attainment", a.attainment)?;
    let known = outline.map_or(&[][..], |o| o.classes.names.as_slice());
    let objectives = plan::objectives(&a.goodput, &a.class_goodput, a.attainment, known)?;
    let facts = RunFacts {
        request_rate: (!args.search.concurrency).then_some(1.0),
        objectives,
        ..RunFacts::new(Time::ZERO, Time::ZERO)
    };
    let criterion = if a.fluidity {
        share("--deadline-miss-rate-percentile", a.deadline_miss_rate_percentile)?;
        let first = match (a.ttft_deadline, prefill) {
            (Some(within), _) => FirstToken::Within(within.secs()),
            (None, Some(profile)) => FirstToken::AfterPrefill(profile, SLACK),
            (None, None) => FirstToken::Any,
        };
        let (miss_rate, share) = (a.deadline_miss_rate_slo, a.deadline_miss_rate_percentile);
        Criterion::Fluidity { first, tbt: a.tbt_deadline.secs(), miss_rate, share }
    } else if !a.threshold.is_empty() {
        Criterion::Thresholds(a.threshold.iter().map(|text| threshold(text)).collect::<Outcome<_>>()?)
    } else if facts.objectives.is_empty() {
        return Err(Failure::usage("nothing is asked of a load: --goodput, --threshold or --fluidity")
            .hint("e.g. --goodput ttft:500 tpot:50, or --threshold p99:ttft:500ms"));
    } else {
        Criterion::Goodput(classes(&facts, outline))
    };
    if criterion.requirements(&facts).len() > 32 {
        return Err(Failure::usage("more than 32 classes or thresholds"));
    }
    let drawn = outline.is_none() && !args.search.concurrency && args.search.burstiness.is_finite();
    Ok(Asked { criterion, facts, drawn })
}

/// The classes that objectives tell apart: all that come up, if any class has objectives of its own.
fn classes(facts: &RunFacts, outline: Option<&Outline>) -> Vec<(u16, String)> {
    let names = outline.map_or(&[][..], |outline| &outline.classes.names);
    match facts.objectives.by_class.is_empty() {
        true => Vec::new(),
        false => {
            (0..).zip(names.iter().cloned()).filter(|(class, _)| !facts.objectives.of(*class).is_empty()).collect()
        }
    }
}

/// `p99:ttft:500ms`.
fn threshold(text: &str) -> Outcome<Threshold> {
    let wrong = |what: &str| Failure::usage(format!("--threshold {text}: {what}")).hint("e.g. p99:ttft:500ms");
    let mut parts = text.splitn(3, ':').map(str::trim);
    let (Some(p), Some(metric), Some(limit)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(wrong("not of the form pN:METRIC:MS"));
    };
    let percentile = p.strip_prefix('p').and_then(|p| p.parse::<f64>().ok()).filter(|p| *p > 0.0 && *p < 100.0);
    let percentile = percentile.ok_or_else(|| wrong("a percentile lies between p0 and p100"))?;
    let known = || Metric::ALL.into_iter().filter(|m| m.of_requests());
    let metric = known().find(|m| m.name() == metric || (metric == "e2el" && *m == Metric::E2e)).ok_or_else(|| {
        let names: Vec<&str> = known().map(Metric::name).collect();
        Failure::usage(format!("--threshold {text}: `{metric}` is no latency that each request has one of"))
            .hint(format!("one of {}", names.join(", ")))
    })?;
    let limit_ms = match limit.parse::<f64>() {
        Ok(ms) if ms >= 0.0 => ms,
        _ => units::duration(limit).map_err(|e| wrong(&e))?.ms(),
    };
    Ok(Threshold { metric, percentile, limit_ms })
}

fn share(flag: &str, share: f64) -> Outcome<()> {
    match share > 0.0 && share < 1.0 {
        true => Ok(()),
        false => Err(Failure::usage(format!("{flag} {share}: a share lies between 0 and 1"))),
    }
}

/// What is searched for.
pub fn spec(args: &CapacityArgs, asked: &Asked) -> Outcome<Spec> {
    let s = &args.search;
    share("--confidence", s.confidence)?;
    share("--precision", s.precision)?;
    if s.probe_requests < 100 {
        return Err(Failure::usage(format!("--probe-requests {}: under 100 nothing can be told", s.probe_requests)));
    }
    if s.budget < s.probe_requests {
        return Err(Failure::usage(format!("--budget {}: less than one probe of {}", s.budget, s.probe_requests)));
    }
    for (flag, load) in [("--first", s.first), ("--expect", s.expect)] {
        if let Some(load) = load.filter(|load| !load.is_finite() || *load <= 0.0) {
            return Err(Failure::usage(format!("{flag} {load}: a load is a number over 0")));
        }
        if let Some(load) = load.filter(|load| s.concurrency && load.fract() != 0.0) {
            return Err(Failure::usage(format!("{flag} {load}: requests in flight are a whole number")));
        }
    }
    Ok(Spec {
        requirements: asked.criterion.requirements(&asked.facts),
        unit: if s.concurrency { Unit::Concurrency } else { Unit::Rate },
        first: s.first.unwrap_or(1.0),
        precision: s.precision,
        confidence: s.confidence,
        budget: s.budget,
        probe_requests: s.probe_requests,
        expect: s.expect,
        certify: args.asked.certify,
        burstiness: asked.drawn.then_some(s.burstiness),
        seed: Seed(s.seed),
    })
}
