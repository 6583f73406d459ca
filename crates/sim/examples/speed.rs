//! How fast the simulation is, and how its cost grows.
//!
//! `cargo run --release -p tailbound-sim --example speed -- trace FILE [prefix]` · `-- fleet REPLICAS REQUESTS_PER_S SECONDS [prefix]`
//!
//! `trace`: the requests of a trace, at its own times, on one replica of Llama 3.1 8B on an A100, in turn. `fleet`: requests of 822
//! tokens in and 287 out on average, a quarter of each prompt shared with others, to replicas of it on H100s, by queue and KV use.
//! `prefix`: the approximate prefix index counts too, as by default. Rows are handed over as requests end and not kept. Both print
//! a digest of all rows: two runs must give the same.
#![allow(clippy::print_stdout)]

use tailbound_os::usage::thread_cpu;
use tailbound_record::{Moment, Row};
use tailbound_sim::{Scenario, run_into};

const PREFIX: &str = "seed = 1
policy = '''
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins: [{type: queue-scorer}, {type: kv-cache-utilization-scorer}, {type: prefix-cache-scorer}]
schedulingProfiles:
- name: default
  plugins: [{pluginRef: queue-scorer, weight: 2}, {pluginRef: kv-cache-utilization-scorer, weight: 2}, {pluginRef: prefix-cache-scorer, weight: 3}]
'''
";

const LOAD: &str = "seed = 1
policy = '''
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins: [{type: queue-scorer}, {type: kv-cache-utilization-scorer}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: kv-cache-utilization-scorer}]}]
'''
";

const IN_TURN: &str = "seed = 1
policy = '''
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins: [{type: round-robin-picker}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: round-robin-picker}]}]
'''
";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let head = match args[..] {
        [.., "prefix"] => PREFIX,
        ["trace", ..] => IN_TURN,
        _ => LOAD,
    };
    let rest = match args[..] {
        ["trace", file] | ["trace", file, "prefix"] => {
            format!("[engines]\ncount = 1\nprofile = 'llama-3.1-8b-a100'\n[traffic.trace]\nfile = '{file}'\n")
        }
        ["fleet", replicas, rate, seconds] | ["fleet", replicas, rate, seconds, "prefix"] => format!(
            "[engines]\ncount = {replicas}\nprofile = 'llama-3.1-8b-h100'\n[traffic.arrivals]\nlaw = 'poisson:{rate}/s'\nfor_s = {seconds}\n\
             [traffic.lengths]\ninput = 'lognormal:mean=622,cv=1'\noutput = 'lognormal:mean=287,cv=1'\n\
             [traffic.lengths.prefix]\ngroups = 200\ntokens = 200\n"
        ),
        _ => panic!("usage: speed trace FILE [prefix] | speed fleet REPLICAS REQUESTS_PER_S SECONDS [prefix]"),
    };
    let scenario = Scenario::from_toml(&format!("{head}{rest}")).expect("a sound scenario");
    let (mut requests, mut ok, mut tokens, mut digest) = (0u64, 0u64, 0u64, 0xcbf2_9ce4_8422_2325_u64);
    let (mut input, mut ttft_ms) = (0u64, 0.0);
    let start = thread_cpu();
    let figures = run_into(&scenario, |answered| {
        let row = &answered.row;
        requests += 1;
        ok += u64::from(row.ok());
        tokens += u64::from(row.output_tokens());
        input += u64::from(row.tokens.prompt_asked.unwrap_or(0));
        ttft_ms += row.ttft().map_or(0.0, |d| d.ms());
        eat(&mut digest, row);
    })
    .expect("a sound scenario");
    let cpu = (thread_cpu().ns() - start.ns()) as f64 * 1e-9;
    println!(
        "{requests} requests ({ok} ok), {:.0} in and {:.0} out, mean TTFT {:.1} ms, hits {:.1} %, {} steps: CPU {cpu:.3} s, {:.0} requests/CPU-s, {:.0} ns a token, peak memory {} MB, digest {digest:016x}",
        input as f64 / requests as f64,
        tokens as f64 / requests as f64,
        ttft_ms / requests as f64,
        100.0 * figures.hit_ratio,
        figures.steps,
        requests as f64 / cpu,
        cpu * 1e9 / tokens as f64,
        tailbound_os::usage::peak_rss().unwrap_or(0) >> 20,
    );
}

fn eat(digest: &mut u64, row: &Row) {
    let mut word = |w: u64| *digest = (*digest ^ w).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    word(row.id);
    word(u64::from(row.worker));
    for moment in [Moment::Scheduled, Moment::FirstToken, Moment::LastToken, Moment::StreamEnd] {
        word(row.at.get(moment).map_or(0, |t| t.ns()));
    }
    row.chunks.as_slice().iter().for_each(|chunk| word(chunk.at.ns()));
}
