//! Work of which the instructions are counted: `counts step`.
//!
//! `tools/check-instructions.py` runs it under callgrind, which counts what happens inside [`step`], and divides by [`TIMES`].

use tailbound_clock::Time;
use tailbound_engine::{Engine, Event, Profile, SeqId, Submit};

/// Steps.
const TIMES: u64 = 1000;
const BATCH: u32 = 64;

fn main() {
    assert_eq!(std::env::args().nth(1).as_deref(), Some("step"), "usage: counts step");
    let config = Profile::named("llama-3.1-8b-h100").expect("a profile of this crate").config();
    let mut engine = Engine::new(config).expect("a profile is a sound configuration");
    let mut out = Vec::new();
    for i in 0..BATCH {
        let prompt: Vec<u32> = (0..500 + i).map(|t| if t < 256 { t } else { i << 16 | t }).collect();
        engine.on(Time::ZERO, Event::Submit(Submit::new(SeqId(u64::from(i)), &prompt, 4000)), &mut out);
    }
    // Until every prompt is computed.
    for _ in 0..100 {
        one(&mut engine, &mut out);
    }
    step(&mut engine, &mut out);
    assert_eq!(engine.counters().running, BATCH);
}

/// Steps of 64 answers, each of which needs a block every 16 tokens.
#[inline(never)]
fn step(engine: &mut Engine, out: &mut Vec<tailbound_engine::Effect>) {
    for _ in 0..TIMES {
        one(engine, out);
    }
}

fn one(engine: &mut Engine, out: &mut Vec<tailbound_engine::Effect>) {
    let now = engine.next_wake().expect("there is work");
    out.clear();
    engine.on(now, Event::Wake, out);
    std::hint::black_box(engine.emitted());
}
