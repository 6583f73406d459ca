use super::replay::{Seen, simulate};
use super::squares::solve;
use crate::{Aic, Config, ConfigError, Transfer};
use tailbound_clock::Dur;

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
/// The whole run is simulated again and again, and what is made small is the logarithm of simulated over measured
/// TTFT and TPOT of the first 70 % of its requests. Five numbers are moved: what every step takes, what a sequence, a token of
/// its context, a prompt token and a pair of tokens in a prompt's attention add.
///
/// First the schedule of a simulation is held, in which all times are sums of the five, and the five are moved to where these sums come
/// nearest; then it is simulated anew: from several starts, of which the best goes on in small steps of each number. What the run doesn't tell of (attention, if all prompts are short) stays about where it began: usual
/// proportions of what fast requests took.
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
    let config = alone(config);
    let usual = start(&asked);
    simulate(&asked, &config, &law(&usual))?;

    let seen = (asked.len() as f64 * LEARNT) as usize;
    let run = Run { asked: &asked, config: &config, seen, usual: &usual };
    let (mut at, mut least, mut runs) = (usual.clone(), f64::INFINITY, 1);
    for shift in starts() {
        let from: Vec<f64> = usual.iter().zip(shift).map(|(x, s)| x + s).collect();
        let (to, loss, tried) = run.held(from);
        runs += tried;
        if loss < least {
            (at, least) = (to, loss);
        }
    }
    // A small step in one number may open a way that a held schedule doesn't see.
    for _ in 0..2 {
        let (near, tried) = descend(at, |at| run.loss(at));
        let (to, loss, held) = run.held(near.clone());
        at = if run.loss(&near) <= loss { near } else { to };
        runs += tried + held + 1;
    }
    let law = law(&at);
    let times = simulate(&asked, &config, &law)?;
    Ok(Learnt {
        law,
        learnt: errors(&asked[..seen], &times[..seen]),
        held_out: errors(&asked[seen..], &times[seen..]),
        runs,
    })
}

/// An engine in which what the server found in its cache is there at once, and nothing else is.
fn alone(config: &Config) -> Config {
    Config {
        prefix_caching: false,
        kv_bytes_per_token: 1.0,
        transfer: Some(Transfer { rate: f64::MAX, latency: Dur::ZERO }),
        ..config.clone()
    }
}

/// How far from the usual numbers searches begin, as logarithms: with dearer sequences, dearer contexts, cheap and dear prompts.
fn starts() -> impl Iterator<Item = [f64; 5]> {
    [0.0, 2.0].into_iter().flat_map(|sequence| {
        [0.0, 2.0].into_iter().flat_map(move |context| {
            [-1.5, 0.0, 1.0].into_iter().map(move |prompt| [0.0, sequence, context, prompt, 0.0])
        })
    })
}

/// What is learnt from.
struct Run<'a> {
    asked: &'a [Asked],
    config: &'a Config,
    /// Requests that are looked at; the others only keep them company.
    seen: usize,
    usual: &'a [f64],
}

/// How much a number's distance from the usual one counts, against a request's from what was measured. It decides
/// only where requests say nothing.
const PULL: f64 = 0.01;

impl Run<'_> {
    fn of(&self, at: &[f64], times: &[Seen]) -> Vec<f64> {
        let pairs = self.asked.iter().zip(times).take(self.seen);
        let pull = at.iter().zip(self.usual).map(|(x, usual)| PULL * (x - usual));
        pairs.flat_map(|(a, t)| [ratio(t.ttft, Some(a.ttft)), ratio(t.tpot, a.tpot)]).chain(pull).collect()
    }

    /// What is left at a point. Not squares: a request that in the model just misses a step must not decide everything.
    fn loss(&self, at: &[f64]) -> f64 {
        simulate(self.asked, self.config, &law(at)).map_or(f64::INFINITY, |times| sizes(&self.of(at, &times)))
    }

    /// Slopes of the residuals by each number as long as the schedule stays as it is.
    fn slopes(&self, at: &[f64], times: &[Seen]) -> Vec<Vec<f64>> {
        let slope = |j: usize| {
            let own = libm::exp(at[j]);
            let share = move |work: f64, whole: f64| if whole > 0.0 { own * work / whole } else { 0.0 };
            let pairs = self.asked.iter().zip(times).take(self.seen);
            let told = move |a: &Asked, s: f64| if a.tpot.is_some() { s } else { 0.0 };
            let of = pairs.flat_map(move |(a, t)| [share(t.first[j], t.ttft), told(a, share(t.next[j], t.tpot))]);
            of.chain((0..at.len()).map(move |i| if i == j { PULL } else { 0.0 })).collect()
        };
        (0..at.len()).map(slope).collect()
    }

    /// Simulates, goes to where the times of that very schedule come nearest to the measured ones, and again. Requests for which the
    /// schedule is plainly another than it was count little. Returns the best point it came by, what is left there, and how often it
    /// simulated.
    fn held(&self, mut at: Vec<f64>) -> (Vec<f64>, f64, u32) {
        const ROUNDS: u32 = 24;
        let mut best = (at.clone(), f64::INFINITY);
        for round in 0..ROUNDS {
            let Ok(times) = simulate(self.asked, self.config, &law(&at)) else { return (best.0, best.1, round) };
            let mut residuals = self.of(&at, &times);
            let loss = sizes(&residuals);
            if loss < best.1 {
                best = (at.clone(), loss);
            }
            let mut slopes = self.slopes(&at, &times);
            for (i, weight) in weights(&residuals).into_iter().enumerate() {
                residuals[i] *= weight;
                slopes.iter_mut().for_each(|slope| slope[i] *= weight);
            }
            // Later steps are shorter, or it might go round in a circle.
            let share = if round < ROUNDS / 2 { 1.0 } else { 0.5 };
            let step = solve(&slopes, &residuals, 1e-3);
            at.iter_mut().zip(step).for_each(|(x, d)| *x -= share * d.clamp(-1.0, 1.0));
        }
        (best.0, best.1, ROUNDS)
    }
}

fn sizes(residuals: &[f64]) -> f64 {
    residuals.iter().map(|r| r.abs()).sum()
}

/// Roots of Cauchy's weights, his scale twice the median of what is left.
fn weights(residuals: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = residuals.iter().map(|r| r.abs()).collect();
    all.sort_by(f64::total_cmp);
    let scale = (2.0 * all[all.len() / 2]).max(1e-4);
    residuals.iter().map(|r| 1.0 / libm::sqrt(1.0 + (r / scale) * (r / scale))).collect()
}

/// What a run comes to is a staircase in the law, since a request that misses a step waits for the next one: each number in turn is
/// tried a little up and a little down, by less and less (compass search).
fn descend(mut at: Vec<f64>, loss: impl Fn(&[f64]) -> f64) -> (Vec<f64>, u32) {
    const MOST: u32 = 150;
    let (mut best, mut evaluations, mut reach) = (loss(&at), 1, 0.1);
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

fn errors(asked: &[Asked], times: &[Seen]) -> Errors {
    let ttft: Vec<(f64, f64)> = asked.iter().zip(times).map(|(a, t)| (t.ttft, a.ttft)).collect();
    let tpot = asked.iter().zip(times).filter_map(|(a, t)| Some((t.tpot, a.tpot?)));
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
    use crate::Law;
    use tailbound_clock::Seed;

    /// Step, sequence, context, prompt token, pair: as of a 32B model; a small one; one that prompts hardly slow down; one whose
    /// sequences cost much.
    const LAWS: [[f64; 5]; 4] = [
        [9.0, 0.04, 5e-5, 0.06, 2e-6],
        [6.4, 0.011, 4e-5, 0.018, 1e-6],
        [25.0, 0.1, 2e-5, 0.01, 5e-7],
        [4.0, 0.5, 1e-4, 0.08, 4e-6],
    ];

    fn known([a, b, c, d, e]: [f64; 5]) -> Aic {
        Aic { decode: [a, b, c], prefill: [a, d, e], knee: 0.0, shared: None }
    }

    /// Requests whose measured times are those of a law, each times e to the power of `noise` normal.
    fn run(law: &Aic, noise: f64) -> (Vec<Asked>, Config) {
        let config = Config::new(Law::Aic(*law), 8000, 8192);
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
        let times = simulate(&asked, &alone(&config), law).expect("a sound engine");
        for (a, t) in asked.iter_mut().zip(times) {
            let mut blur = || libm::exp(noise * rng.normal());
            (a.ttft, a.tpot) = (t.ttft * blur(), Some(t.tpot * blur()));
        }
        (asked, config)
    }

    #[test]
    fn a_law_is_learnt_from_what_it_did() {
        for numbers in LAWS {
            let law = known(numbers);
            let (asked, config) = run(&law, 0.0);
            let learnt = learn(&asked, &config).unwrap();
            println!("{numbers:?}: {learnt:?}");
            let e = learnt.held_out;
            assert!(e.ttft_mean.abs() < 0.02 && e.tpot_mean.abs() < 0.02, "{numbers:?}: {learnt:?}");
            assert!(e.ttft[1] < 0.05 && e.tpot[1] < 0.03, "{numbers:?}: {learnt:?}");
            assert!((learnt.law.decode[0] / law.decode[0] - 1.0).abs() < 0.05, "{learnt:?}");
            assert!((learnt.law.prefill[1] / law.prefill[1] - 1.0).abs() < 0.1, "{learnt:?}");
        }
    }

    #[test]
    fn noise_is_not_learnt_and_is_in_the_error() {
        let law = known(LAWS[0]);
        let (asked, config) = run(&law, 0.1);
        let learnt = learn(&asked, &config).unwrap();
        println!("{learnt:?}");
        // Against what the law really does where nothing was learnt from, it is good …
        let seen = (asked.len() as f64 * LEARNT) as usize;
        let clean = run(&law, 0.0).0;
        let own = simulate(&asked, &alone(&config), &learnt.law).unwrap();
        let e = errors(&clean[seen..], &own[seen..]);
        assert!(e.ttft_mean.abs() < 0.05 && e.tpot_mean.abs() < 0.05, "{e:?}");
        // … and the error that is told is that of single requests, of which a tenth is noise: median 0.067, p90 0.16.
        let told = learnt.held_out;
        assert!((0.04..0.12).contains(&told.ttft[0]) && (0.04..0.12).contains(&told.tpot[0]), "{told:?}");
        assert!((0.1..0.3).contains(&told.tpot[1]), "{told:?}");
    }

    #[test]
    fn what_nothing_can_be_learnt_of_is_said() {
        let (asked, config) = run(&known(LAWS[0]), 0.0);
        assert_eq!(learn(&asked[..5], &config), Err(FitError::TooFew(5)));
        let short = Config { max_model_len: 100, ..config };
        assert!(matches!(learn(&asked, &short), Err(FitError::TooLong { .. })));
    }
}
