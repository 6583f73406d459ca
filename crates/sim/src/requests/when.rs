//! When requests come.

use super::draws;
use crate::scenario::{Arrivals, Scenario, ScenarioError};
use std::sync::Arc;
use tailbound_clock::Dur;
use tailbound_trace::generate as laws;
use tailbound_workload::{Plan, Sessions, Spec};

/// A plan, and where it stands among the others.
pub(crate) struct Part {
    pub(crate) plan: Arc<Plan>,
    /// The number of its first request.
    pub(crate) first: u32,
    /// When it begins; of one that waits for another, how long after that one's beginning at least.
    pub(crate) begin: Dur,
    /// The part whose last answer it waits for.
    pub(crate) after: Option<u32>,
}

/// What fits in memory.
const MOST_REQUESTS: f64 = 2e7;

/// One stage: how long it lasts, and when its requests come, from its beginning.
pub(super) struct StageOf {
    pub(super) lasts: Dur,
    pub(super) times: Vec<Dur>,
}

/// Moments of arrival, stage by stage; one stage for a law. `None` for as many requests at a time as the cap allows.
pub(super) fn times(
    scenario: &Scenario,
    class: u16,
    name: &str,
    a: &Arrivals,
) -> Result<Option<Vec<StageOf>>, ScenarioError> {
    let wrong = |what: String| ScenarioError::value(format!("traffic.{name}.arrivals: {what}"));
    match (&a.law, a.stages.is_empty(), a.concurrency) {
        (Some(_), false, _) => Err(wrong("give a law or stages, not both".into())),
        (Some(text), true, _) => {
            let law = law(text).map_err(wrong)?;
            let mut rng = draws(scenario.seed(), "sim/arrivals", class);
            let seconds = match (a.for_s, a.requests) {
                (Some(s), _) if !(s > 0.0 && law.mean_rate(s) * s <= MOST_REQUESTS) => {
                    return Err(wrong("for_s must be above 0, and bring at most 2e7 requests".into()));
                }
                (Some(s), None) => law.draw(s, &mut rng),
                (Some(s), Some(n)) => law.draw(s, &mut rng).into_iter().take(n as usize).collect(),
                (None, Some(n)) => law.first(n as usize, || draws(scenario.seed(), "sim/arrivals", class)),
                (None, None) => return Err(wrong("say how many requests, or for_s how many seconds".into())),
            };
            let times = seconds.into_iter().map(Dur::from_secs_f64).collect();
            Ok(Some(vec![StageOf { lasts: Dur::from_secs_f64(a.for_s.unwrap_or(0.0)), times }]))
        }
        (None, false, _) => stages(scenario, class, a)
            .map(Some)
            .map_err(|what| ScenarioError::value(format!("traffic.{name}.arrivals.stages: {what}"))),
        (None, true, Some(_)) => Ok(None),
        (None, true, None) => Err(wrong("give a law, stages, or a concurrency".into())),
    }
}

/// A law of arrivals by its text.
pub(super) fn law(text: &str) -> Result<laws::Arrivals, String> {
    text.parse()
}

fn stages(scenario: &Scenario, class: u16, a: &Arrivals) -> Result<Vec<StageOf>, String> {
    if a.stages.iter().map(|(rate, seconds)| rate * seconds).sum::<f64>() > MOST_REQUESTS {
        return Err("more than 2e7 requests".into());
    }
    let mut rng = draws(scenario.seed(), "sim/arrivals", class);
    let stage = |&(rate, seconds): &(f64, f64)| {
        if !(rate > 0.0 && seconds > 0.0 && rate.is_finite() && seconds.is_finite()) {
            return Err("rates and lengths must be above 0".to_owned());
        }
        let mut times = Vec::new();
        let mut at = 0.0;
        loop {
            at += if a.poisson { rng.exponential() / rate } else { 1.0 / rate };
            if at > seconds * (1.0 + 1e-9) {
                return Ok(StageOf { lasts: Dur::from_secs_f64(seconds), times });
            }
            times.push(Dur::from_secs_f64(at));
        }
    };
    a.stages.iter().map(stage).collect()
}

/// The plan of one part. Without times, everything is due at once, and the cap paces it.
pub(super) fn plan(
    scenario: &Scenario,
    name: &str,
    a: &Arrivals,
    times: Option<Vec<Dur>>,
    requests: usize,
    sessions: Option<Sessions>,
) -> Result<Arc<Plan>, ScenarioError> {
    let spec = Spec {
        num_prompts: times.is_none().then_some(requests as u64),
        duration: a.for_s.filter(|_| times.is_none()).map(Dur::from_secs_f64),
        schedule: times,
        sessions,
        max_concurrency: a.concurrency.map(i64::from),
        seed: scenario.seed(),
        ..Spec::default()
    };
    Ok(Arc::new(spec.plan().map_err(|e| ScenarioError::Plan(name.to_owned(), e))?))
}
