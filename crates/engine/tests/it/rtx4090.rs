//! 300 requests that a real vLLM 0.19 answered on one RTX 4090 (LLMServingSim's validation run), and the same requests
//! through the engine on the step law of that GPU's measured layers. Nothing here is fitted to the run.

use crate::driver::Driver;
use tailbound_clock::{Dur, Time};
use tailbound_engine::{Config, Law, Layers, Table};
use tailbound_testdata as data;

const AT: &str = "systems/profiles/llmservingsim_rtx4090_llama31_8b";

fn table() -> Option<Table> {
    let read = |name: &str| data::read(&format!("{AT}/{name}"));
    let (attention, dense, per_sequence) = (read("attention.csv")?, read("dense.csv")?, read("per_sequence.csv")?);
    let layers = Layers { attention: &attention, dense: &dense, per_sequence: &per_sequence, blocks: 32 };
    Some(layers.table().expect("as LLMServingSim writes it"))
}

struct Measured {
    queued: f64,
    input: usize,
    output: u32,
    ttft: f64,
    tpot: f64,
    blocks: Vec<u32>,
}

fn measured() -> Option<Vec<Measured>> {
    let requests = data::read(&format!("{AT}/requests.jsonl"))?;
    let workload = data::read(&format!("{AT}/workload_blocks16.jsonl"))?;
    let json = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("as LLMServingSim writes it");
    let rows = requests.lines().zip(workload.lines()).map(|(r, w)| {
        let (r, w) = (json(r), json(w));
        let number = |key: &str| r[key].as_f64().expect("as LLMServingSim writes it");
        assert_eq!((&r["input_toks"], &r["output_toks"]), (&w["input_toks"], &w["output_toks"]));
        let output = number("output_toks");
        Measured {
            queued: number("queued_ts"),
            input: number("input_toks") as usize,
            output: output as u32,
            ttft: number("first_token_ts") - number("queued_ts"),
            tpot: (number("last_token_ts") - number("first_token_ts")) / (output - 1.0),
            blocks: w["block16_ids"]
                .as_array()
                .expect("as LLMServingSim writes it")
                .iter()
                .map(|b| b.as_u64().expect("as LLMServingSim writes it") as u32)
                .collect(),
        }
    });
    Some(rows.collect())
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn the_measured_layers_of_an_rtx_4090_give_what_vllm_took_there() {
    let (Some(table), Some(rows)) = (table(), measured()) else { return };
    // What its own log says of it: 2,588 blocks less the one it keeps empty, and the defaults.
    let config = Config::new(Law::Table(table.into()), 2587, 32_768);
    let mut driver = Driver::new(config);
    driver.check = false;
    let first = rows[0].queued;
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| rows[*a].queued.total_cmp(&rows[*b].queued));
    for &i in &order {
        let row = &rows[i];
        let at = Time::ZERO + Dur::from_secs_f64(row.queued - first);
        while driver.wake(at) {}
        driver.now = at;
        let mut prompt: Vec<u32> = row.blocks.iter().flat_map(|b| (0..16).map(move |t| b * 16 + t)).collect();
        prompt.truncate(row.input);
        prompt.extend((prompt.len()..row.input).map(|t| 10_000_000 + 100_000 * i as u32 + t as u32));
        driver.submit(i as u64, &prompt, row.output);
    }
    driver.run();
    let of = |i: usize| {
        let f = &driver.finished[&(i as u64)];
        let (first, last) = (f.first_token.unwrap(), f.last_token.unwrap());
        (first.since(f.queued).ms() * 1e-3, last.since(first).ms() * 1e-3 / f64::from(rows[i].output - 1))
    };
    let n = rows.len();
    let ttft = mean((0..n).map(|i| of(i).0)) / mean(rows.iter().map(|r| r.ttft)) - 1.0;
    let tpot = mean((0..n).map(|i| of(i).1)) / mean(rows.iter().map(|r| r.tpot)) - 1.0;
    println!(
        "TTFT mean {:.3} s measured, {:+.2} %; TPOT mean {:.3} ms measured, {:+.2} %; preemptions {}",
        mean(rows.iter().map(|r| r.ttft)),
        100.0 * ttft,
        1e3 * mean(rows.iter().map(|r| r.tpot)),
        100.0 * tpot,
        driver.engine.counters().preemptions,
    );
    for i in (0..n).step_by(20) {
        println!("{i} {:.3} {:.3}  {:.4} {:.4}", rows[i].ttft, of(i).0, rows[i].tpot, of(i).1);
    }
    assert!(ttft.abs() < 0.05, "TTFT {ttft}");
    assert!(tpot.abs() < 0.02, "TPOT {tpot}");
}
