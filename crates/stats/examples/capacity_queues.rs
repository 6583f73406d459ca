//! Searches on queues of known capacity, many times each: how often the interval holds the truth, and how far answers are spread,
//! beside plain bisection. `benches/capacity.md` has its output.
//!
//! `cargo run --release -p tailbound-stats --example capacity_queues -- [searches] [conv2000_r2.csv] [part of a queue's name]`
#![allow(clippy::print_stdout, reason = "its output is the result")]
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/it/capacity/queues.rs"]
mod queues;

use tailbound_stats::capacity::Spec;

fn main() {
    let mut args = std::env::args().skip(1);
    let searches: u64 = args.next().map_or(200, |n| n.parse().unwrap());
    let conv = args.next().map(|path| std::fs::read_to_string(path).unwrap());
    let only = args.next().unwrap_or_default();
    if "2 ms server".contains(&only) {
        peaks(searches);
    }
    println!("{searches} searches each; sd and bias in % of the truth\n");
    println!(
        "| queue | truth /s | bisection: requests | sd | bias | search: requests | sd | bias | interval ± | holds the truth |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for queue in queues::all(conv.as_deref()).into_iter().chain(queues::harder()).filter(|q| q.name.contains(&only)) {
        let plain: Vec<(f64, u64)> = (0..searches).map(|seed| queue.bisect(1000, seed)).collect();
        let took = plain.iter().map(|p| p.1).sum::<u64>() / searches;
        let (sd, bias) = spread(plain.iter().map(|p| p.0), queue.capacity);
        let answers: Vec<_> = (0..searches).map(|seed| queue.search(&spec(queue.spec(took, seed)), seed).0).collect();
        let ours = answers.iter().map(|a| a.requests).sum::<u64>() / searches;
        let (our_sd, our_bias) = spread(answers.iter().filter_map(|a| a.capacity), queue.capacity);
        let within = |a: &&tailbound_stats::capacity::Answer| {
            a.low.is_some_and(|low| low <= queue.capacity) && a.high.is_none_or(|high| queue.capacity <= high)
        };
        let holds = answers.iter().filter(within).count();
        let reach = answers.iter().filter_map(|a| Some(a.high? - a.low?)).sum::<f64>() / searches as f64 / 2.0;
        println!(
            "| {} | {:.2} | {took} | {sd:.1} | {bias:+.1} | {ours} | {our_sd:.1} | {our_bias:+.1} | {:.1} | {holds} of {searches} ({:.1} %) |",
            queue.name,
            queue.capacity,
            100.0 * reach / queue.capacity,
            100.0 * holds as f64 / searches as f64,
        );
    }
}

/// Longer probes than a bisection's, and fewer of them: each starts empty, and what its start flatters is the same for all.
fn spec(spec: Spec) -> Spec {
    Spec { probe_requests: 1800, ..spec }
}

/// Certified peaks of the server that takes 2 ms.
fn peaks(searches: u64) {
    let queue = queues::two_ms();
    let of = |seed| queue.search(&queues::certified(&queue, seed), seed).0;
    let answers: Vec<_> = (0..searches).map(of).collect();
    let mut peaks: Vec<f64> = answers.iter().filter_map(|a| a.certified).collect();
    peaks.sort_by(f64::total_cmp);
    let (lowest, median, highest) = (peaks.first(), peaks.get(peaks.len() / 2), peaks.last());
    let near = peaks.iter().filter(|p| (0.97 * queue.capacity..=queue.capacity).contains(*p)).count();
    let requests = answers.iter().map(|a| a.requests).sum::<u64>() / searches;
    println!(
        "2 ms server, {} of {searches} certified: {lowest:.1?} … {median:.1?} … {highest:.1?} of {:.1}, {near} within 3 % under it; {requests} requests\n",
        peaks.len(),
        queue.capacity,
    );
}

fn spread(values: impl Iterator<Item = f64>, truth: f64) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    (100.0 * variance.sqrt() / truth, 100.0 * (mean - truth) / truth)
}
