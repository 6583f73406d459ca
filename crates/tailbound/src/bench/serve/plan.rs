//! From flags to a checked plan: everything that can be judged before anything is sent, all in one place.

use super::args::{LoadArgs, Normalize, Ramp, ReportArgs, ServeArgs};
use crate::failure::{Failure, Outcome};
use crate::units;
use std::sync::Arc;
use tailbound_clock::{Seed, Time};
use tailbound_stats as stats;
use tailbound_workload as workload;

/// The load's plan.
pub fn plan(args: &LoadArgs) -> Outcome<Arc<workload::Plan>> {
    let spec = spec(args);
    spec.plan().map(Arc::new).map_err(|e| {
        let value = e.value.as_ref().map(|v| format!(" {v}")).unwrap_or_default();
        let failure = Failure::usage(format!("{}{value}: {}", e.flag, e.problem));
        if e.hint.is_empty() { failure } else { failure.hint(e.hint) }
    })
}

/// The plan for the prompts there are: a data set may have given fewer than were asked for (`--no-oversample`).
pub fn fit(args: &LoadArgs, plan: Arc<workload::Plan>, prompts: usize) -> Outcome<Arc<workload::Plan>> {
    if plan.endless() || plan.requests() as usize <= prompts {
        return Ok(plan);
    }
    self::plan(&LoadArgs { num_prompts: Some(prompts as u64), ..args.clone() })
}

fn spec(args: &LoadArgs) -> workload::Spec {
    workload::Spec {
        num_prompts: args.num_prompts,
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
        schedule: None,
        max_concurrency: args.max_concurrency,
        num_warmups: args.num_warmups,
        duration: args.duration,
        probe_request_rate: args.probe_request_rate,
        seed: Seed(args.seed),
    }
}

/// What the statistics need to know of the plan; `start` and `end` are filled in after the run.
pub fn facts(args: &ServeArgs, plan: &workload::Plan) -> Outcome<stats::RunFacts> {
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
        max_concurrency: plan.max_concurrency(),
        objectives: objectives(&args.report)?,
        ..stats::RunFacts::new(Time::ZERO, Time::ZERO)
    })
}

fn objectives(args: &ReportArgs) -> Outcome<stats::Objectives> {
    if !(args.attainment > 0.0 && args.attainment <= 1.0) {
        return Err(Failure::usage(format!("--attainment {}: a share lies over 0 and up to 1", args.attainment)));
    }
    let all = args.goodput.iter().map(|text| objective(text)).collect::<Outcome<Vec<_>>>()?;
    Ok(stats::Objectives { all, required_share: args.attainment, ..Default::default() })
}

/// `ttft:500` in milliseconds, as vLLM has it, or with a unit: `ttft:0.5s`.
fn objective(text: &str) -> Outcome<stats::Objective> {
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
