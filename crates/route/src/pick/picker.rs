use super::{Case, Memory, Range, Scratch};

/// What takes one of the scored.
#[derive(Clone, Debug)]
pub(crate) enum Picker {
    /// `max-score-picker`: the best, ties at random.
    MaxScore { count: usize, among: usize },
    /// `random-picker`.
    Random { count: usize },
    /// `weighted-random-picker`: in proportion to the score; if all are 0, any.
    WeightedRandom { count: usize },
    /// One after the other, in the order of their slots.
    RoundRobin,
    /// Fewest requests in flight, ties at random.
    LeastLoad,
    /// The less loaded of two drawn at random.
    PowerOfTwo,
    /// The session's (else the prompt's) place on a ring, with bounded loads.
    ConsistentHash { load_factor: f64 },
    /// SMG's (SGLang's router's) `cache_aware`.
    CacheAware(CacheAware),
    /// The least of Dynamo's cost.
    Dynamo(Dynamo),
}

/// Whoever has the longest beginning of the prompt, if it is long enough and loads aren't too far apart; else the least load.
/// Among equals chance decides, where SMG takes the first: at little load that one got everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheAware {
    pub(crate) producer: usize,
    /// A share of the prompt that must be exceeded.
    pub(crate) threshold: f64,
    /// Loads are too far apart if the most is more than so many requests above the least, …
    pub(crate) apart: u32,
    /// … and more than so many times it.
    pub(crate) times: f64,
}

/// Dynamo's KV router: prefill blocks to be computed there, and blocks that will be decoded over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dynamo {
    pub(crate) producer: Option<usize>,
    pub(crate) prefill_load_scale: f64,
    pub(crate) overlap_credit: f64,
    pub(crate) active_request_weight: f64,
    /// 0: the least cost; otherwise softmax of it.
    pub(crate) temperature: f64,
    pub(crate) block_tokens: u32,
}

impl Picker {
    /// Fills `scratch.picked` with places in `scratch.candidates`, of which there is at least one.
    pub(super) fn pick(&self, case: &Case, memory: &mut Memory, scratch: &mut Scratch) {
        let n = scratch.candidates.len();
        match self {
            Picker::MaxScore { count, among } => {
                best(memory, scratch, (*count).max(*among));
                if *among > 1 {
                    memory.rng.shuffle(&mut scratch.picked);
                }
                scratch.picked.truncate(*count);
            }
            Picker::Random { count } => some(memory, scratch, *count),
            Picker::WeightedRandom { count } => weighted(memory, scratch, *count),
            Picker::RoundRobin => {
                // The turn is a slot, so that one who comes or goes doesn't move the others' turns.
                let next = scratch.candidates.iter().enumerate().filter(|(_, s)| u64::from(**s) >= memory.turn);
                let first = scratch.candidates.iter().enumerate().min_by_key(|(_, s)| **s);
                let chosen = next.min_by_key(|(_, s)| **s).or(first);
                let (place, slot) = chosen.expect("there is a candidate");
                memory.turn = u64::from(*slot) + 1;
                scratch.picked.push(place as u32);
            }
            Picker::LeastLoad => {
                for (total, s) in scratch.total.iter_mut().zip(&scratch.candidates) {
                    *total = -f64::from(case.table.load[*s as usize].requests);
                }
                best(memory, scratch, 1);
            }
            Picker::PowerOfTwo => {
                let a = memory.rng.below(n as u64) as u32;
                let load = |place: u32| case.table.load[scratch.candidates[place as usize] as usize].requests;
                let chosen = if n == 1 {
                    a
                } else {
                    let b = (a + 1 + memory.rng.below(n as u64 - 1) as u32) % n as u32;
                    if load(b) < load(a) { b } else { a }
                };
                scratch.picked.push(chosen);
            }
            Picker::ConsistentHash { load_factor } => {
                let place = memory.ring.find(case, &scratch.candidates, *load_factor);
                match place {
                    Some(place) => scratch.picked.push(place),
                    None => some(memory, scratch, 1),
                }
            }
            Picker::CacheAware(aware) => aware.pick(case, memory, scratch),
            Picker::Dynamo(dynamo) => dynamo.pick(case, memory, scratch),
        }
    }
}

/// The `count` highest totals, ties at random.
fn best(memory: &mut Memory, scratch: &mut Scratch, count: usize) {
    for _ in 0..count.min(scratch.candidates.len()) {
        let total = &mut scratch.total;
        let values = &mut scratch.values;
        values.clear();
        values.extend(total.chunks(STRETCH).map(|stretch| Range::over(stretch).max));
        let top = Range::over(values).max;
        let stretches = || values.iter().enumerate().filter(|(_, best)| **best == top).map(|(i, _)| i * STRETCH);
        let alike = |from: usize| (from..total.len().min(from + STRETCH)).filter(|i| total[*i] == top);
        let ties = stretches().map(|from| alike(from).count()).sum::<usize>();
        if ties == 0 {
            return;
        }
        let chosen = if ties == 1 { 0 } else { memory.rng.below(ties as u64) as usize };
        let place = stretches().flat_map(alike).nth(chosen).expect("as many as were counted");
        scratch.picked.push(place as u32);
        total[place] = f64::NEG_INFINITY;
    }
}

/// Totals of which the best is found first, so that ties are looked for only where there are any.
const STRETCH: usize = 64;

/// Any `count`, without repetition.
fn some(memory: &mut Memory, scratch: &mut Scratch, count: usize) {
    let n = scratch.candidates.len();
    for _ in 0..count.min(n) {
        let left = (n - scratch.picked.len()) as u64;
        let nth = memory.rng.below(left) as usize;
        let place =
            (0..n as u32).filter(|p| !scratch.picked.contains(p)).nth(nth).expect("fewer picked than there are");
        scratch.picked.push(place);
    }
}

/// In proportion to the totals, one after the other: the same distribution as ordering by U^(1/score).
fn weighted(memory: &mut Memory, scratch: &mut Scratch, count: usize) {
    for _ in 0..count.min(scratch.candidates.len()) {
        let sum: f64 = scratch.total.iter().sum();
        if sum <= 0.0 {
            let count = count - scratch.picked.len();
            return some_more(memory, scratch, count);
        }
        let mut left = memory.rng.unit() * sum;
        let fits = |t: &f64| {
            left -= t;
            left < 0.0
        };
        let place = scratch.total.iter().position(fits);
        // Rounding may leave a rest after the last.
        let last = scratch.total.iter().rposition(|t| *t > 0.0);
        let Some(place) = place.or(last) else { return };
        scratch.picked.push(place as u32);
        scratch.total[place] = 0.0;
    }
}

fn some_more(memory: &mut Memory, scratch: &mut Scratch, count: usize) {
    let target = scratch.picked.len() + count;
    while scratch.picked.len() < target.min(scratch.candidates.len()) {
        let had = scratch.picked.len();
        some(memory, scratch, 1);
        debug_assert_eq!(scratch.picked.len(), had + 1);
    }
}

impl CacheAware {
    fn pick(&self, case: &Case, memory: &mut Memory, scratch: &mut Scratch) {
        let Scratch { candidates, total, .. } = scratch;
        let load = |s: u32| case.table.load[s as usize].requests;
        let loads = candidates.iter().map(|s| load(*s));
        let (least, most) = (loads.clone().min().unwrap_or(0), loads.max().unwrap_or(0));
        let unbalanced = most - least > self.apart && f64::from(most) > self.times * f64::from(least);
        let matches = &case.matches[self.producer];
        let longest = candidates.iter().map(|s| matches.ratio(*s)).fold(0.0, f64::max);
        let follow = !unbalanced && longest > self.threshold;
        for (total, s) in total.iter_mut().zip(candidates.iter()) {
            *total = if follow { matches.ratio(*s) } else { -f64::from(load(*s)) };
        }
        best(memory, scratch, 1);
    }
}

impl Dynamo {
    fn pick(&self, case: &Case, memory: &mut Memory, scratch: &mut Scratch) {
        let block = f64::from(self.block_tokens);
        let incoming = libm::ceil(f64::from(case.request.prompt_tokens) / block);
        scratch.values.clear();
        for s in &scratch.candidates {
            let load = &case.table.load[*s as usize];
            let overlap = self.producer.map_or(0.0, |p| {
                let m = &case.matches[p];
                m.weighted(*s) * f64::from(m.block_tokens()) / block * self.overlap_credit
            });
            let prefill = (load.prefill_tokens as f64 / block + incoming - overlap).max(0.0);
            let decode = load.kv_tokens as f64 / block + incoming;
            let cost =
                self.prefill_load_scale * prefill + decode + self.active_request_weight * f64::from(load.requests);
            scratch.values.push(cost);
        }
        let low = scratch.values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = scratch.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if self.temperature <= 0.0 || high <= low {
            for (total, cost) in scratch.total.iter_mut().zip(&scratch.values) {
                *total = -cost;
            }
            return best(memory, scratch, 1);
        }
        for (total, cost) in scratch.total.iter_mut().zip(&scratch.values) {
            *total = libm::exp(-(cost - low) / ((high - low) * self.temperature));
        }
        weighted(memory, scratch, 1);
    }
}
