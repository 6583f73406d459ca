//! Passing quiet steps many at a time gives what taking them one by one gives.

use crate::driver::{constant, prompt};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tailbound_clock::{Dur, Time};
use tailbound_engine::*;

/// When each token of each sequence came out, with its index.
type Tokens = BTreeMap<u64, Vec<(Time, u32)>>;

#[derive(Clone, Copy, Debug)]
enum Op {
    Submit { prompt: u32, family: u32, output: u32 },
    Abort(u64),
    Wait(u64),
}

struct Run {
    engine: Engine,
    tokens: Tokens,
    /// Changes of the cache, and when they were told.
    told: Vec<(Time, String)>,
    wakes: u32,
}

impl Run {
    fn new(config: &Config) -> Run {
        let engine = Engine::new(config.clone()).expect("a sound configuration");
        Run { engine, tokens: Tokens::new(), told: Vec::new(), wakes: 0 }
    }

    fn on(&mut self, now: Time, event: Event<'_>) {
        self.engine.on(now, event, &mut Vec::new());
        self.engine.check().expect("sound after every event");
        for e in self.engine.emitted() {
            self.tokens.entry(e.id.0).or_default().push((now, e.first));
        }
        let log = self.engine.kv();
        self.told.extend(log.events().iter().map(|e| (now, told(log, e))));
    }

    fn pass(&mut self, until: Time) {
        let quiet = self.engine.pass(until);
        let ends = quiet.ends.to_vec();
        for (id, first) in quiet.sequences().filter(|_| !ends.is_empty()) {
            let tokens = ends.iter().enumerate().map(|(i, end)| (*end, first + i as u32));
            self.tokens.get_mut(&id.0).expect("its first token was news").extend(tokens);
        }
        let upto = quiet.told.to_vec();
        let log = self.engine.kv();
        for (n, event) in log.events().iter().enumerate() {
            self.told.push((ends[upto.partition_point(|upto| *upto <= n)], told(log, event)));
        }
        self.engine.check().expect("sound after every event");
    }

    /// To `until`, itself included, in whichever way.
    fn advance(&mut self, until: Time, quietly: bool) {
        loop {
            let next = if quietly { self.engine.next_news() } else { self.engine.next_wake() };
            let Some(at) = next.filter(|at| *at <= until) else { break };
            if quietly {
                self.pass(at);
            }
            self.wakes += 1;
            self.on(at, Event::Wake);
        }
        if quietly {
            self.pass(until + Dur::from_ns(1));
        }
    }
}

/// A change of the cache with the tokens it tells of.
fn told(log: &tailbound_kv::Log, event: &tailbound_kv::Event) -> String {
    match event {
        tailbound_kv::Event::Stored(s) => format!("{:?} after {:?}: {:?}", s.hash, s.parent, log.tokens(s)),
        other => format!("{other:?}"),
    }
}

fn play(config: &Config, ops: &[Op], quietly: bool) -> Run {
    let mut run = Run::new(config);
    let mut now = Time::ZERO;
    for (n, op) in ops.iter().enumerate() {
        match op {
            Op::Submit { prompt: length, family, output } => {
                let tokens = prompt(*family, *length);
                run.on(now, Event::Submit(Submit::new(SeqId(n as u64), &tokens, *output)));
            }
            Op::Abort(back) => run.on(now, Event::Abort(SeqId((n as u64).saturating_sub(*back)))),
            Op::Wait(us) => {
                now += Dur::from_us(*us);
                run.advance(now, quietly);
            }
        }
    }
    run.advance(Time::MAX - Dur::from_secs(1), quietly);
    run
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1u32..60, 0u32..4, 1u32..80)
            .prop_map(|(prompt, family, output)| Op::Submit { prompt, family, output }),
        1 => (0u64..8).prop_map(Op::Abort),
        6 => (0u64..900_000).prop_map(Op::Wait),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let events = prop::sample::select(vec![KvEvents::Off, KvEvents::Hashes, KvEvents::Tokens]);
    let policy = prop::sample::select(vec![Policy::Fcfs, Policy::Priority]);
    (prop::sample::select(vec![1u32, 4, 16]), 150u32..600, 1u32..9, 8u32..64, any::<bool>(), events, policy).prop_map(
        |(block_size, tokens, seqs, budget, prefix_caching, kv_events, policy)| Config {
            block_size,
            max_num_seqs: seqs,
            max_num_batched_tokens: budget,
            prefix_caching,
            kv_events,
            policy,
            // Every context has its own length of step.
            law: Law::Aic(Aic {
                decode: [6.0, 0.01, 4e-3],
                prefill: [7.0, 0.02, 1e-6],
                knee: 200.0,
                shared: Some(Shared { again: 0.5, at_once: 2.0 }),
            }),
            ..Config::new(constant(), tokens.div_ceil(block_size), 140)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn it_is_the_same_to_the_bit(config in config(), ops in prop::collection::vec(op(), 1..40)) {
        let (one_by_one, quietly) = (play(&config, &ops, false), play(&config, &ops, true));
        prop_assert_eq!(&one_by_one.tokens, &quietly.tokens);
        prop_assert_eq!(&one_by_one.told, &quietly.told);
        prop_assert_eq!(one_by_one.engine.counters(), quietly.engine.counters());
        prop_assert!(quietly.wakes <= one_by_one.wakes);
    }
}

#[test]
fn a_driver_is_woken_only_for_news() {
    let config = Config { block_size: 16, ..Config::new(constant(), 400, 3000) };
    let ops: Vec<Op> = (0..4).map(|i| Op::Submit { prompt: 100, family: i, output: 1000 + i }).collect();
    let run = play(&config, &ops, true);
    // 1,003 steps: with a prompt in it, the first tokens, one in 64 of the others, and the four ends.
    assert!(run.wakes < 30, "{} wakes", run.wakes);
    assert_eq!(run.engine.counters().steps, play(&config, &ops, false).engine.counters().steps);
    assert_eq!(run.tokens.values().map(Vec::len).sum::<usize>(), 4006);
}
