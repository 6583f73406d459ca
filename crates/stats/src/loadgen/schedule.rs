//! Which samples are loaded, which queries they form, and when each is due.

use super::dist::{below, canonical, exponential, shuffle};
use super::effective::Effective;
use super::rng::Mt19937;
use super::settings::{Library, Scenario};

/// Whether answers or times are wanted from a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Every sample once, every answer logged.
    Accuracy,
    /// Timed.
    Performance,
}

/// Samples that are in memory together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedSet {
    /// Library indices in loading order. A MultiStream set is followed by its own first entries, one fewer than a query
    /// holds, so that a query may start at every sample.
    pub samples: Vec<u32>,
    /// How many entries come before that padding.
    pub unpadded: usize,
}

/// One query: samples that are issued together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its number within the test (accuracy and performance count on).
    pub seq: u64,
    /// When it is due, in ns after the start. Only Server and Offline keep to it.
    pub due_ns: u64,
    /// The number of its first sample within the test; the others follow.
    pub first_sample: u64,
    /// Library indices.
    pub samples: Vec<u32>,
}

/// A phase's queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// In issue order.
    pub queries: Vec<Query>,
    /// As logged: equal issue may have enlarged an Offline query.
    pub samples_per_query: u64,
    /// When the query after the last would have been due, in ns.
    pub duration_ns: u64,
    /// Whether each sample's answer is to be logged, by sample number minus the first.
    pub logged: Vec<bool>,
}

/// Numbers queries and samples across the phases of one test, and holds the stream that picks the answers to be logged.
///
/// LoadGen never seeds that stream, so it starts from the C++ standard's default seed.
#[derive(Clone, Debug)]
pub struct Sequence {
    next_query: u64,
    next_sample: u64,
    logging: Mt19937,
}

impl Default for Sequence {
    fn default() -> Sequence {
        Sequence { next_query: 0, next_sample: 0, logging: Mt19937::new(5489) }
    }
}

/// How the performance set of a library larger than itself is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetChoice {
    /// The first N indices, shuffled: LoadGen 6.0 (January 2026) and later.
    FirstN,
    /// N indices drawn from the whole library: earlier versions.
    WholeLibrary,
}

/// The sets of a phase in loading order. Performance uses the first alone.
pub fn loadable_sets(e: &Effective, library: Library, phase: Phase, choice: SetChoice) -> Vec<LoadedSet> {
    let wanted = match (phase, choice) {
        (Phase::Performance, SetChoice::FirstN) => e.performance_sample_count,
        (Phase::Performance, SetChoice::WholeLibrary) => library.total,
        (Phase::Accuracy, _) => e.accuracy_sample_count,
    };
    let mut order: Vec<u32> = (0..wanted.min(library.total) as u32).collect();
    shuffle(&mut Mt19937::new(e.qsl_rng_seed), &mut order);
    let set_size = e.performance_sample_count.max(1) as usize;
    let padding = match e.requested.scenario {
        Scenario::MultiStream => e.samples_per_query.saturating_sub(1) as usize,
        _ => 0,
    };
    order
        .chunks(set_size)
        .map(|chunk| LoadedSet { samples: padded(chunk, padding), unpadded: chunk.len() })
        .take(if phase == Phase::Performance { 1 } else { usize::MAX })
        .collect()
}

fn padded(chunk: &[u32], padding: usize) -> Vec<u32> {
    chunk.iter().chain(chunk.iter().cycle().take(padding)).copied().collect()
}

/// The queries of one loaded set, drawn in LoadGen's order.
pub fn generate(e: &Effective, set: &LoadedSet, phase: Phase, sequence: &mut Sequence) -> Generated {
    let scenario = e.requested.scenario;
    let loaded = set.samples.len();
    let equal_issue = e.requested.sample_concatenate_permutation;
    let accuracy = phase == Phase::Accuracy;

    let mut samples_per_query = e.samples_per_query as usize;
    if accuracy && scenario == Scenario::Offline {
        samples_per_query = set.unpadded;
    }
    let mut until_ns = e.target_duration_ms * 1_000_000 * if scenario == Scenario::Server { 1 } else { 2 };
    let mut min_queries = e.min_query_count as usize;
    if accuracy || e.requested.performance_issue_unique {
        until_ns = 0;
        min_queries = loaded / samples_per_query;
    }

    let mut rng = Mt19937::new(e.sample_index_rng_seed);
    let mut schedule = Mt19937::new(e.schedule_rng_seed);
    let mut picks = Picks::draw(e, set, phase, min_queries, &mut rng);

    if equal_issue && !accuracy {
        match scenario {
            Scenario::Offline => samples_per_query = samples_per_query.next_multiple_of(loaded),
            _ => min_queries = min_queries.next_multiple_of(loaded),
        }
    }

    let period_ns = (1.0 / e.target_qps * 1e9) as u64;
    let mut queries: Vec<Query> = Vec::new();
    let (mut due_ns, mut last_due_ns) = (0u64, 0u64);
    while last_due_ns < until_ns || queries.len() < min_queries {
        let Some(samples) = picks.query(e, set, samples_per_query, &mut rng) else { break };
        queries.push(sequence.query(due_ns, samples));
        last_due_ns = due_ns;
        due_ns += match scenario {
            Scenario::Server => (exponential(&mut schedule, e.target_qps) * 1e9) as u64,
            _ => period_ns,
        };
        let short = queries.len() >= min_queries && last_due_ns < until_ns;
        if equal_issue && short && scenario != Scenario::Offline {
            min_queries += loaded;
        }
    }

    let logged = sequence.pick_logged(e, phase, &queries);
    Generated { queries, samples_per_query: samples_per_query as u64, duration_ns: due_ns, logged }
}

/// The orders LoadGen shuffles before the first query, whether or not they are then used.
struct Picks {
    accuracy: Option<Vec<usize>>,
    unique: Vec<usize>,
    equal: Vec<usize>,
    next: usize,
}

impl Picks {
    fn draw(e: &Effective, set: &LoadedSet, phase: Phase, min_queries: usize, rng: &mut Mt19937) -> Picks {
        let stride = match e.requested.scenario {
            Scenario::MultiStream => e.samples_per_query as usize,
            _ => 1,
        };
        let once_each = |rng: &mut Mt19937| {
            let mut order: Vec<usize> = (0..set.unpadded).step_by(stride).collect();
            shuffle(rng, &mut order);
            order
        };
        let accuracy = (phase == Phase::Accuracy).then(|| once_each(rng));
        let unique = once_each(rng);
        let mut pass: Vec<usize> = (0..set.samples.len()).collect();
        let mut equal = Vec::new();
        for _ in 0..min_queries.div_ceil(pass.len()) {
            shuffle(rng, &mut pass); // each pass shuffles the last one on
            equal.extend_from_slice(&pass);
        }
        Picks { accuracy, unique, equal, next: 0 }
    }

    /// The samples of the next query; `None` when an order that serves each sample once is used up.
    fn query(&mut self, e: &Effective, set: &LoadedSet, n: usize, rng: &mut Mt19937) -> Option<Vec<u32>> {
        let repeat = e.requested.performance_issue_same;
        let same = e.requested.performance_issue_same_index as usize;
        match e.requested.scenario {
            Scenario::MultiStream => {
                let start = self.start(e, set, false, rng)?;
                Some(set.samples.get(start..start + n)?.to_vec())
            }
            Scenario::Offline if repeat => Some(vec![*set.samples.get(same)?; n]),
            Scenario::Offline => Some(offline_query(&set.samples, n, e.requested.sample_concatenate_permutation, rng)),
            Scenario::SingleStream | Scenario::Server => {
                let equal = e.requested.sample_concatenate_permutation;
                (0..n).map(|_| set.samples.get(self.start(e, set, equal, rng)?).copied()).collect()
            }
        }
    }

    /// The position of the next sample in the set.
    fn start(&mut self, e: &Effective, set: &LoadedSet, equal: bool, rng: &mut Mt19937) -> Option<usize> {
        let i = self.next;
        self.next += 1;
        if e.requested.performance_issue_unique {
            return self.unique.get(i).copied();
        }
        if e.requested.performance_issue_same {
            return Some(e.requested.performance_issue_same_index as usize);
        }
        if equal {
            return self.equal.get(i % self.equal.len().max(1)).copied();
        }
        match &self.accuracy {
            Some(order) => order.get(i).copied(),
            None => Some(below(rng, set.unpadded as u32) as usize),
        }
    }
}

/// The set again and again in loading order, each repeat shuffled under equal issue, then the start of it once more.
fn offline_query(set: &[u32], n: usize, equal_issue: bool, rng: &mut Mt19937) -> Vec<u32> {
    let mut samples = Vec::with_capacity(n);
    for _ in 0..n / set.len() {
        let start = samples.len();
        samples.extend_from_slice(set);
        if equal_issue {
            shuffle(rng, &mut samples[start..]);
        }
    }
    samples.extend_from_slice(&set[..n % set.len()]);
    samples
}

impl Sequence {
    fn query(&mut self, due_ns: u64, samples: Vec<u32>) -> Query {
        let query = Query { seq: self.next_query, due_ns, first_sample: self.next_sample, samples };
        self.next_query += 1;
        self.next_sample += query.samples.len() as u64;
        query
    }

    /// One draw a sample, shifted by an offset that `accuracy_log_rng_seed` chooses.
    fn pick_logged(&mut self, e: &Effective, phase: Phase, queries: &[Query]) -> Vec<bool> {
        let offset = canonical(&mut Mt19937::new(e.requested.accuracy_log_rng_seed));
        let probability = logging_probability(e);
        let samples: usize = queries.iter().map(|q| q.samples.len()).sum();
        (0..samples)
            .map(|_| {
                let value = canonical(&mut self.logging) + offset;
                let value = if value < 1.0 { value } else { value - 1.0 };
                phase == Phase::Accuracy || value <= probability
            })
            .collect()
    }
}

fn logging_probability(e: &Effective) -> f64 {
    let target = e.requested.accuracy_log_sampling_target;
    if target == 0 {
        return e.requested.accuracy_log_probability;
    }
    let by_duration = (e.target_qps * e.min_duration_ms as f64 / 1000.0) as u64;
    let expected = match e.requested.scenario {
        Scenario::Offline => by_duration.max(e.min_sample_count),
        _ => (by_duration * e.samples_per_query).max(e.min_query_count * e.samples_per_query),
    };
    target as f64 / expected as f64
}
