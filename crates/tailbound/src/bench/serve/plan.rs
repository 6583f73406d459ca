//! From flags to a checked plan: everything that can be judged before anything is sent, all in one place.

use super::args::{LoadArgs, Normalize, Ramp, ReportArgs, ServeArgs};
use super::preset::Preset;
use super::replay::Outline;
use crate::failure::{Failure, Outcome};
use crate::units;
use std::sync::Arc;
use tailbound_clock::{Dur, Seed, Time};
use tailbound_stats as stats;
use tailbound_stats::fluidity::Deadlines;
use tailbound_workload as workload;

/// The load's plan.
pub fn plan(args: &LoadArgs, replay: Option<&Outline>) -> Outcome<Arc<workload::Plan>> {
    let spec = spec(args, replay);
    spec.plan().map(Arc::new).map_err(|e| {
        let value = e.value.as_ref().map(|v| format!(" {v}")).unwrap_or_default();
        let failure = Failure::usage(format!("{}{value}: {}", e.flag, e.problem));
        if e.hint.is_empty() { failure } else { failure.hint(e.hint) }
    })
}

/// The plan for the prompts there are: a data set may have given fewer than were asked for (`--no-oversample`).
pub fn fit(
    args: &LoadArgs,
    replay: Option<&Outline>,
    plan: Arc<workload::Plan>,
    prompts: usize,
) -> Outcome<Arc<workload::Plan>> {
    // Phases go round the prompts.
    if plan.endless() || plan.phases().is_some() || plan.requests() as usize <= prompts {
        return Ok(plan);
    }
    self::plan(&LoadArgs { num_prompts: Some(prompts as u64), ..args.clone() }, replay)
}

fn spec(args: &LoadArgs, replay: Option<&Outline>) -> workload::Spec {
    let planned = replay.map(|r| r.account.rows_planned);
    workload::Spec {
        // Of a trace there are as many requests as rows were taken.
        num_prompts: planned.or(args.num_prompts),
        request_rate: args.request_rate,
        burstiness: args.burstiness,
        ramp_up_strategy: args.ramp_up_strategy.map(|ramp| match ramp {
            Ramp::Linear => workload::Ramp::Linear,
            Ramp::Exponential => workload::Ramp::Exponential,
        }),
        ramp_up_start_rps: args.ramp_up_start_rps,
        ramp_up_end_rps: args.ramp_up_end_rps,
        arrival_normalize: match args.arrival_normalize {
            Normalize::Vllm => workload::Normalize::Vllm,
            Normalize::None => workload::Normalize::None,
        },
        schedule: replay.and_then(|r| r.schedule.clone()),
        sessions: replay.and_then(|r| r.sessions.clone()),
        phases: args.phased.as_ref().map(|p| p.phases.clone()),
        max_concurrency: args.max_concurrency,
        num_warmups: args.num_warmups,
        duration: args.duration,
        probe_request_rate: args.probe_request_rate,
        seed: Seed(args.seed),
    }
}

/// What the statistics need to know of the plan; `start` and `end` are filled in after the run.
pub fn facts(args: &ServeArgs, plan: &workload::Plan, replay: Option<&Outline>) -> Outcome<stats::RunFacts> {
    let load = &args.load;
    let ramp = load.ramp_up_strategy.zip(load.ramp_up_start_rps).zip(load.ramp_up_end_rps);
    let ramp = ramp.map(|((law, start_rps), end_rps)| stats::Ramp {
        law: match law {
            Ramp::Linear => stats::RampLaw::Linear,
            Ramp::Exponential => stats::RampLaw::Exponential,
        },
        start_rps,
        end_rps,
    });
    let finite = load.request_rate.filter(|r| r.is_finite());
    Ok(stats::RunFacts {
        request_rate: finite.filter(|_| ramp.is_none()),
        burstiness: load.burstiness.unwrap_or(1.0),
        ramp,
        self_timed: replay.is_some_and(|r| r.schedule.is_some())
            || load.phased.iter().flat_map(|p| &p.phases).any(|p| p.executor.open_loop()),
        max_concurrency: plan.max_concurrency(),
        objectives: preset_or_given(args, replay)?,
        deadlines: args
            .report
            .tbt_deadline
            .map(|tbt| Deadlines { ttft: args.report.ttft_deadline.map(Dur::secs), tbt: tbt.secs() }),
        ..stats::RunFacts::new(Time::ZERO, Time::ZERO)
    })
}

fn preset_or_given(args: &ServeArgs, replay: Option<&Outline>) -> Outcome<stats::Objectives> {
    let terms = args.preset.map(Preset::terms);
    let share = args.report.attainment.or(terms.as_ref().map(|terms| terms.attainment)).unwrap_or(0.9);
    let own: Vec<String> = terms.iter().flat_map(|terms| terms.goodput).map(|text| (*text).to_owned()).collect();
    let given = &args.report.goodput;
    let phased = args.load.phased.as_ref();
    let known = replay.map(|r| &r.classes.names).or(phased.map(|p| &p.classes)).map_or(&[][..], Vec::as_slice);
    objectives(if given.is_empty() { &own } else { given }, &args.report.class_goodput, share, known)
}

/// What requests are held to: all of them to `goodput`, those of a class (one of those `known`) with its own to `class_goodput`, in a
/// share of them.
pub fn objectives(
    goodput: &[String],
    class_goodput: &[String],
    required_share: f64,
    known: &[String],
) -> Outcome<stats::Objectives> {
    if !(required_share > 0.0 && required_share <= 1.0) {
        return Err(Failure::usage(format!("--attainment {required_share}: a share lies over 0 and up to 1")));
    }
    let all = goodput.iter().map(|text| objective(text)).collect::<Outcome<Vec<_>>>()?;
    let by_class = class_goodput.iter().map(|text| class_objectives(text, known)).collect::<Outcome<Vec<_>>>()?;
    Ok(stats::Objectives { all, by_class, required_share })
}

/// `CLASS=ttft:500,tpot:50`: the class's number and its own objectives.
fn class_objectives(text: &str, known: &[String]) -> Outcome<(u16, Vec<stats::Objective>)> {
    let wrong = |what: String| Failure::usage(format!("--class-goodput {text}: {what}"));
    let Some((class, limits)) = text.rsplit_once('=') else {
        return Err(
            wrong("not of the form CLASS=METRIC:MS".into()).hint("e.g. --class-goodput 'API log=ttft:500,tpot:50'")
        );
    };
    let Some(number) = known.iter().position(|name| name == class.trim()) else {
        return Err(match known {
            [] => wrong("the data set tells no classes".into()).hint("use --goodput"),
            _ => wrong(format!("no class `{class}`")).hint(format!("the classes are {}", known.join(", "))),
        });
    };
    let own = limits.split(',').map(|limit| objective(limit.trim())).collect::<Outcome<Vec<_>>>()?;
    Ok((u16::try_from(number).unwrap_or(u16::MAX), own))
}

/// `ttft:500` in milliseconds, as vLLM has it, or with a unit: `ttft:0.5s`.
pub fn objective(text: &str) -> Outcome<stats::Objective> {
    let with_ms = match text.split_once(':') {
        Some((key, limit)) if limit.trim().parse::<f64>().is_err() => match units::duration(limit) {
            Ok(limit) => format!("{key}:{}", limit.ms()),
            Err(_) => text.to_owned(),
        },
        _ => text.to_owned(),
    };
    with_ms.parse().map_err(|e| Failure::usage(format!("--goodput {text}: {e}")))
}

/// `--percentile-metrics` and `--metric-percentiles`, checked.
pub fn check_selection(args: &ReportArgs) -> Outcome<()> {
    const KNOWN: [&str; 6] = ["ttft", "tpot", "itl", "e2el", "client_queue_time", "e2el_including_client_queue"];
    if let Some(unknown) = args.percentile_metrics.iter().find(|m| !KNOWN.contains(&m.as_str())) {
        return Err(Failure::usage(format!("--percentile-metrics {unknown}: unknown metric"))
            .hint(format!("one of {}", KNOWN.join(", "))));
    }
    match args.metric_percentiles.iter().find(|p| !(0.0..=100.0).contains(*p)) {
        Some(p) => Err(Failure::usage(format!("--metric-percentiles {p}: a percentile lies between 0 and 100"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_take_milliseconds_or_units() {
        assert_eq!(objective("ttft:500").unwrap().limit_ms, 500.0);
        assert_eq!(objective("e2el:1.5s").unwrap().limit_ms, 1500.0);
        assert_eq!(objective("tpot:20ms").unwrap().limit_ms, 20.0);
        for bad in ["ttft", "foo:3", "ttft:-1", "ttft:abc"] {
            let message = objective(bad).unwrap_err().to_string();
            assert!(message.contains("--goodput") && message.contains(bad), "{message}");
        }
    }
}
