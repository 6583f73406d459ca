//! How fast the model runs in virtual time: generated tokens per CPU-second at several batch sizes.
//!
//! `cargo run --release -p tailbound-engine --example engine_speed [seconds-per-case]`
//!
//! As many clients as the batch has places, each sending its next request when one ends. Half of each
//! prompt is shared by a quarter of the clients. The prefix cache is on, counters are
//! kept, and the driver writes a row per request with an event per token.
#![allow(clippy::print_stdout)]

use tailbound_clock::{Dur, Time};
use tailbound_engine::{Config, Effect, Engine, Event, KvEvents, Policy, Profile, SeqId, Speculation, Submit};
use tailbound_os::usage::thread_cpu;
use tailbound_record::{End, Finish, Moment, Row};

/// A request's shape in tokens.
#[derive(Clone, Copy)]
struct Shape {
    prompt: usize,
    /// How many of them a quarter of the clients have in common.
    shared: usize,
    answer: u32,
}

const CHAT: Shape = Shape { prompt: 512, shared: 256, answer: 256 };
/// Short question, long answer: what a step costs by itself.
const REASONING: Shape = Shape { prompt: 128, shared: 64, answer: 2048 };

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1.0);
    println!(
        "{:<28} {:>6} {:>14} {:>14} {:>12} {:>10} {:>8}",
        "case", "batch", "generated/s", "with prompts", "steps/s", "requests", "hits"
    );
    let base = Profile::named("llama-3.1-8b-h100").expect("a profile of this crate").config();
    for batch in [1, 8, 64, 256, 1024] {
        run("512 in, 256 out", CHAT, batch, base.clone(), seconds);
        run("128 in, 2048 out", REASONING, batch, base.clone(), seconds);
    }
    for batch in [64, 256] {
        run("no prefix cache", REASONING, batch, Config { prefix_caching: false, ..base.clone() }, seconds);
        run("kv events", CHAT, batch, Config { kv_events: KvEvents::Tokens, ..base.clone() }, seconds);
        run("priority", CHAT, batch, Config { policy: Policy::Priority, ..base.clone() }, seconds);
        let speculation = Some(Speculation { tokens: 3, acceptance: 0.7, draft_time: Dur::from_us(500) });
        run("3 drafts", CHAT, batch, Config { speculation, ..base.clone() }, seconds);
        run(
            "half the blocks it needs",
            CHAT,
            batch,
            Config { num_blocks: 24 * batch, max_model_len: 1024, ..base.clone() },
            seconds,
        );
    }
}

/// What a client has in flight: enough to write its row when it ends.

#[derive(Clone, Default)]
struct InFlight {
    run: Run,
    runs: Vec<Run>,
    sent: Time,
}

/// Outputs of equal size in successive steps.
#[derive(Clone, Copy, Default)]
struct Run {
    first_step: u32,
    steps: u32,
    tokens: u16,
}

struct Clients {
    in_flight: Vec<InFlight>,
    /// Ends of all steps so far; a run of outputs is a range of it.
    step_ends: Vec<Time>,
    row: Row,
    rows: u64,
    checksum: u64,
    shape: Shape,
    prompt: Vec<u32>,
    sent: u64,
}

fn run(case: &str, shape: Shape, batch: u32, config: Config, seconds: f64) {
    let mut engine = Engine::new(Config { max_num_seqs: batch, ..config }).expect("a sound configuration");
    let mut out = Vec::new();
    let mut clients = Clients {
        in_flight: vec![InFlight::default(); batch as usize],
        step_ends: Vec::new(),
        row: Row::new(0),
        rows: 0,
        checksum: 0,
        shape,
        prompt: vec![0; shape.prompt],
        sent: 0,
    };
    for client in 0..batch {
        clients.send(client, Time::ZERO, &mut engine, &mut out);
    }
    // Warm up: a few generations, so that every buffer has its size.
    let mut ended = Vec::new();
    clients.drive(&mut engine, &mut out, &mut ended, 2_000 + 8 * u64::from(shape.answer));

    let (generated, steps, rows) = (engine.counters().generated, engine.counters().steps, clients.rows);
    let start = thread_cpu();
    let mut spent = Dur::ZERO;
    while spent.secs() < seconds {
        clients.drive(&mut engine, &mut out, &mut ended, 2_000);
        spent = Dur(thread_cpu().ns() - start.ns());
    }
    let counters = engine.counters();
    let rows = clients.rows - rows;
    println!(
        "{case:<28} {batch:>6} {:>14.1e} {:>14.1e} {:>12.2e} {:>10} {:>7.0}%",
        (counters.generated - generated) as f64 / spent.secs(),
        (counters.generated - generated + rows * shape.prompt as u64) as f64 / spent.secs(),
        (counters.steps - steps) as f64 / spent.secs(),
        rows,
        100.0 * counters.prefix_hits as f64 / counters.prefix_queries.max(1) as f64,
    );
    std::hint::black_box(clients.checksum);
}

impl Clients {
    fn drive(&mut self, engine: &mut Engine, out: &mut Vec<Effect>, ended: &mut Vec<u32>, steps: u64) {
        let until = engine.counters().steps + steps;
        // Client numbers by a mask: batches are powers of two.
        let mask = self.in_flight.len() as u64 - 1;
        while engine.counters().steps < until {
            let now = engine.next_wake().expect("clients always want something");
            engine.on(now, Event::Wake, out);
            out.clear();
            let step = self.step_ends.len() as u32;
            self.step_ends.push(now);
            for emit in engine.emitted() {
                let client = (emit.id.0 & mask) as usize;
                let it = &mut self.in_flight[client];
                if it.run.first_step + it.run.steps == step && u32::from(it.run.tokens) == emit.tokens {
                    it.run.steps += 1;
                } else {
                    it.runs.push(it.run);
                    it.run = Run { first_step: step, steps: 1, tokens: emit.tokens as u16 };
                }
                if emit.finish.is_some() {
                    ended.push(client as u32);
                }
            }
            for client in ended.drain(..) {
                self.write_row(client);
                self.send(client, now, engine, out);
            }
        }
    }

    fn write_row(&mut self, client: u32) {
        let it = &mut self.in_flight[client as usize];
        self.row.id = self.rows;
        self.row.at.set(Moment::Scheduled, it.sent);
        self.row.chunks.clear();
        let mut read = 0;
        let last = std::mem::take(&mut it.run);
        for run in it.runs.drain(..).chain([last]) {
            for &at in &self.step_ends[run.first_step as usize..][..run.steps as usize] {
                self.row.chunks.push(at, read, run.tokens, true);
                read += 1;
            }
        }
        let chunks = self.row.chunks.as_slice();
        self.row.at.set(Moment::FirstToken, chunks[0].at);
        self.row.at.set(Moment::LastToken, chunks[chunks.len() - 1].at);
        self.row.end = End::Done(Finish::Length);
        self.rows += 1;
        // Stands for whoever takes the row.
        self.checksum ^= std::hint::black_box(&self.row).e2e().map_or(0, Dur::ns);
    }

    fn send(&mut self, client: u32, now: Time, engine: &mut Engine, out: &mut Vec<Effect>) {
        // A multiple of the number of clients, larger every time: the id says whose it is and is never used twice.
        let id = SeqId(u64::from(client) + self.in_flight.len() as u64 * self.sent);
        self.sent += 1;
        for (i, token) in self.prompt.iter_mut().enumerate() {
            let of = if i < self.shape.shared { u64::from(client % 4) } else { self.sent * 8 };
            *token = (of as u32).wrapping_mul(0x9e37_79b9).wrapping_add(i as u32);
        }
        self.in_flight[client as usize].sent = now;
        engine.on(now, Event::Submit(Submit::new(id, &self.prompt, self.shape.answer)), out);
        out.clear();
    }
}
