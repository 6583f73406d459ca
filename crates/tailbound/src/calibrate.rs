//! `tailbound calibrate`: this client against an emulator whose log tells the truth, at several loads: how far off its figures are on
//! this machine, how late its sends, and up to what load it can vouch for them.

use crate::bench::serve::{self, live::Ran};
use crate::cli::{BenchCommand, Cli, Command};
use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::truth::{Errors, Truth};
use clap::{Args, Parser};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tailbound_clock::Dur;
use tailbound_emulator as emulator;
use tailbound_engine::{Config as Engine, Law};
use tailbound_stats::Dist;

/// Measure this machine as a client.
#[derive(Args, Debug, Clone)]
pub struct CalibrateArgs {
    /// Write the figures here; `bench serve --calibration FILE` judges by them
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Real-time priority, where permitted
    #[arg(long)]
    pub realtime: bool,
    /// Fewer and smaller loads
    #[arg(long)]
    pub quick: bool,
}

/// One load and what came of it. Times in ms; `null` where there was nothing to measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Point {
    load: String,
    /// Streams at once, or arrivals per second.
    size: u32,
    open_loop: bool,
    ttft_error_ms: [Option<f64>; 3],
    itl_error_ms: [Option<f64>; 3],
    e2e_error_ms: [Option<f64>; 3],
    lateness_ms: [Option<f64>; 3],
    cpu_us_per_event: Option<f64>,
    coalesced_share: Option<f64>,
    vouched: bool,
}

/// What a calibration file holds.
#[derive(Debug, Serialize, Deserialize)]
struct Calibration {
    schema: String,
    points: Vec<Point>,
}

const SCHEMA: &str = "tailbound calibration 1";
const STREAMS: [u32; 3] = [10, 100, 1000];
const RATES: [u32; 4] = [100, 500, 2000, 5000];
const PREFIX: &str = "cal-";
/// Within these the client vouches for a load: errors that no objective in use is finer than.
const TTFT_BOUND_MS: f64 = 1.0;
const LATENESS_BOUND_MS: f64 = 1.0;

/// Runs every load and prints the table.
pub fn run(args: &CalibrateArgs) -> Outcome<u8> {
    let folder = std::env::temp_dir().join(format!("tailbound-calibrate-{}", std::process::id()));
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::new(format!("failed to make the folder {}: {e}", folder.display())))?;
    let kept = if args.quick { 2 } else { usize::MAX };
    let mut points = Vec::new();
    print(HEAD)?;
    for (sizes, open_loop) in [(&STREAMS[..], false), (&RATES[..], true)] {
        for &size in sizes.iter().take(kept) {
            let point = measure(args, &folder, size, open_loop)?;
            print(&line(&point))?;
            points.push(point);
        }
    }
    print(&closing(&points))?;
    let _ = std::fs::remove_dir_all(&folder);
    if let Some(file) = &args.output {
        let json =
            serde_json::to_string_pretty(&Calibration { schema: SCHEMA.into(), points }).map_err(Failure::new)?;
        std::fs::write(file, json + "\n")
            .map_err(|e| Failure::new(format!("failed to write {}: {e}", file.display())))?;
    }
    Ok(0)
}

fn measure(args: &CalibrateArgs, folder: &Path, size: u32, open_loop: bool) -> Outcome<Point> {
    let log = folder.join("truth.jsonl");
    let law = Law::Constant { step: Dur::from_ms(20), per_prefill_token: Dur::ZERO };
    let engine = Engine { max_num_batched_tokens: 1 << 20, max_num_seqs: 4096, ..Engine::new(law, 1 << 16, 4096) };
    // Many replicas step at different moments, as many users do; one would send its whole batch at once.
    let config =
        emulator::Config { truth_log: Some(log.clone()), data_parallel_size: 64, ..emulator::Config::new(engine) };
    let server = emulator::Emulator::start(config).map_err(|e| Failure::new(format!("failed to {e}")))?;
    let shape = match open_loop {
        true => format!("--num-prompts {} --request-rate {size} --random-output-len 4", (size * 2).min(6000)),
        false => format!("--num-prompts {size} --max-concurrency {size} --random-output-len 100"),
    };
    let realtime = if args.realtime { " --realtime" } else { "" };
    let flags = format!(
        "--base-url {} --dataset-name random --random-input-len 16 --skip-tokenizer-init --disable-tqdm --request-id-prefix {PREFIX} {shape}{realtime}",
        server.url()
    );
    let argv = ["tailbound", "bench", "serve"].into_iter().chain(flags.split(' '));
    let cli = Cli::try_parse_from(argv).map_err(|e| Failure::new(e.to_string()))?;
    let Command::Bench(bench) = cli.command else { return Err(Failure::new("calibration's command is not a bench")) };
    let BenchCommand::Serve(serve_args) = bench.command else {
        return Err(Failure::new("calibration's command is not a run"));
    };
    let Some(ran) = serve::measure(&serve_args)? else { return Err(Failure::new("calibration did not run")) };
    server.stop().map_err(|e| Failure::new(format!("failed to {e}")))?;
    let errors = Truth::read(&log, PREFIX)?.errors(&ran.rows);
    Ok(point(size, open_loop, &ran, &errors))
}

fn point(size: u32, open_loop: bool, ran: &Ran, errors: &Errors) -> Point {
    let events: usize = ran.rows.iter().map(|r| r.chunks.len()).sum();
    let shared: usize = ran.rows.iter().map(|r| r.chunks.coalesced()).sum();
    let late = Dist::new(ran.health.lateness_ns.iter().flatten().map(|&ns| ns as f64).collect());
    let wall = ran.facts.duration().secs();
    let coalesced_share = (events > 0).then(|| shared as f64 / events as f64);
    let (ttft_error_ms, lateness_ms) = (three(&errors.ttft), three(&late));
    let within = |value: Option<f64>, bound: f64| value.is_some_and(|v| v <= bound);
    Point {
        load: if open_loop { format!("{size} arrivals/s") } else { format!("{size} streams x 20 ms") },
        size,
        open_loop,
        ttft_error_ms,
        itl_error_ms: three(&errors.itl),
        e2e_error_ms: three(&errors.e2e),
        lateness_ms,
        cpu_us_per_event: ran.health.cpu_share.filter(|_| events > 0).map(|share| share * wall * 1e6 / events as f64),
        coalesced_share,
        vouched: within(ttft_error_ms[1], TTFT_BOUND_MS)
            && (!open_loop || within(lateness_ms[1], LATENESS_BOUND_MS))
            && within(coalesced_share, 0.01),
    }
}

/// p50, p99 and largest, ms.
fn three(dist: &Dist) -> [Option<f64>; 3] {
    [50.0, 99.0, 100.0].map(|p| dist.percentile(p).map(|ns| ns * 1e-6))
}

const HEAD: &str = "\
Error of this client's figures against the server's own log, and lateness of sends (ms: p50 / p99 / max)
load                     TTFT                    ITL                     end-to-end              sends late              CPU/event  shared
";

fn line(p: &Point) -> String {
    let cell = |v: [Option<f64>; 3]| v.map(|v| v.map_or("-".into(), |v| format!("{v:.3}"))).join(" / ");
    format!(
        "{:<24} {:<23} {:<23} {:<23} {:<23} {:>6} us  {:>5}\n",
        p.load,
        cell(p.ttft_error_ms),
        cell(p.itl_error_ms),
        cell(p.e2e_error_ms),
        cell(p.lateness_ms),
        p.cpu_us_per_event.map_or("-".into(), |v| format!("{v:.1}")),
        p.coalesced_share.map_or("-".into(), |v| format!("{:.1}%", v * 100.0)),
    )
}

fn closing(points: &[Point]) -> String {
    let largest =
        |open_loop: bool| points.iter().filter(|p| p.open_loop == open_loop && p.vouched).map(|p| p.size).max();
    let word = |size: Option<u32>| size.map_or("none of those tried".into(), |n| n.to_string());
    format!(
        "Vouched for on this machine (TTFT error and lateness p99 within 1 ms, under 1 % shared reads):\n  \
         streams at once: {}\n  arrivals per second: {}\n",
        word(largest(false)),
        word(largest(true))
    )
}

/// The send lateness at p99, ns, that a calibration file vouches for at so many arrivals per second: that of the smallest load at
/// least as large, else of the largest.
pub fn lateness_p99_ns(file: &Path, rate: Option<f64>) -> Outcome<Option<f64>> {
    let failed = |e: String| Failure::usage(format!("--calibration {}: {e}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|e| failed(e.to_string()))?;
    let calibration: Calibration =
        serde_json::from_str(&text).map_err(|e| failed(format!("not a calibration: {e}")))?;
    if calibration.schema != SCHEMA {
        return Err(failed(format!("its schema is `{}`, not `{SCHEMA}`", calibration.schema)));
    }
    let mut open: Vec<&Point> = calibration.points.iter().filter(|p| p.open_loop).collect();
    open.sort_by_key(|p| p.size);
    let rate = rate.unwrap_or(f64::INFINITY);
    let point = open.iter().find(|p| f64::from(p.size) >= rate).or(open.last());
    Ok(point.and_then(|p| p.lateness_ms[1]).map(|ms| ms * 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(size: u32, late: f64) -> Point {
        Point {
            load: String::new(),
            size,
            open_loop: true,
            ttft_error_ms: [None; 3],
            itl_error_ms: [None; 3],
            e2e_error_ms: [None; 3],
            lateness_ms: [None, Some(late), None],
            cpu_us_per_event: None,
            coalesced_share: None,
            vouched: true,
        }
    }

    #[test]
    fn a_file_answers_for_the_next_larger_load() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let calibration = Calibration { schema: SCHEMA.into(), points: vec![point(100, 0.1), point(500, 0.5)] };
        std::fs::write(file.path(), serde_json::to_vec(&calibration).unwrap()).unwrap();
        let at = |rate| lateness_p99_ns(file.path(), rate).unwrap().map(|ns| (ns * 1e-3).round());
        assert_eq!(
            (at(Some(50.0)), at(Some(101.0)), at(Some(9e9)), at(None)),
            (Some(100.0), Some(500.0), Some(500.0), Some(500.0))
        );
        std::fs::write(file.path(), "{}").unwrap();
        assert!(lateness_p99_ns(file.path(), None).unwrap_err().to_string().contains("--calibration"));
    }
}
