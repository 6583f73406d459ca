//! One engine under an open load, without router or clock: rows to compare.

use std::sync::Arc;
use tailbound_clock::{Seed, Time};
use tailbound_engine::{Config, Engine, Event, Law, Profile, SeqId, Submit};
use tailbound_record::{End, Finish, Moment, Row, StampSource};
use tailbound_stats::RunFacts;
use tailbound_workload::{Plan, Spec};

/// What one run is.
#[derive(Clone, Copy)]
pub struct Case {
    /// Requests.
    pub requests: u64,
    /// Requests per second, Poisson.
    pub rate: f64,
    /// Prompts have so many tokens in the median, log-normal, up to 4,000.
    pub prompt: f64,
    /// Answers have so many tokens in the median, log-normal, up to four times as many.
    pub answer: f64,
    /// What arrivals and lengths are drawn from.
    pub seed: u64,
    /// How much slower than its profile the engine decodes.
    pub decode: f64,
    /// How much slower everything is.
    pub all: f64,
}

impl Default for Case {
    fn default() -> Case {
        Case { requests: 1000, rate: 8.0, prompt: 400.0, answer: 100.0, seed: 0, decode: 1.0, all: 1.0 }
    }
}

/// Runs it to its end.
pub fn run(case: &Case) -> (Vec<Row>, RunFacts) {
    let spec = Spec {
        num_prompts: Some(case.requests),
        request_rate: Some(case.rate),
        seed: Seed(case.seed),
        ..Spec::default()
    };
    let plan = Arc::new(spec.plan().unwrap());
    let mut engine = Engine::new(config(case)).unwrap();
    let mut lengths = Seed(case.seed).stream("lengths");
    let mut drawn =
        |median: f64, sigma: f64, most: f64| (median * (sigma * lengths.normal()).exp()).clamp(1.0, most) as u32;
    let asked: Vec<(u32, u32)> = (0..case.requests)
        .map(|_| (drawn(case.prompt, 0.8, 4000.0), drawn(case.answer, 0.6, 4.0 * case.answer)))
        .collect();
    let mut rows = arrivals(&plan);
    let mut effects = Vec::new();
    let mut next = 0;
    while next < rows.len() || engine.next_wake().is_some() {
        let arrival = rows.get(next).and_then(|row| row.at.get(Moment::Scheduled));
        match engine.next_wake() {
            Some(at) if arrival.is_none_or(|arrival| at <= arrival) => {
                engine.on(at, Event::Wake, &mut effects);
                for emit in engine.emitted() {
                    take(&mut rows[emit.id.0 as usize], at, emit.finish.is_some());
                }
            }
            _ => {
                let (prompt, answer) = asked[next];
                // Nothing in common with any other prompt.
                let prompt: Vec<u32> =
                    (0..prompt).map(|i| i.wrapping_mul(7919) ^ (next as u32).wrapping_mul(2_654_435_761)).collect();
                engine.on(
                    arrival.unwrap(),
                    Event::Submit(Submit::new(SeqId(next as u64), &prompt, answer)),
                    &mut effects,
                );
                next += 1;
            }
        }
        effects.clear();
    }
    let end = rows.iter().filter_map(|row| row.at.get(Moment::LastToken)).max().unwrap();
    (rows, RunFacts { request_rate: Some(case.rate), ..RunFacts::new(Time::ZERO, end) })
}

fn config(case: &Case) -> Config {
    let config = Profile::named("llama-3.1-8b-h100").unwrap().config();
    let Law::Aic(mut law) = config.law else { panic!("the profile's law is a closed form") };
    law.decode = law.decode.map(|c| c * case.decode * case.all);
    law.prefill = law.prefill.map(|c| c * case.all);
    Config { law: Law::Aic(law), ..config }
}

fn arrivals(plan: &Plan) -> Vec<Row> {
    let row = |intent: tailbound_workload::Intent| {
        let mut row = Row::new(u64::from(intent.id.0));
        let at = Time::ZERO + intent.offset.unwrap();
        for moment in [Moment::Scheduled, Moment::Released, Moment::WriteStart, Moment::Written] {
            row.at.set(moment, at);
        }
        row.stamps = StampSource::Virtual;
        row
    };
    plan.measured().map(row).collect()
}

fn take(row: &mut Row, at: Time, last: bool) {
    row.chunks.push(at, row.chunks.len() as u32, 1, true);
    row.at.set_first(Moment::FirstToken, at);
    if last {
        row.at.set(Moment::LastToken, at);
        row.at.set(Moment::StreamEnd, at);
        row.end = End::Done(Finish::Length);
    }
}
