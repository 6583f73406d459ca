//! Virtual queues of known capacity, and plain bisection on them.

use tailbound_clock::{Dur, Rng, Seed, Time};
use tailbound_stats::capacity::{End, Mark, Probe, Probed, Requirement, Seen, Spec, Step, Unit, Watch, next};

/// How long requests take to serve, s.
#[derive(Clone, Debug)]
pub enum Service {
    /// Always the same.
    Fixed(f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Lognormal with this mean and coefficient of variation.
    LongTailed(f64, f64),
    /// One of these, each as likely.
    OneOf(Vec<f64>),
}

impl Service {
    fn draw(&self, rng: &mut Rng) -> f64 {
        match self {
            Service::Fixed(s) => *s,
            Service::Exponential(mean) => mean * rng.exponential(),
            Service::LongTailed(mean, cv) => {
                let variance = libm::log(1.0 + cv * cv);
                mean * libm::exp(libm::sqrt(variance) * rng.normal() - 0.5 * variance)
            }
            Service::OneOf(all) => all[rng.below(all.len() as u64) as usize],
        }
    }
}

/// What is served how.
#[derive(Clone, Debug)]
pub enum Server {
    /// One after another.
    Single(Service),
    /// Whatever waits, at most so many at once, in `base + each · n` seconds.
    Batch { most: usize, base: f64, each: f64 },
    /// One after another; a request is of the second class with this probability.
    TwoClasses { first: Service, second: Service, second_share: f64 },
}

/// A queue whose capacity is known.
#[derive(Clone, Debug)]
pub struct Queue {
    pub name: &'static str,
    /// Gamma shape of the gaps between arrivals: 1 is Poisson.
    pub burstiness: f64,
    /// Whether a request's size is known, as tokens are, and its service goes with it.
    pub sized: bool,
    pub server: Server,
    /// What each class must meet, s.
    pub limits: Vec<f64>,
    /// In this share of its requests.
    pub share: f64,
    /// Requests a second, by a closed form or by `benches/capacity_truth.py`.
    pub capacity: f64,
    /// Where a search begins.
    pub first: f64,
}

/// The six. `conv`: prompt lengths of the first, from the data folder; without them there are five.
pub fn all(conv: Option<&str>) -> Vec<Queue> {
    let single = |name, burstiness, service, limit, capacity, first| Queue {
        name,
        burstiness,
        sized: true,
        server: Server::Single(service),
        limits: vec![limit],
        share: 0.9,
        capacity,
        first,
    };
    let mut queues = Vec::new();
    if let Some(csv) = conv {
        queues.push(single("prefill of conversations (M/G/1)", 1.0, Service::OneOf(prefill(csv)), 0.1, 39.14, 16.0));
    }
    queues.extend([
        single("fixed service (M/D/1)", 1.0, Service::Fixed(0.02), 0.1, 37.885, 16.0),
        single("bursty arrivals (G/D/1)", 0.5, Service::Fixed(0.02), 0.1, 28.26, 16.0),
        single("long-tailed service (M/G/1)", 1.0, Service::LongTailed(0.02, 0.8), 0.12, 33.77, 16.0),
        Queue {
            name: "batch service",
            burstiness: 1.0,
            sized: true,
            server: Server::Batch { most: 16, base: 0.05, each: 0.005 },
            limits: vec![0.25],
            share: 0.9,
            capacity: 109.14,
            first: 40.0,
        },
        Queue {
            name: "two classes",
            burstiness: 1.0,
            sized: true,
            server: Server::TwoClasses {
                first: Service::Exponential(0.01),
                second: Service::Fixed(0.03),
                second_share: 0.4,
            },
            limits: vec![0.1, 0.15],
            share: 0.9,
            capacity: 39.72,
            first: 15.0,
        },
    ]);
    queues
}

/// One that takes 2 ms a request, whose p99 must stay under 80 ms as in MLPerf's server scenario: up to 471.30 QPS by Erlang's formula
/// (`benches/capacity_truth.py`); it can't do more than 500 at all.
pub fn two_ms() -> Queue {
    Queue {
        name: "2 ms",
        burstiness: 1.0,
        sized: false,
        server: Server::Single(Service::Fixed(0.002)),
        limits: vec![0.08],
        share: 0.99,
        capacity: 471.301,
        first: 100.0,
    }
}

/// A search that ends with a certified peak of [`two_ms`].
pub fn certified(queue: &Queue, seed: u64) -> Spec {
    Spec { precision: 0.015, probe_requests: 10_000, certify: true, ..queue.spec(150_000, seed) }
}

/// Two whose misses come in such long stretches, at so shallow a knee, that no search of some thousand requests is sure of them: here the
/// interval must say so.
#[allow(dead_code, reason = "only the long version looks at them")]
pub fn harder() -> Vec<Queue> {
    let single = |name, burstiness, service, limit, capacity, first| Queue {
        name,
        burstiness,
        sized: true,
        server: Server::Single(service),
        limits: vec![limit],
        share: 0.9,
        capacity,
        first,
    };
    vec![
        single("very bursty (G/M/1)", 0.25, Service::Exponential(0.01), 0.15, 64.796, 25.0),
        single("very long-tailed (M/G/1)", 1.0, Service::LongTailed(0.02, 1.5), 0.1, 19.84, 9.0),
    ]
}

/// Step times of Llama-3.1-8B on an H100 for the prompts of a trace, s: a + b·max(0, n − knee) + c·n²/2 milliseconds.
fn prefill(csv: &str) -> Vec<f64> {
    let lengths = csv.lines().skip(1).filter_map(|line| line.split(',').nth(1)?.parse::<f64>().ok());
    lengths.map(|n| (7.0 + 0.01802 * (n - 192.0).max(0.0) + 1.04e-6 * n * n / 2.0) / 1e3).collect()
}

impl Queue {
    /// What a search is told.
    pub fn spec(&self, budget: u64, seed: u64) -> Spec {
        let requirement = |i: usize| Requirement { name: format!("class {i}"), share: self.share };
        Spec {
            requirements: (0..self.limits.len()).map(requirement).collect(),
            unit: Unit::Rate,
            first: self.first,
            precision: 0.0,
            confidence: 0.95,
            budget,
            probe_requests: 1000,
            expect: None,
            certify: false,
            burstiness: Some(self.burstiness),
            seed: Seed(seed),
        }
    }

    /// Runs a probe.
    pub fn run(&self, spec: &Spec, probe: Probe, seed: u64) -> Probed {
        let mut watch = Watch::new(&spec.requirements, &probe, true);
        let mut marks = Vec::new();
        let (mut requests, mut busy, mut last, mut over) = (0, 0.0, 0.0f64, 0.0f64);
        let end = self.serve(
            probe.load,
            Seed(seed).numbered("probe", u64::from(probe.number)),
            |class, work, arrived, took| {
                requests += 1;
                busy += took;
                last = arrived;
                over = over.max(arrived + took);
                let met = u32::from(took <= self.limits[class]);
                let at = Time(Dur::from_secs_f64(arrived).ns());
                let prompt = self.sized.then_some((1e5 * work).round() as u32);
                let mark = Mark { at, judged: 1 << class, met: met << class, prompt, output: None };
                if requests > probe.settle {
                    marks.push(mark);
                }
                let seen = Seen { mark, took: Dur::from_secs_f64(took) };
                watch.on(seen).or_else(|| (requests == probe.requests).then_some(End::Whole))
            },
        );
        Probed {
            probe,
            requests,
            marks,
            end,
            open: true,
            in_flight: busy / last.max(1e-9),
            kept_up: last / over,
            invalid: None,
        }
    }

    /// Shows each request's class, service, arrival and time in the system, s, in the order of arrivals, until `show` has an end.
    fn serve<T>(&self, rate: f64, mut rng: Rng, mut show: impl FnMut(usize, f64, f64, f64) -> Option<T>) -> T {
        let mut now = 0.0;
        let mut free = 0.0f64;
        let mut arrival = |rng: &mut Rng| {
            let gap =
                if self.burstiness == 1.0 { rng.exponential() } else { rng.gamma(self.burstiness) / self.burstiness };
            now += gap / rate;
            now
        };
        if let Server::Batch { most, base, each } = self.server {
            let mut next = arrival(&mut rng);
            loop {
                let start = free.max(next);
                let mut batch = Vec::new();
                while next <= start && batch.len() < most {
                    batch.push(next);
                    next = arrival(&mut rng);
                }
                free = start + base + each * batch.len() as f64;
                for arrived in batch {
                    if let Some(end) = show(0, 1.0, arrived, free - arrived) {
                        return end;
                    }
                }
            }
        }
        loop {
            let arrived = arrival(&mut rng);
            let (class, service) = match &self.server {
                Server::TwoClasses { first, second, second_share } => match rng.unit() < *second_share {
                    true => (1, second.draw(&mut rng)),
                    false => (0, first.draw(&mut rng)),
                },
                Server::Single(service) => (0, service.draw(&mut rng)),
                Server::Batch { .. } => unreachable!("served above"),
            };
            free = free.max(arrived) + service;
            if let Some(end) = show(class, service, arrived, free - arrived) {
                return end;
            }
        }
    }

    /// A whole search.
    pub fn search(&self, spec: &Spec, seed: u64) -> (tailbound_stats::capacity::Answer, Vec<Probed>) {
        let mut probes = Vec::new();
        loop {
            match next(spec, &probes) {
                Step::Probe(probe) => probes.push(self.run(spec, probe, seed)),
                Step::Answer(answer) => return (answer, probes),
            }
        }
    }

    /// Plain bisection, one run of `requests` a point, as the peers do it (etalon: from 0 to eight times the first rate, until the bracket is narrower
    /// than 1 % of its middle): the answer, and the requests it took.
    #[allow(dead_code, reason = "only the long version compares")]
    pub fn bisect(&self, requests: u64, seed: u64) -> (f64, u64) {
        let spec = self.spec(u64::MAX, seed);
        let (mut low, mut high) = (0.0, 8.0 * self.first);
        let (mut took, mut number) = (0, 0);
        while high - low >= 0.01 * 0.5 * (low + high) {
            let load = 0.5 * (low + high);
            let mut met = vec![(0u64, 0u64); self.limits.len()];
            let mut n = 0;
            self.serve(load, Seed(seed).numbered("bisect", number), |class, _, _, latency| {
                n += 1;
                met[class].0 += u64::from(latency <= self.limits[class]);
                met[class].1 += 1;
                (n == requests).then_some(())
            });
            took += requests;
            number += 1;
            let holds =
                met.iter().zip(&spec.requirements).all(|((good, all), r)| *good as f64 >= r.share * *all as f64);
            if holds { low = load } else { high = load }
        }
        (0.5 * (low + high), took)
    }
}
