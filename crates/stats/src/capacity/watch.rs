//! Whether a probe that is still running has said what it has to say.

use super::interval::student;
use super::{Mark, Probe, Requirement};
use serde::{Deserialize, Serialize};
use tailbound_clock::Dur;

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All of its requests were sent.
    Whole,
    /// Ended early: every requirement is plainly met.
    Clear,
    /// Ended early: a requirement is plainly missed.
    Hopeless,
    /// Ended early: the system falls behind the arrivals, so that whatever is measured depends on how long it is measured.
    OverSaturated,
}

/// One request that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// How it fared.
    pub mark: Mark,
    /// From its arrival to its end.
    pub took: Dur,
}

/// Judged requests in a block of the sequential test.
const BLOCK: u32 = 25;
/// Blocks before anything is said.
const BLOCKS: usize = 6;
/// Normal standard errors from the share at which a probe is plain (an error of 1 in 4,000 each time it is looked at), widened by Student's law as long as
/// blocks are few.
const PLAIN: f64 = 3.5;
/// The pace at which latency must grow (seconds a second) for the system to count as falling behind: it then finishes less than 19
/// of 20 arrivals.
const FALLING_BEHIND: f64 = 0.05;
/// And for one that is to run to its end to be stopped: less than four of five.
const FAR_BEHIND: f64 = 0.25;

/// Looks at a probe while it runs: one request after another, in the order in which they end.
#[derive(Clone, Debug)]
pub struct Watch {
    shares: Vec<f64>,
    settle: u64,
    requests: u64,
    seen: u64,
    /// Only an open loop can be fallen behind.
    open: bool,
    /// A dwelling probe is not let off early,
    whole: bool,
    /// and neither is a certifying one that does well.
    certifies: bool,
    blocks: Vec<Blocks>,
    trend: Trend,
}

impl Watch {
    /// Of a probe about to run; `open`: its arrivals don't wait for answers.
    pub fn new(requirements: &[Requirement], probe: &Probe, open: bool) -> Watch {
        Watch {
            shares: requirements.iter().map(|r| r.share).collect(),
            settle: probe.settle,
            requests: probe.requests,
            seen: 0,
            open,
            whole: probe.whole,
            certifies: probe.certifies,
            blocks: requirements.iter().map(|_| Blocks::default()).collect(),
            trend: Trend::default(),
        }
    }

    /// Takes a request; `Some` if the probe should end.
    pub fn on(&mut self, seen: Seen) -> Option<End> {
        self.seen += 1;
        if self.seen <= self.settle {
            return None;
        }
        self.trend.add(seen);
        let mut full = false;
        for (k, blocks) in self.blocks.iter_mut().enumerate() {
            let bit = 1u32 << k;
            if seen.mark.judged & bit != 0 {
                full |= blocks.add(seen.mark.met & bit != 0);
            }
        }
        if !full {
            return None;
        }
        if self.whole {
            // A tenth over capacity may last; where far less than what arrives is finished, nothing more is learnt.
            return (self.open && self.trend.falls_behind(FAR_BEHIND)).then_some(End::OverSaturated);
        }
        // A busy stretch of a system near its knee may be long; what is to be certified is long, too.
        let early = self.certifies && 2 * self.seen < self.requests;
        if self.open && !early && self.trend.falls_behind(FALLING_BEHIND) {
            return Some(End::OverSaturated);
        }
        let ways: Vec<f64> = self.blocks.iter().zip(&self.shares).map(|(b, &share)| b.distance(share)).collect();
        if ways.iter().any(|&z| z < -PLAIN) {
            return Some(End::Hopeless);
        }
        (!self.certifies && ways.iter().all(|&z| z > PLAIN)).then_some(End::Clear)
    }
}

/// Shares met in blocks of consecutive requests.
#[derive(Clone, Debug, Default)]
struct Blocks {
    full: Vec<f64>,
    judged: u32,
    met: u32,
}

impl Blocks {
    /// Whether that filled a block.
    fn add(&mut self, met: bool) -> bool {
        self.judged += 1;
        self.met += u32::from(met);
        if self.judged < BLOCK {
            return false;
        }
        self.full.push(f64::from(self.met) / f64::from(BLOCK));
        (self.judged, self.met) = (0, 0);
        true
    }

    /// How many standard errors the share met lies over the one asked for, as a normal law would have them; 0 as long as nothing can be said. The error is that of
    /// the blocks, but never less than requests that miss in threes would have: few misses, all in one block, are not few by skill.
    fn distance(&self, share: f64) -> f64 {
        let n = self.full.len();
        if n < BLOCKS {
            return 0.0;
        }
        let mean = self.full.iter().sum::<f64>() / n as f64;
        let squares: f64 = self.full.iter().map(|x| (x - mean) * (x - mean)).sum();
        let lagged: f64 = self.full.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
        let of_blocks = (squares + 2.0 * lagged.max(0.0)) / (n as f64 - 1.0) / n as f64;
        let of_threes = 3.0 * share * (1.0 - share) / (n as f64 * f64::from(BLOCK));
        let few = student(PLAIN, n as f64 - 1.0) / PLAIN;
        (mean - share) / libm::sqrt(of_blocks.max(of_threes)) / few
    }
}

/// Latency against arrival, by least squares over the later half of what was seen.
#[derive(Clone, Debug, Default)]
struct Trend {
    points: Vec<(f64, f64)>,
}

/// Requests before a trend is spoken of.
const TREND: usize = 200;

impl Trend {
    fn add(&mut self, seen: Seen) {
        self.points.push((seen.mark.at.ns() as f64 / 1e9, seen.took.secs()));
    }

    /// Latency grows steadily with time in both halves of the later half: a busy stretch of a system that keeps up comes and goes.
    fn falls_behind(&self, pace: f64) -> bool {
        if self.points.len() < TREND {
            return false;
        }
        let later = &self.points[self.points.len() / 2..];
        let (a, b) = later.split_at(later.len() / 2);
        [a, b, later].iter().all(|part| slope(part).is_some_and(|s| s > pace)) && {
            let first = mean(&self.points[..self.points.len() / 4]);
            mean(b) > 2.0 * first
        }
    }
}

fn mean(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|p| p.1).sum::<f64>() / points.len().max(1) as f64
}

fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let (xx, xy) =
        points.iter().fold((0.0, 0.0), |(xx, xy), p| (xx + (p.0 - x) * (p.0 - x), xy + (p.0 - x) * (p.1 - y)));
    (xx > 0.0).then(|| xy / xx)
}
