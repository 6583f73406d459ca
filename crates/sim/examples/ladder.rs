//! A published ladder of rates over one fleet under several policies, beside what was published, and how fast the simulation
//! itself was.
//!
//! `cargo run --release -p tailbound-sim --example ladder -- [70b|32b] [seed] [policy]`
//!
//! `70b` is llm-d's benchmark 37-capacity: 4 replicas of Llama 3.1 70B on 4 × H100 each, 461,376 KV tokens in blocks of 64;
//! 83 groups of 3 prompts, 8,000 tokens in common and 1,000 of their own, 1,000 out, constant rates. `32b` is 73-capacity: 8
//! replicas of Qwen3 32B on 2 × H100 each, 307,328 KV tokens; 150 groups of 5 prompts, 6,000 and 1,200 tokens, 1,000 out,
//! Poisson. Policies are as published with each, spelled for this router; round robin is ours.
//!
//! `inference-perf` makes a prompt of n tokens from n random ones, as text; the server finds more: 9,391 for 9,000 with Llama
//! 3's tokenizer (8,348 of them in common), 7,584 for 7,200 with Qwen's (published). The lengths are these. The approximate
//! index of that time cut text into blocks of 64 bytes, 10 such tokens, and looked at the first 256.
#![allow(clippy::print_stdout)]

use tailbound_os::usage::thread_cpu;
use tailbound_record::{Moment, Row};
use tailbound_sim::{Outcome, Scenario, run};

struct Ladder {
    fleet: &'static str,
    /// Weights of prefix, KV use and queue, for the approximate index and the precise one.
    weights: [[u32; 3]; 2],
    /// Output tokens/s as published, by stage, warm-up left out: random, load, approximate, precise.
    published: [&'static [f64]; 4],
}

const SEVENTY: Ladder = Ladder {
    fleet: "
[engines]
count = 4
profile = 'llama-3.1-70b-h100-tp4-vllm'
block_size = 64
kv_tokens = 461376
[traffic.shared_prefix]
groups = 83
prompts_per_group = 3
system = 8348
question = 1043
output = 1000
[traffic.arrivals]
stages = [[9,30],[3,210],[4,180],[5,120],[6,120],[8,90],[10,70],[12,60],[15,50],[20,50]]
drain = true
",
    weights: [[2, 1, 1], [2, 1, 1]],
    published: [
        &[2518.0, 2734.2, 2647.1, 2946.7, 2968.5, 3119.5, 3022.5, 3003.1, 3099.1],
        &[2567.1, 2974.3, 3119.7, 3007.5, 3089.7, 3050.4, 3044.0, 3106.0, 3205.6],
        &[2595.6, 3386.2, 3912.1, 4604.2, 5529.6, 6021.8, 6667.0, 6401.2, 6748.0],
        &[2579.8, 3366.8, 3940.5, 4665.9, 5675.9, 6456.9, 7062.0, 7807.3, 9295.2],
    ],
};

const THIRTY_TWO: Ladder = Ladder {
    fleet: "
[engines]
count = 8
profile = 'qwen3-32b-h100-tp2-vllm'
block_size = 64
kv_tokens = 307328
[traffic.shared_prefix]
groups = 150
prompts_per_group = 5
system = 6320
question = 1264
output = 1000
[traffic.arrivals]
stages = [[15,50],[3,20],[10,20],[15,20],[20,38],[22,34],[25,30],[30,25],[35,21],[40,38],[43,36],[46,33],[49,30],[52,29],[55,27],[57,26],[60,25]]
poisson = true
drain = true
",
    weights: [[1, 1, 1], [3, 2, 2]],
    published: [
        &[1314.0, 3568.5, 3791.1, 4933.1, 4765.4, 4781.3, 4636.3, 4332.6, 4773.8, 4844.6, 4969.5, 4783.2, 4845.1, 4921.7, 4764.2, 4835.2],
        &[1274.8, 3607.0, 3348.4, 4902.5, 4785.5, 4872.8, 4888.7, 4660.7, 4946.4, 4973.3, 4723.6, 4004.8, 3991.0, 4671.9, 3866.5, 4745.1],
        &[1310.9, 3842.4, 5152.9, 8082.6, 8415.7, 8445.1, 8435.9, 7443.5, 8045.9, 7969.6, 7695.2, 7455.9, 7452.3, 7100.7, 7013.8, 7247.9],
        &[1219.1, 3902.1, 5761.1, 9184.5, 9382.0, 9242.2, 9221.8, 9780.6, 10270.8, 10054.8, 10128.7, 10296.5, 10284.6, 10140.9, 10313.9, 10496.9],
    ],
};

const HEAD: &str = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n";

fn policies(weights: &[[u32; 3]; 2]) -> [(&'static str, String); 5] {
    let scorers = |[prefix, kv, queue]: [u32; 3]| {
        format!(
            "- {{type: kv-cache-utilization-scorer}}\n- {{type: queue-scorer}}\nschedulingProfiles:\n- name: default\n  plugins:\n  - {{pluginRef: prefix-cache-scorer, weight: {prefix}}}\n  - {{pluginRef: kv-cache-utilization-scorer, weight: {kv}}}\n  - {{pluginRef: queue-scorer, weight: {queue}}}\n"
        )
    };
    let alone = |picker: &str| {
        format!(
            "plugins: [{{type: {picker}}}]\nschedulingProfiles: [{{name: default, plugins: [{{pluginRef: {picker}}}]}}]"
        )
    };
    let load = "plugins: [{type: queue-scorer}, {type: kv-cache-utilization-scorer}]\nschedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer, weight: 1}, {pluginRef: kv-cache-utilization-scorer, weight: 1}]}]";
    let approximate = "plugins:\n- {type: prefix-cache-scorer, parameters: {blockSizeTokens: 10, autoTune: false, maxPrefixBlocksToMatch: 256, lruCapacityPerServer: 31250}}\n";
    let precise = "plugins:\n- {type: precise-prefix-cache-producer, parameters: {tokenProcessorConfig: {blockSize: 64}, speculativeIndexing: false}}\n- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}\n";
    [
        ("random", alone("random-picker")),
        ("load (queue, KV)", load.to_owned()),
        ("approximate", format!("{approximate}{}", scorers(weights[0]))),
        ("precise", format!("{precise}{}", scorers(weights[1]))),
        ("round robin", alone("round-robin-picker")),
    ]
}

/// What a stretch of rows came to: output tokens per second from the first arrival to the last answer; mean TTFT and its
/// 90th percentile in seconds; mean TPOT in milliseconds; the share of prompt tokens found cached.
struct Figures {
    tokens_per_s: f64,
    ttft: f64,
    ttft_p90: f64,
    tpot: f64,
    hits: f64,
}

fn figures(rows: &[Row]) -> Figures {
    let start = rows.iter().filter_map(|r| r.at.get(Moment::Scheduled)).min().unwrap_or_default();
    let end = rows.iter().filter_map(|r| r.at.get(Moment::StreamEnd)).max().unwrap_or_default();
    let tokens: f64 = rows.iter().map(|r| f64::from(r.output_tokens())).sum();
    let mut ttfts: Vec<f64> = rows.iter().filter_map(Row::ttft).map(|d| d.ms() * 1e-3).collect();
    ttfts.sort_by(f64::total_cmp);
    let gap = |r: &Row| {
        let (first, last) = (r.at.get(Moment::FirstToken)?, r.at.get(Moment::LastToken)?);
        Some(last.since(first).ms() / f64::from(r.output_tokens().max(2) - 1))
    };
    let tpots: Vec<f64> = rows.iter().filter_map(gap).collect();
    let sum = |f: fn(&Row) -> Option<u32>| rows.iter().filter_map(f).map(f64::from).sum::<f64>();
    Figures {
        tokens_per_s: tokens / (end.since(start).ms() * 1e-3),
        ttft: ttfts.iter().sum::<f64>() / ttfts.len() as f64,
        ttft_p90: ttfts[ttfts.len() * 9 / 10],
        tpot: tpots.iter().sum::<f64>() / tpots.len() as f64,
        hits: sum(|r| r.tokens.cached_server) / sum(|r| r.tokens.prompt_asked),
    }
}

fn stages(outcome: &Outcome) -> Vec<Figures> {
    let ends = outcome.figures.stages[1..].iter().copied().chain([outcome.rows.len()]);
    outcome.figures.stages.iter().zip(ends).map(|(&first, end)| figures(&outcome.rows[first..end])).collect()
}

fn main() {
    let mut args = std::env::args().skip(1);
    let ladder = if args.next().as_deref() == Some("32b") { &THIRTY_TWO } else { &SEVENTY };
    let seed = args.next().unwrap_or_else(|| "1".to_owned());
    let only = args.next();
    for (i, (name, policy)) in policies(&ladder.weights).iter().enumerate() {
        if only.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
            continue;
        }
        let text = format!("seed = {seed}\npolicy = '''\n{HEAD}{policy}'''\n{}", ladder.fleet);
        let scenario = Scenario::from_toml(&text).expect("a sound scenario");
        let start = thread_cpu();
        let outcome = run(&scenario).expect("a sound scenario");
        let cpu = (thread_cpu().ns() - start.ns()) as f64 * 1e-9;
        let all = figures(&outcome.rows);
        println!(
            "{name:<17} out {:>7.0} tok/s, TTFT mean {:.3} s p90 {:.3} s, TPOT {:.1} ms, waiting {:.1}, hits {:.1} %, CPU {cpu:.2} s, {:.0} req/CPU-s",
            all.tokens_per_s,
            all.ttft,
            all.ttft_p90,
            all.tpot,
            outcome.figures.mean_waiting,
            100.0 * outcome.figures.hit_ratio,
            outcome.rows.len() as f64 / cpu,
        );
        let stages = stages(&outcome);
        let line = |what: &str, f: &dyn Fn(&Figures) -> String| {
            let cells: Vec<String> = stages.iter().map(|s| format!("{:>7}", f(s))).collect();
            println!("  {what:<20} {}", cells.join(" "));
        };
        line("out tok/s", &|s| format!("{:.0}", s.tokens_per_s));
        if let Some(published) = ladder.published.get(i).filter(|p| !p.is_empty()) {
            let cells: Vec<String> = published.iter().map(|p| format!("{p:>7.0}")).collect();
            println!("  {:<20} {:>7} {}", "published", "", cells.join(" "));
        }
        line("TTFT mean, s", &|s| format!("{:.2}", s.ttft));
        line("TTFT p90, s", &|s| format!("{:.2}", s.ttft_p90));
        line("TPOT mean, ms", &|s| format!("{:.1}", s.tpot));
        line("hits, %", &|s| format!("{:.0}", 100.0 * s.hits));
    }
}
