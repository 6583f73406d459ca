//! A fleet of one is its engine: routing adds nothing and loses nothing.

use crate::{HEAD, ROUND_ROBIN};
use tailbound_clock::{Dur, Time};
use tailbound_engine::{Config, Effect, Engine, Event, Profile, SeqId, Submit};
use tailbound_sim::{Scenario, arrivals, run};

/// Arrival, first token and last token of every request, by the engine alone.
fn alone(config: Config, arrivals: &[Dur], prompt: &[u32], output: u32) -> Vec<(Time, Time, Time)> {
    let mut engine = Engine::new(config).unwrap();
    let mut out = Vec::new();
    let mut times: Vec<_> = arrivals.iter().map(|at| (Time::ZERO + *at, None, None)).collect();
    let mut next = 0;
    while next < times.len() || engine.next_wake().is_some() {
        let arrival = times.get(next).map(|t| t.0);
        match engine.next_wake() {
            Some(at) if arrival.is_none_or(|arrival| at <= arrival) => {
                engine.on(at, Event::Wake, &mut out);
                for emit in engine.emitted() {
                    let times = &mut times[emit.id.0 as usize];
                    times.1.get_or_insert(at);
                    times.2 = emit.finish.map(|_| at);
                }
            }
            _ => {
                let submit = Submit::new(SeqId(next as u64), prompt, output);
                engine.on(arrival.unwrap(), Event::Submit(submit), &mut out);
                next += 1;
            }
        }
        assert!(!out.drain(..).any(|e| matches!(e, Effect::Rejected { .. })));
    }
    times.into_iter().map(|(at, first, last)| (at, first.unwrap(), last.unwrap())).collect()
}

#[test]
fn one_replica_is_its_engine_to_the_nanosecond() {
    let text = format!(
        "seed = 5
policy = '''
{HEAD}{ROUND_ROBIN}'''
[engines]
count = 1
profile = 'llama-3.1-8b-h100'
max_num_seqs = 24
[traffic.shared_prefix]
groups = 1
prompts_per_group = 1
system = 1500
question = 37
output = 60
[traffic.arrivals]
stages = [[20.0, 5.0], [60.0, 5.0]]
poisson = true
"
    );
    let scenario = Scenario::from_toml(&text).unwrap();
    let outcome = run(&scenario).unwrap();
    let arrivals: Vec<Dur> = arrivals(&scenario).unwrap().into_iter().map(|(at, _)| at).collect();
    assert!(arrivals.len() > 300);

    let config = Config { max_num_seqs: 24, ..Profile::named("llama-3.1-8b-h100").unwrap().config() };
    let prompt: Vec<u32> = (0..1537).collect();
    let expected = alone(config, &arrivals, &prompt, 60);
    // The simulation begins a while before the first arrival is due.
    let lead = outcome.rows[0].at.get(tailbound_record::Moment::Scheduled).unwrap().since(expected[0].0);
    for (row, (arrival, first, last)) in outcome.rows.iter().zip(expected) {
        assert_eq!(row.at.get(tailbound_record::Moment::Scheduled), Some(arrival + lead));
        assert_eq!((row.ttft(), row.e2e()), (Some(first.since(arrival)), Some(last.since(arrival))), "{}", row.id);
    }
}
