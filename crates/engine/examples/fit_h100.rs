//! Learns [`H100_VLLM`](tailbound_engine::H100_VLLM) from measured rows of one model, and tries it on another.
//!
//! `cargo run --release -p tailbound-engine --example fit_h100 -- path/to/aic_silicon_measured_ttft_tpot.csv`
//!
//! Used: vLLM on H100 SXM, rows of a given number of clients whose mean TTFT is under 1.8 s (in the others the clients
//! queue for room in the KV cache, whose size is not known). Learnt: Qwen3 32B, 16-bit. Held out: Llama 3.1 70B, 8-bit.
//! What is compared is TPOT, which the others' prompts are part of. TTFT in a closed loop of equal requests is a matter of
//! how far the clients go in step, which the rows don't say; it is printed for what it is. These prompts are too short to
//! tell attention from the matrices: its rate is that of the measured kernels (`llama-3.1-70b-h100-tp4`).
#![allow(clippy::print_stdout)]

use tailbound_engine::fit::{Closed, Stop, least_squares};
use tailbound_engine::{Config, Gpu, H100_VLLM, LLAMA_3_1_70B, Law, Model, QWEN3_32B};

struct Row {
    model: &'static Model,
    weight_bytes: f64,
    tp: u32,
    load: Closed,
    ttft: f64,
    tpot: f64,
}

fn rows(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in text.lines().skip(1) {
        let f: Vec<&str> = line.split(',').collect();
        let number = |i: usize| f[i].parse::<f64>().unwrap_or(f64::NAN);
        let (model, weight_bytes) = match (f[0], f[4]) {
            ("Qwen/Qwen3-32B", "") => (&QWEN3_32B, 2.0),
            ("meta-llama/Llama-3.1-70B", "fp8") => (&LLAMA_3_1_70B, 1.0),
            _ => continue,
        };
        if f[1] != "h100_sxm" || f[2] != "vllm" || f[8].is_empty() || number(12) >= 1800.0 {
            continue;
        }
        let load = Closed { input: number(5) as u32, output: number(6) as u32, clients: number(8) as u32 };
        rows.push(Row { model, weight_bytes, tp: number(9) as u32, load, ttft: number(12), tpot: number(13) });
    }
    rows
}

fn gpu(p: &[f64]) -> Gpu {
    let p: Vec<f64> = p.iter().map(|x| libm::exp(*x)).collect();
    Gpu {
        weight_rate: p[0],
        kv_rate: p[1],
        matrix_rate: p[2],
        reduce_rate: p[3],
        block_ms: p[4],
        sequence_ms: p[5],
        knee: p[6],
        ..H100_VLLM
    }
}

fn point(g: &Gpu) -> Vec<f64> {
    let all = [g.weight_rate, g.kv_rate, g.matrix_rate, g.reduce_rate, g.block_ms, g.sequence_ms, g.knee];
    all.iter().map(|x| libm::log(*x)).collect()
}

fn means(g: &Gpu, row: &Row) -> tailbound_engine::fit::Means {
    let law = g.law(row.model, row.tp, row.weight_bytes);
    let blocks = (row.load.clients + 2) * (row.load.input + row.load.output).div_ceil(16);
    let config = Config {
        max_num_seqs: 1024,
        max_num_batched_tokens: 8192,
        prefix_caching: false,
        ..Config::new(Law::Aic(law), blocks.max(1024), 16_384)
    };
    row.load.run(config).expect("a sound engine")
}

fn report(name: &str, g: &Gpu, rows: &[&Row]) {
    let mut tpot = Vec::new();
    let mut ttft = Vec::new();
    for row in rows {
        let m = means(g, row);
        tpot.push(m.tpot / row.tpot - 1.0);
        ttft.push(m.ttft / row.ttft - 1.0);
    }
    let line = |what: &str, errors: &[f64]| {
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let at = |q: usize| 100.0 * sizes[(sizes.len() * q / 100).min(sizes.len() - 1)];
        println!(
            "{name:<34} {:>4} rows {what}: mean {:>6.1} %, median |error| {:>5.1} %, p90 {:>5.1} %, worst {:>5.1} %",
            sizes.len(),
            100.0 * mean,
            at(50),
            at(90),
            at(100)
        );
    };
    line("TPOT", &tpot);
    line("TTFT", &ttft);
}

fn main() {
    let path = std::env::args().nth(1).expect("the path of aic_silicon_measured_ttft_tpot.csv");
    let rows = rows(&std::fs::read_to_string(path).expect("a readable file"));
    let of = |model: &Model| rows.iter().filter(|r| r.model.name == model.name).collect::<Vec<_>>();
    let (learn, held) = (of(&QWEN3_32B), of(&LLAMA_3_1_70B));
    let f = |p: &[f64]| {
        let g = gpu(p);
        Some(learn.iter().map(|row| libm::log(means(&g, row).tpot / row.tpot)).collect())
    };
    report("before: Qwen3 32B", &H100_VLLM, &learn);
    report("before: Llama 3.1 70B, 8-bit", &H100_VLLM, &held);
    if std::env::args().nth(2).is_some() {
        return;
    }
    let fitted = least_squares(&point(&H100_VLLM), Stop { steps: 12, gain: 3e-3 }, f).expect("a start");
    let g = gpu(&fitted.at);
    println!("{} evaluations: {g:#?}", fitted.evaluations);
    report("learnt: Qwen3 32B", &g, &learn);
    report("held out: Llama 3.1 70B, 8-bit", &g, &held);
    for tp in [2, 4, 8] {
        let some: Vec<&Row> = rows.iter().filter(|r| r.tp == tp).collect();
        report(&format!("all, {tp} GPUs"), &g, &some);
    }
    println!("Llama 3.1 70B, 16-bit, 4 GPUs: {:?}", g.law(&LLAMA_3_1_70B, 4, 2.0));
    println!("Qwen3 32B, 16-bit, 2 GPUs: {:?}", g.law(&QWEN3_32B, 2, 2.0));
}
