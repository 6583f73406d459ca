use super::{Stop, least_squares};
use crate::{Aic, Config, ConfigError, Effect, Engine, Event, Law, SeqId, Submit, Transfer};
use tailbound_clock::{Dur, Time};

/// A request of a measured run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// When it was sent, from the first one on.
    pub at: Dur,
    /// Prompt tokens.
    pub input: u32,
    /// Of those, tokens the server found in its cache; 0 if it didn't say.
    pub cached: u32,
    /// Generated tokens.
    pub output: u32,
    /// Time to first token in milliseconds.
    pub ttft: f64,
    /// Time per output token after the first in milliseconds; `None` with fewer than two.
    pub tpot: Option<f64>,
}

/// How far the model is from what was measured, over some requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Requests compared.
    pub requests: usize,
    /// Of the mean TTFT, relative; 0.01 is 1 % too long.
    pub ttft_mean: f64,
    /// Of the mean TPOT.
    pub tpot_mean: f64,
    /// 50th and 90th percentile of the requests' own relative errors, without sign: TTFT.
    pub ttft: [f64; 2],
    /// The same of TPOT.
    pub tpot: [f64; 2],
}

/// A law, and how good it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// The law.
    pub law: Aic,
    /// On the requests it was learnt from: the first of the run.
    pub learnt: Errors,
    /// On the requests it has not seen: the last 30 % of the run.
    pub held_out: Errors,
    /// How often the run was simulated.
    pub runs: u32,
}

/// Why nothing can be learnt.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Too few requests to tell anything apart.
    #[error("{0} answered requests with two or more tokens are too few: at least {LEAST} are needed")]
    TooFew(usize),
    /// The engine's sizes can't be.
    #[error("{0}")]
    Engine(#[from] ConfigError),
    /// A request the engine would not take.
    #[error("request {index} has {input} prompt tokens and {output} more; max_model_len is {max_model_len}")]
    TooLong {
        /// Its place among the requests, from 0.
        index: usize,
        /// Its prompt.
        input: u32,
        /// Its answer.
        output: u32,
        /// The engine's limit.
        max_model_len: u32,
    },
}

const LEAST: usize = 20;

/// The share of the run that is learnt from.
const LEARNT: f64 = 0.7;

/// The law under which an engine of these sizes takes for the requests what was measured (its own law is not looked at).
///
/// The whole run is simulated again and again, and what is made small is the squared logarithm of simulated over measured
/// TTFT and TPOT of the first 70 % of its requests. Five numbers are moved: what every step takes, what a sequence, a token of
/// its context, a prompt token and a pair of tokens in a prompt's attention add. What the run doesn't tell of (attention, if
/// all prompts are short) stays about where it began.
pub fn learn(asked: &[Asked], config: &Config) -> Result<Learnt, FitError> {
    let mut asked = asked.to_vec();
    asked.sort_by_key(|a| a.at);
    let told: Vec<f64> = asked.iter().filter_map(|a| a.tpot).collect();
    if told.len() < LEAST {
        return Err(FitError::TooFew(told.len()));
    }
    let too_long = |a: &Asked| a.input.saturating_add(a.output) > config.max_model_len || a.input == 0;
    if let Some(index) = asked.iter().position(too_long) {
        let Asked { input, output, .. } = asked[index];
        return Err(FitError::TooLong { index, input, output, max_model_len: config.max_model_len });
    }
    let config = Config {
        prefix_caching: false,
        kv_bytes_per_token: 1.0,
        transfer: Some(Transfer { rate: f64::MAX, latency: Dur::ZERO }),
        ..config.clone()
    };
    simulate(&asked, &config, &law(&start(&asked)))?;

    let seen = (asked.len() as f64 * LEARNT) as usize;
    let residuals = |at: &[f64]| {
        let times = simulate(&asked, &config, &law(at)).ok()?;
        let pairs = asked.iter().zip(&times).take(seen);
        Some(pairs.flat_map(|(a, t)| [ratio(t.0, Some(a.ttft)), ratio(t.1, a.tpot)]).collect())
    };
    let fitted = least_squares(&start(&asked), Stop { steps: 25, gain: 1e-3 }, residuals)
        .expect("the start has been simulated just now");
    let (at, tried) = descend(fitted.at, residuals);
    let law = law(&at);
    let times = simulate(&asked, &config, &law)?;
    Ok(Learnt {
        law,
        learnt: errors(&asked[..seen], &times[..seen]),
        held_out: errors(&asked[seen..], &times[seen..]),
        runs: fitted.evaluations + tried,
    })
}

/// Goes on where slopes lead no further: what a run comes to is a staircase in the law, since a request that misses a step waits for the
/// next one. Each number in turn is tried a little up and a little down, by less and less (compass search).
fn descend(mut at: Vec<f64>, residuals: impl Fn(&[f64]) -> Option<Vec<f64>>) -> (Vec<f64>, u32) {
    const MOST: u32 = 600;
    let loss = |at: &[f64]| residuals(at).map_or(f64::INFINITY, |all| all.iter().map(|r| r * r).sum::<f64>());
    let (mut best, mut evaluations, mut reach) = (loss(&at), 1, 0.4);
    while reach > 2e-3 && evaluations < MOST {
        let before = best;
        for i in 0..at.len() {
            for to in [at[i] + reach, at[i] - reach] {
                let from = std::mem::replace(&mut at[i], to);
                let tried = loss(&at);
                evaluations += 1;
                if tried < best {
                    best = tried;
                    break;
                }
                at[i] = from;
            }
        }
        if best > 0.99 * before {
            reach /= 2.0;
        }
    }
    (at, evaluations)
}

/// Five logarithms to begin with: what fast requests of the run took, and usual proportions.
fn start(asked: &[Asked]) -> Vec<f64> {
    let low = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 20].max(1e-3)
    };
    let step = low(&mut asked.iter().filter_map(|a| a.tpot).collect());
    let token =
        low(&mut asked.iter().map(|a| a.ttft / f64::from((a.input - a.cached.min(a.input - 1)).max(1))).collect());
    [0.8 * step, 0.005 * step, 2e-6 * step, 0.5 * token, 2e-5 * token].map(libm::log).to_vec()
}

fn law(at: &[f64]) -> Aic {
    let x: Vec<f64> = at.iter().map(|x| libm::exp(*x)).collect();
    Aic { decode: [x[0], x[1], x[2]], prefill: [x[0], x[3], x[4]], knee: 0.0, shared: None }
}

/// ln(simulated / measured), bounded: a request that took far longer for another reason must not decide everything.
fn ratio(simulated: f64, measured: Option<f64>) -> f64 {
    match measured {
        Some(measured) if measured > 0.0 && simulated > 0.0 => libm::log(simulated / measured).clamp(-1.0, 1.0),
        _ => 0.0,
    }
}

/// TTFT and TPOT (0 of a single token) of each request in milliseconds.
fn simulate(asked: &[Asked], config: &Config, law: &Aic) -> Result<Vec<(f64, f64)>, ConfigError> {
    let mut engine = Engine::new(Config { law: Law::Aic(*law), ..config.clone() })?;
    let mut times = vec![(0.0, 0.0); asked.len()];
    let mut out: Vec<Effect> = Vec::new();
    let mut note = |engine: &Engine| {
        for f in engine.finished() {
            let (Some(first), Some(last)) = (f.first_token, f.last_token) else { continue };
            let gaps = f64::from(f.generated.max(2) - 1);
            times[f.id.0 as usize] = (first.since(f.queued).ms(), last.since(first).ms() / gaps);
        }
    };
    let longest = asked.iter().map(|a| a.input).max().unwrap_or(1);
    let prompt = vec![0; longest as usize];
    for (id, a) in asked.iter().enumerate() {
        let at = Time::ZERO + a.at;
        while let Some(wake) = engine.next_wake().filter(|wake| *wake < at) {
            out.clear();
            engine.on(wake, Event::Wake, &mut out);
            note(&engine);
        }
        let prompt = &prompt[..a.input as usize];
        let submit = Submit { remote: a.cached, ..Submit::new(SeqId(id as u64), prompt, a.output.max(1)) };
        engine.on(at, Event::Submit(submit), &mut out);
    }
    while let Some(wake) = engine.next_wake() {
        out.clear();
        engine.on(wake, Event::Wake, &mut out);
        note(&engine);
    }
    Ok(times)
}

fn errors(asked: &[Asked], times: &[(f64, f64)]) -> Errors {
    let ttft: Vec<(f64, f64)> = asked.iter().zip(times).map(|(a, t)| (t.0, a.ttft)).collect();
    let tpot = asked.iter().zip(times).filter_map(|(a, t)| Some((t.1, a.tpot?)));
    let tpot: Vec<(f64, f64)> = tpot.collect();
    let mean = |pairs: &[(f64, f64)]| {
        let sum = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        sum.0 / sum.1 - 1.0
    };
    let percentiles = |pairs: &[(f64, f64)]| {
        let mut sizes: Vec<f64> = pairs.iter().map(|(s, m)| (s / m - 1.0).abs()).collect();
        sizes.sort_by(f64::total_cmp);
        [50, 90]
            .map(|q| sizes.get((sizes.len() * q / 100).min(sizes.len().saturating_sub(1))).copied().unwrap_or(f64::NAN))
    };
    Errors {
        requests: asked.len(),
        ttft_mean: mean(&ttft),
        tpot_mean: mean(&tpot),
        ttft: percentiles(&ttft),
        tpot: percentiles(&tpot),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_clock::Seed;

    const TRUE: Aic = Aic { decode: [9.0, 0.04, 5e-5], prefill: [9.0, 0.06, 2e-6], knee: 0.0, shared: None };

    fn run() -> (Vec<Asked>, Config) {
        let config = Config::new(Law::Aic(TRUE), 4000, 8192);
        let mut rng = Seed(4).stream("fit");
        let mut at = 0.0;
        let mut asked: Vec<Asked> = (0..120)
            .map(|_| {
                at += rng.exponential() / 8.0;
                let input = rng.between(50, 3000) as u32;
                let cached = if rng.unit() < 0.3 { input / 2 } else { 0 };
                let output = rng.between(2, 80) as u32;
                Asked { at: Dur::from_secs_f64(at), input, cached, output, ttft: 0.0, tpot: None }
            })
            .collect();
        let plain = Config {
            prefix_caching: false,
            kv_bytes_per_token: 1.0,
            transfer: Some(Transfer { rate: f64::MAX, latency: Dur::ZERO }),
            ..config.clone()
        };
        let times = simulate(&asked, &plain, &TRUE).expect("a sound engine");
        for (a, t) in asked.iter_mut().zip(times) {
            (a.ttft, a.tpot) = (t.0, Some(t.1));
        }
        (asked, config)
    }

    #[test]
    fn a_law_is_approached_from_what_it_did() {
        let (asked, config) = run();
        let learnt = learn(&asked, &config).unwrap();
        let e = learnt.held_out;
        // What every step takes is found; it stops short of what prompt tokens and sequences add, and its error says so.
        assert!((learnt.law.decode[0] / TRUE.decode[0] - 1.0).abs() < 0.05, "{learnt:?}");
        assert!(e.ttft_mean.abs() < 0.15 && e.tpot_mean.abs() < 0.1, "{learnt:?}");
        assert!(learnt.learnt.ttft_mean.abs() < 0.02, "{learnt:?}");
    }

    #[test]
    fn what_nothing_can_be_learnt_of_is_said() {
        let (asked, config) = run();
        assert_eq!(learn(&asked[..5], &config), Err(FitError::TooFew(5)));
        let short = Config { max_model_len: 100, ..config };
        assert!(matches!(learn(&asked, &short), Err(FitError::TooLong { .. })));
    }
}
