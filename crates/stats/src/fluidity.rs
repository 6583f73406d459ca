//! etalon's metrics: whether tokens came in time for somebody who reads along.
//!
//! A request's first token has a deadline, and every later token one after the token before it. A token that comes early leaves slack for those
//! that follow; a token later than its slack starts the deadlines anew. The *fluidity-index* is 1 − the share of deadlines missed, and
//! there are two of it: etalon's documents count tokens (a late token is one miss of so many tokens), while its code charges a long stall
//! as all the deadlines it slept through and doesn't count the late token itself. Both are here, under both names.
//!
//! Times are seconds as `f64`, as in etalon's own code, so that its figures come out to the last bit.

use crate::request::weighted;
use crate::{Dist, RunFacts};
use tailbound_record::{Moment, Row};

/// When tokens are due, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deadlines {
    /// The first token, from the request's start; `None`: it is not judged, and the second has no slack from it.
    pub ttft: Option<f64>,
    /// Every other token, from the one before it.
    pub tbt: f64,
}

/// How the tokens of one request, or of many, met their deadlines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fluidity {
    /// Deadlines missed, as the code counts them: a stall misses every deadline within it.
    pub missed: u64,
    /// Deadlines in all, as the code counts them.
    pub deadlines: u64,
    /// Tokens that came late.
    pub late: u64,
    /// Tokens judged.
    pub tokens: u64,
}

impl Fluidity {
    /// Of a request's gaps: the TTFT, then the time before each later token.
    pub fn of(gaps: &[f64], due: Deadlines) -> Fluidity {
        let mut f = Fluidity::default();
        let mut slack = 0.0;
        for (i, &gap) in gaps.iter().enumerate() {
            let (deadline, first) = match (i, due.ttft) {
                (0, None) => continue,
                (0, Some(ttft)) => (ttft, true),
                _ => (due.tbt, false),
            };
            f.tokens += 1;
            if gap <= deadline + slack {
                slack += deadline - gap;
                f.deadlines += 1;
                continue;
            }
            let missed = match first {
                true => 1.0 + floor_div(gap - slack - deadline, due.tbt),
                false => floor_div(gap - slack, due.tbt),
            };
            f.late += 1;
            f.missed += missed as u64;
            f.deadlines += missed as u64;
            slack = 0.0;
        }
        f
    }

    /// Both together: the service level of many requests.
    pub fn and(self, other: Fluidity) -> Fluidity {
        Fluidity {
            missed: self.missed + other.missed,
            deadlines: self.deadlines + other.deadlines,
            late: self.late + other.late,
            tokens: self.tokens + other.tokens,
        }
    }

    /// Missed of all deadlines, as the code counts; 0 where there are none, as there.
    pub fn miss_rate(&self) -> f64 {
        if self.deadlines == 0 { 0.0 } else { self.missed as f64 / self.deadlines as f64 }
    }

    /// The fluidity-index of etalon's code: 1 − [`Fluidity::miss_rate`].
    pub fn index(&self) -> f64 {
        1.0 - self.miss_rate()
    }

    /// The fluidity-index of etalon's documents: tokens in time of all tokens; `None` of none.
    pub fn index_by_tokens(&self) -> Option<f64> {
        (self.tokens > 0).then(|| (self.tokens - self.late) as f64 / self.tokens as f64)
    }
}

/// Python's `//`, which floors the quotient of what is left after the remainder: exact where the division itself rounds up.
fn floor_div(a: f64, b: f64) -> f64 {
    let quotient = (a - libm::fmod(a, b)) / b;
    let floor = libm::floor(quotient);
    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
}

/// The share of deadlines that a request may miss for its tokens to count as fluid, in etalon's throughput.
pub const TARGET_MISS_RATE: f64 = 0.1;
/// The quantile over requests in etalon's throughput.
pub const QUANTILE: f64 = 0.99;
/// Where the search for a deadline begins, and what it says if even that is missed, s.
const FAR: f64 = 1e10;
const GRANULARITY: f64 = 1e-4;

/// The least time between tokens with which a request misses no more than `target` of its deadlines, to 0.1 ms, by etalon's own bisection
/// (it steps over the middle by its granularity, so the figure is up to three of those above the least); 10¹⁰ s if none would do.
pub fn least_tbt(gaps: &[f64], ttft: Option<f64>, target: f64) -> f64 {
    let (mut low, mut high, mut found) = (0.0, FAR, FAR);
    while high - low > GRANULARITY {
        let tbt = (low + high) / 2.0;
        if Fluidity::of(gaps, Deadlines { ttft, tbt }).miss_rate() > target {
            low = tbt + GRANULARITY;
        } else {
            found = tbt;
            high = tbt - GRANULARITY;
        }
    }
    found
}

/// etalon's three throughputs, tokens/s for each user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenRates {
    /// 1 / mean TPOT.
    pub by_tpot: f64,
    /// 1 / the 99th percentile of all gaps between tokens.
    pub by_tbt: f64,
    /// The fluid token rate: so many tokens/s can be read along in 99 % of requests, missing at most a tenth of the deadlines, first
    /// tokens apart.
    pub fluid: f64,
}

impl TokenRates {
    /// Of each request's gaps without its TTFT, s. `None` where no request has a gap.
    pub fn of(requests: &[Vec<f64>]) -> Option<TokenRates> {
        let gaps: Vec<f64> = requests.iter().flatten().copied().collect();
        if gaps.is_empty() {
            return None;
        }
        let tpots: Vec<f64> = requests.iter().map(|r| r.iter().sum::<f64>() / r.len().max(1) as f64).collect();
        let least = requests.iter().map(|r| {
            let after: Vec<f64> = std::iter::once(0.0).chain(r.iter().copied()).collect();
            least_tbt(&after, None, TARGET_MISS_RATE)
        });
        Some(TokenRates {
            by_tpot: 1.0 / (tpots.iter().sum::<f64>() / tpots.len() as f64),
            by_tbt: 1.0 / Dist::new(gaps).percentile(100.0 * QUANTILE)?,
            fluid: 1.0 / Dist::new(least.collect()).percentile(100.0 * QUANTILE)?,
        })
    }
}

/// A row's gaps, s: the TTFT from the write, then the time before each token. Tokens that came in one event came at once, the
/// first of them after the gap: nobody could read them earlier. `None` of a request that didn't complete.
pub fn gaps(row: &Row, open_loop: bool) -> Option<Vec<f64>> {
    let start = if open_loop {
        row.at.get(Moment::Scheduled).or(row.at.get(Moment::WriteStart))
    } else {
        row.at.get(Moment::WriteStart)
    };
    let (mut last, mut gaps) = (start.filter(|_| row.ok())?, Vec::new());
    for (chunk, tokens) in weighted(row).filter(|(_, tokens)| *tokens > 0) {
        gaps.push(chunk.at.since(last).secs());
        gaps.extend(std::iter::repeat_n(0.0, tokens as usize - 1));
        last = chunk.at;
    }
    Some(gaps)
}

/// etalon's figures of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// When tokens were due.
    pub due: Deadlines,
    /// All completed requests' deadlines together: the service level.
    pub level: Fluidity,
    /// Each request's fluidity-index as etalon's code defines it.
    pub index: Dist,
    /// The same as its documents define it, by tokens.
    pub index_by_tokens: Dist,
    /// Tokens/s for each user; `None` where no answer had two tokens.
    pub rates: Option<TokenRates>,
}

/// The figures while rows are looked at.
pub(crate) struct Collect {
    due: Deadlines,
    open_loop: bool,
    level: Fluidity,
    index: Vec<f64>,
    index_by_tokens: Vec<f64>,
    gaps: Vec<Vec<f64>>,
}

impl Collect {
    /// `None` where no deadlines are asked for.
    pub(crate) fn new(facts: &RunFacts) -> Option<Collect> {
        Some(Collect {
            due: facts.deadlines?,
            open_loop: facts.open_loop(),
            level: Fluidity::default(),
            index: Vec::new(),
            index_by_tokens: Vec::new(),
            gaps: Vec::new(),
        })
    }

    pub(crate) fn add(&mut self, row: &Row) {
        let Some(mut gaps) = gaps(row, self.open_loop).filter(|gaps| !gaps.is_empty()) else { return };
        let fluidity = Fluidity::of(&gaps, self.due);
        self.level = self.level.and(fluidity);
        self.index.push(fluidity.index());
        self.index_by_tokens.extend(fluidity.index_by_tokens());
        gaps.remove(0);
        if !gaps.is_empty() {
            self.gaps.push(gaps);
        }
    }

    pub(crate) fn finish(self) -> Option<Figures> {
        (!self.index.is_empty()).then(|| Figures {
            due: self.due,
            level: self.level,
            index: Dist::new(self.index),
            index_by_tokens: Dist::new(self.index_by_tokens),
            rates: TokenRates::of(&self.gaps),
        })
    }
}

/// How long a prompt's prefill takes by its length alone: a + b·n + c·n², from runs of one request at a time, by least squares. etalon fits
/// a random forest on a polynomial to the same; its deadline for the first token is this and a slack (0.3 s there).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefillProfile {
    /// Seconds for no token, for each, and for each pair.
    pub coefficients: [f64; 3],
}

impl PrefillProfile {
    /// From prompt lengths in tokens and TTFTs in seconds, errors weighed as shares of what was measured. `None` with fewer than three lengths.
    pub fn fit(measured: &[(f64, f64)]) -> Option<PrefillProfile> {
        let mut lengths: Vec<f64> = measured.iter().map(|m| m.0).collect();
        lengths.sort_unstable_by(f64::total_cmp);
        lengths.dedup();
        let scale = lengths.last().copied().filter(|n| lengths.len() >= 3 && *n > 0.0)?;
        // Normal equations in n / scale, for the numbers' sake.
        let (mut m, mut v) = ([[0.0; 3]; 3], [0.0; 3]);
        for &(n, seconds) in measured.iter().filter(|m| m.1 > 0.0) {
            let x = [1.0, n / scale, (n / scale) * (n / scale)].map(|x| x / seconds);
            for i in 0..3 {
                v[i] += x[i];
                (0..3).for_each(|j| m[i][j] += x[i] * x[j]);
            }
        }
        let [a, b, c] = solve(m, v)?;
        Some(PrefillProfile { coefficients: [a, b / scale, c / (scale * scale)] })
    }

    /// Seconds for a prompt of `n` tokens.
    pub fn seconds(&self, n: f64) -> f64 {
        let [a, b, c] = self.coefficients;
        a + b * n + c * n * n
    }
}

/// Gauss with pivots.
fn solve(mut m: [[f64; 3]; 3], mut v: [f64; 3]) -> Option<[f64; 3]> {
    for i in 0..3 {
        let pivot = (i..3).max_by(|&a, &b| m[a][i].abs().total_cmp(&m[b][i].abs()))?;
        m.swap(i, pivot);
        v.swap(i, pivot);
        if m[i][i].abs() < 1e-300 {
            return None;
        }
        for j in i + 1..3 {
            let factor = m[j][i] / m[i][i];
            (i..3).for_each(|k| m[j][k] -= factor * m[i][k]);
            v[j] -= factor * v[i];
        }
    }
    let mut x = [0.0; 3];
    for i in (0..3).rev() {
        x[i] = (v[i] - (i + 1..3).map(|j| m[i][j] * x[j]).sum::<f64>()) / m[i][i];
    }
    Some(x)
}
