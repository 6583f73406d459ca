//! The second stage: a [`Spec`] is checked flag by flag, and its schedule drawn.

use crate::phases::Phases;
use crate::plan::{Plan, Stride};
use crate::{Law, Normalize, Phase, Ramp, Sessions, Spec, SpecError, arrivals};
use std::fmt;
use std::sync::Arc;
use tailbound_clock::Dur;

fn wrong(
    flag: &'static str,
    value: Option<&dyn fmt::Display>,
    problem: impl Into<String>,
    hint: impl Into<String>,
) -> SpecError {
    SpecError { flag, value: value.map(|v| v.to_string()), problem: problem.into(), hint: hint.into() }
}

/// So many requests are planned if neither a number, nor a duration, nor a schedule says otherwise (as vLLM).
const DEFAULT_REQUESTS: u64 = 1000;
/// A plan holds its schedule in memory; ids of requests, warm-ups and probes together must fit 32 bits.
const MOST_REQUESTS: u64 = 100_000_000;
/// What an endless plan counts as; nobody gets there.
pub(crate) const ENDLESS: u32 = 1 << 30;
/// A schedule longer than this is a typing error, and would overflow nanoseconds at 584 years.
const LONGEST: Dur = Dur::from_secs(100 * 365 * 86_400);

impl Spec {
    /// Checks everything and draws the schedule.
    ///
    /// # Errors
    /// The first flag that is out of range or contradicts another, with a hint.
    pub fn plan(&self) -> Result<Plan, SpecError> {
        if let Some(phases) = &self.phases {
            return self.plan_of_phases(phases);
        }
        let law = self.law()?;
        let max_concurrency = self.cap()?;
        let warmups = in_range("--num-warmups", self.num_warmups, 0, 1 << 20)?;
        let probe_rate = self.probe_rate()?;
        let duration = self.checked_duration()?;
        let limit = self.request_limit(&law)?;
        let normalize = self.normalize(&law)?;
        if let Some(sessions) = &self.sessions {
            sessions.check()?;
        }

        let all_at_once = matches!(law, Law::AtOnce);
        let (requests, offsets) = match (&law, limit) {
            (Law::AtOnce, None) => (ENDLESS, None),
            (Law::AtOnce, Some(n)) => (n, None),
            (Law::Schedule, _) => {
                let offsets = self.checked_schedule(limit)?;
                (offsets.len() as u32, Some(offsets))
            }
            (_, Some(n)) if self.sessions.is_some() => {
                let offsets = self.beginnings(&law, n, normalize);
                if offsets.last().is_some_and(|&last| last > LONGEST.ns()) {
                    return Err(self.too_long());
                }
                (n, Some(offsets))
            }
            (_, limit) => {
                let offsets = arrivals::draw(&law, limit, duration, normalize, self.seed);
                if offsets.last().is_some_and(|&last| last > LONGEST.ns()) {
                    return Err(self.too_long());
                }
                (offsets.len() as u32, Some(offsets))
            }
        };
        let drawn = requests;
        // Arrivals from the end of the run on would never be sent: they are no part of the plan.
        let (requests, offsets) = match (offsets, duration) {
            (Some(mut offsets), Some(duration)) => {
                offsets.truncate(offsets.partition_point(|&at| at < duration.ns()));
                (offsets.len() as u32, Some(offsets))
            }
            (offsets, _) => (requests, offsets),
        };
        if requests == 0 {
            return Err(wrong(
                "--duration",
                duration.as_ref().map(|d| d as &dyn fmt::Display),
                "no request arrives in that time",
                "run longer or raise --request-rate",
            ));
        }
        Ok(Plan {
            law,
            normalize,
            requests,
            drawn,
            endless: all_at_once && limit.is_none(),
            offsets: offsets.map(Arc::from),
            phases: None,
            sessions: self.sessions.as_ref().map(|all| {
                let turns = all.turns[..requests as usize].to_vec();
                Arc::new(Sessions { turns, ..all.clone() })
            }),
            warmups,
            max_concurrency,
            duration,
            probe_rate,
            seed: self.seed,
            stride: Stride::WHOLE,
        })
    }

    /// Phases say everything about when requests leave, so whatever else would is refused.
    fn plan_of_phases(&self, phases: &[Phase]) -> Result<Plan, SpecError> {
        let others = [
            ("--num-prompts", self.num_prompts.is_some()),
            ("--request-rate", self.request_rate.is_some()),
            ("--burstiness", self.burstiness.is_some()),
            ("--ramp-up-strategy", self.ramp_up_strategy.is_some()),
            ("--arrival-normalize", self.arrival_normalize != Normalize::None),
            ("--max-concurrency", self.max_concurrency.is_some()),
            ("--duration", self.duration.is_some()),
            ("--dataset-path", self.schedule.is_some() || self.sessions.is_some()),
        ];
        if let Some((flag, _)) = others.into_iter().find(|(_, given)| *given) {
            let hint = "the phases say how many requests there are, and when they leave";
            return Err(wrong(flag, None, "contradicts the phases", hint));
        }
        let phases = Phases::plan(phases, self.seed).map_err(|e| wrong("scenario", None, e.to_string(), ""))?;
        Ok(Plan {
            law: Law::Phases,
            normalize: Normalize::None,
            requests: phases.requests,
            drawn: phases.requests,
            endless: phases.endless,
            offsets: None,
            phases: Some(Arc::new(phases)),
            sessions: None,
            warmups: in_range("--num-warmups", self.num_warmups, 0, 1 << 20)?,
            max_concurrency: None,
            duration: None,
            probe_rate: self.probe_rate()?,
            seed: self.seed,
            stride: Stride::WHOLE,
        })
    }

    fn law(&self) -> Result<Law, SpecError> {
        let burstiness = self.burstiness.unwrap_or(1.0);
        if burstiness.is_nan() || burstiness <= 0.0 {
            return Err(wrong(
                "--burstiness",
                Some(&burstiness),
                "must be greater than 0",
                "1 is Poisson, below 1 is burstier, inf is a constant gap",
            ));
        }
        if let Some(rate) = self.request_rate
            && (rate.is_nan() || rate <= 0.0)
        {
            return Err(wrong(
                "--request-rate",
                Some(&rate),
                "must be greater than 0",
                "give requests per second, or inf for all at once",
            ));
        }
        if self.ramp_up_strategy.is_some() || self.ramp_up_start_rps.is_some() || self.ramp_up_end_rps.is_some() {
            return self.ramp(burstiness);
        }
        if self.schedule.is_some() {
            if self.request_rate.is_some() {
                return Err(wrong(
                    "--request-rate",
                    None,
                    "the arrival times come from the trace",
                    "drop --request-rate, or scale the trace's own rate",
                ));
            }
            if self.burstiness.is_some() {
                return Err(wrong("--burstiness", None, "the arrival times come from the trace", "drop --burstiness"));
            }
            return Ok(Law::Schedule);
        }
        let rate = self.request_rate.unwrap_or(f64::INFINITY);
        Ok(match (rate, burstiness) {
            (f64::INFINITY, _) => Law::AtOnce,
            (rate, f64::INFINITY) => Law::Constant { rate },
            (rate, 1.0) => Law::Poisson { rate },
            (rate, burstiness) => Law::Gamma { rate, burstiness },
        })
    }

    fn ramp(&self, burstiness: f64) -> Result<Law, SpecError> {
        let Some(strategy) = self.ramp_up_strategy else {
            return Err(wrong(
                "--ramp-up-strategy",
                None,
                "missing, though a ramp's start or end is given",
                "add --ramp-up-strategy linear or exponential",
            ));
        };
        if self.request_rate.is_some() {
            return Err(wrong(
                "--request-rate",
                None,
                "contradicts --ramp-up-strategy, which sets the rate",
                "drop one of the two",
            ));
        }
        if self.schedule.is_some() {
            return Err(wrong(
                "--ramp-up-strategy",
                None,
                "the arrival times come from the trace",
                "drop the ramp, or scale the trace's own rate",
            ));
        }
        let start = ramp_end("--ramp-up-start-rps", self.ramp_up_start_rps)?;
        let end = ramp_end("--ramp-up-end-rps", self.ramp_up_end_rps)?;
        if start > end {
            return Err(wrong(
                "--ramp-up-start-rps",
                Some(&start),
                format!("is above --ramp-up-end-rps {end}"),
                "a ramp goes up; swap the two",
            ));
        }
        if end == 0.0 {
            return Err(wrong("--ramp-up-end-rps", Some(&end), "no request would ever be sent", "give a rate above 0"));
        }
        if strategy == Ramp::Exponential && start == 0.0 {
            return Err(wrong(
                "--ramp-up-start-rps",
                Some(&start),
                "an exponential ramp can't start at 0",
                "start above 0, or use --ramp-up-strategy linear",
            ));
        }
        Ok(Law::Ramp { strategy, start, end, burstiness: burstiness.is_finite().then_some(burstiness) })
    }

    fn cap(&self) -> Result<Option<u32>, SpecError> {
        let Some(cap) = self.max_concurrency else { return Ok(None) };
        if cap <= 0 {
            return Err(wrong("--max-concurrency", Some(&cap), "must be at least 1", "leave it out for no limit"));
        }
        in_range("--max-concurrency", cap, 1, i64::from(u32::MAX)).map(Some)
    }

    fn probe_rate(&self) -> Result<Option<f64>, SpecError> {
        let rate = self.probe_request_rate;
        if !(0.0..=1e6).contains(&rate) {
            return Err(wrong(
                "--probe-request-rate",
                Some(&rate),
                "must be between 0 and 1e6 probes per second",
                "0 means no probes",
            ));
        }
        Ok((rate > 0.0).then_some(rate))
    }

    fn checked_duration(&self) -> Result<Option<Dur>, SpecError> {
        match self.duration {
            Some(d) if d.is_zero() => Err(wrong("--duration", Some(&d), "must be longer than 0", "")),
            other => Ok(other),
        }
    }

    /// How many requests at most; `None`: only the duration ends the plan.
    fn request_limit(&self, law: &Law) -> Result<Option<u32>, SpecError> {
        if let Some(sessions) = &self.sessions {
            return self.turn_limit(sessions.turns.len()).map(Some);
        }
        match self.num_prompts {
            Some(0) => Err(wrong("--num-prompts", Some(&0), "must be at least 1", "")),
            Some(n) if n > MOST_REQUESTS => {
                Err(wrong("--num-prompts", Some(&n), format!("must be at most {MOST_REQUESTS}"), ""))
            }
            Some(n) => Ok(Some(n as u32)),
            None if matches!(law, Law::Schedule) => Ok(None),
            None => match (law, self.duration) {
                (_, None) => Ok(Some(DEFAULT_REQUESTS as u32)),
                // A ramp is spread over its requests, so it has no shape without their number.
                (Law::Ramp { .. }, Some(_)) => Err(wrong(
                    "--num-prompts",
                    None,
                    "missing: a ramp is spread over the number of requests",
                    "give --num-prompts beside --duration",
                )),
                (Law::AtOnce, Some(_)) if self.max_concurrency.is_none() => Err(wrong(
                    "--num-prompts",
                    None,
                    "missing: an infinite rate without a cap has no end",
                    "give --num-prompts, --max-concurrency or --request-rate beside --duration",
                )),
                (law, Some(duration)) => {
                    let expected = law.mean_rate() * duration.secs();
                    if expected.is_finite() && expected > MOST_REQUESTS as f64 {
                        return Err(self.too_long());
                    }
                    Ok(None)
                }
            },
        }
    }

    /// How many of the sessions' turns are wanted.
    fn turn_limit(&self, turns: usize) -> Result<u32, SpecError> {
        match self.num_prompts {
            Some(0) => Err(wrong("--num-prompts", Some(&0), "must be at least 1", "")),
            Some(n) if n > turns as u64 => Err(wrong(
                "--num-prompts",
                Some(&n),
                format!("the sessions have only {turns} turns"),
                "give at most that many, or leave it out",
            )),
            Some(n) => Ok(n as u32),
            None if turns as u64 > MOST_REQUESTS => {
                Err(wrong("--dataset-path", None, format!("more than {MOST_REQUESTS} requests"), ""))
            }
            None => Ok(turns as u32),
        }
    }

    /// The law's arrivals for the sessions' beginnings. A turn that follows stands with what is before it in the plan.
    fn beginnings(&self, law: &Law, n: u32, normalize: Normalize) -> Vec<u64> {
        let Some(sessions) = &self.sessions else { return Vec::new() };
        let begun = sessions.begun(n as usize) as u32;
        let mut drawn = arrivals::draw(law, Some(begun), None, normalize, self.seed).into_iter();
        let mut at = 0;
        let turns = sessions.turns.iter().take(n as usize);
        turns
            .map(|turn| {
                at = if turn.is_none() { drawn.next().unwrap_or(at) } else { at };
                at
            })
            .collect()
    }

    fn normalize(&self, law: &Law) -> Result<Normalize, SpecError> {
        if self.arrival_normalize == Normalize::None {
            return Ok(Normalize::None);
        }
        if matches!(law, Law::Schedule) {
            return Err(wrong(
                "--arrival-normalize",
                None,
                "the arrival times come from the trace",
                "drop --arrival-normalize",
            ));
        }
        if self.num_prompts.is_none() && self.duration.is_some() {
            return Err(wrong(
                "--arrival-normalize",
                None,
                "needs the number of requests",
                "give --num-prompts beside --duration",
            ));
        }
        Ok(Normalize::Vllm)
    }

    fn checked_schedule(&self, limit: Option<u32>) -> Result<Vec<u64>, SpecError> {
        let schedule = self.schedule.as_deref().unwrap_or_default();
        if schedule.is_empty() {
            return Err(wrong("--dataset-path", None, "the trace has no requests", ""));
        }
        if let Some(n) = limit
            && n as usize > schedule.len()
        {
            return Err(wrong(
                "--num-prompts",
                Some(&n),
                format!("the trace has only {} requests", schedule.len()),
                "give at most that many, or leave it out",
            ));
        }
        if schedule.len() as u64 > MOST_REQUESTS {
            return Err(wrong("--dataset-path", None, format!("more than {MOST_REQUESTS} requests"), ""));
        }
        let taken = &schedule[..limit.map_or(schedule.len(), |n| n as usize)];
        if let Some(i) = taken.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(wrong(
                "--dataset-path",
                None,
                format!("request {} arrives before the one ahead of it", i + 1),
                "sort the schedule by time",
            ));
        }
        if taken.last().is_some_and(|&last| last > LONGEST) {
            return Err(wrong(
                "--dataset-path",
                None,
                "the schedule is longer than 100 years",
                "its times must count from the first arrival",
            ));
        }
        Ok(taken.iter().map(|d| d.ns()).collect())
    }

    fn too_long(&self) -> SpecError {
        let flag = if self.ramp_up_strategy.is_some() { "--ramp-up-start-rps" } else { "--request-rate" };
        let value = if self.ramp_up_strategy.is_some() { self.ramp_up_start_rps } else { self.request_rate };
        wrong(
            flag,
            value.as_ref().map(|v| v as &dyn fmt::Display),
            "the schedule would be longer than 100 years or 100 million requests",
            "check the unit: requests per second",
        )
    }
}

fn ramp_end(flag: &'static str, value: Option<f64>) -> Result<f64, SpecError> {
    let Some(rate) = value else {
        return Err(wrong(
            flag,
            None,
            "missing, though --ramp-up-strategy is given",
            "a ramp needs --ramp-up-start-rps and --ramp-up-end-rps",
        ));
    };
    if !rate.is_finite() || rate < 0.0 {
        return Err(wrong(flag, Some(&rate), "must be 0 or more, and finite", "give requests per second"));
    }
    Ok(rate)
}

fn in_range(flag: &'static str, value: i64, low: i64, high: i64) -> Result<u32, SpecError> {
    if !(low..=high).contains(&value) {
        return Err(wrong(flag, Some(&value), format!("must be between {low} and {high}"), ""));
    }
    Ok(value as u32)
}
