//! `tailbound demo`: an emulator, a load it can take and one it can't, both reports, and the emulator's own word beside them.

use crate::bench::serve;
use crate::cli::{BenchCommand, Cli, Command};
use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::truth::Truth;
use clap::{Args, Parser};
use std::path::{Path, PathBuf};
use tailbound_emulator as emulator;
use tailbound_engine::Profile;

/// See it work in a few seconds.
#[derive(Args, Debug, Clone)]
pub struct DemoArgs {
    /// Where to leave the emulator's truth log [default: a folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
}

const PROFILE: &str = "llama-3.1-8b-h100";
const PREFIX: &str = "demo-";
/// Requests per second that one such replica can take at this prompt length, and that it can't.
const RATES: [(&str, u32); 2] = [("20", 140), ("90", 300)];

/// Runs both loads. The exit code is 0 if the first met its objectives and the second missed them, as it should be.
pub fn run(args: &DemoArgs) -> Outcome<u8> {
    let folder = args
        .output_dir
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("tailbound-demo-{}", std::process::id())));
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::new(format!("failed to make the folder {}: {e}", folder.display())))?;
    let mut codes = Vec::new();
    for (rate, requests) in RATES {
        codes.push(one_load(&folder, rate, requests)?);
    }
    print(&closing(&codes))?;
    Ok(0)
}

fn one_load(folder: &Path, rate: &str, requests: u32) -> Outcome<u8> {
    let truth = folder.join(format!("truth-{rate}.jsonl"));
    let engine = Profile::named(PROFILE).ok_or_else(|| Failure::new("no demo profile"))?.config();
    let config = emulator::Config { truth_log: Some(truth.clone()), ..emulator::Config::new(engine) };
    let server = emulator::Emulator::start(config).map_err(|e| Failure::new(format!("failed to {e}")))?;
    let flags = format!(
        "--base-url {} --dataset-name random --random-input-len 1024 --random-output-len 48 --num-prompts {requests} --request-rate {rate} \
         --num-warmups 2 --request-id-prefix {PREFIX} --goodput ttft:150 tpot:25",
        server.url()
    );
    print(&format!("\n$ tailbound bench serve {flags}\n"))?;
    let argv = ["tailbound", "bench", "serve"].into_iter().chain(flags.split(' '));
    let cli = Cli::try_parse_from(argv).map_err(|e| Failure::new(e.to_string()))?;
    let Command::Bench(bench) = cli.command else { return Err(Failure::new("the demo's command is not a bench")) };
    let BenchCommand::Serve(args) = bench.command else { return Err(Failure::new("the demo's command is not a run")) };
    let Some(ran) = serve::measure(&args)? else { return Ok(0) };
    server.stop().map_err(|e| Failure::new(format!("failed to {e}")))?;
    let judged = serve::judge::Judged::new(&args, &ran)?;
    print(&judged.text(false))?;
    print(&beside_the_truth(&truth, judged.run().summary)?)?;
    Ok(judged.exit_code())
}

/// The emulator wrote down when each request had arrived and when each token left, on the same clock.
fn beside_the_truth(file: &Path, summary: &tailbound_stats::Summary) -> Outcome<String> {
    let truth = Truth::read(file, PREFIX)?;
    let (ttft, e2e) = (truth.ttft(), truth.e2e());
    let row = |name: &str, ours: Option<f64>, truth: Option<f64>| match (ours, truth) {
        (Some(ours), Some(truth)) => format!("  {name:<24} {:>10.3} ms   {:>10.3} ms\n", ours * 1e-6, truth * 1e-6),
        _ => format!("  {name:<24} {:>13}   {:>13}\n", "-", "-"),
    };
    let latency = &summary.latency;
    let mut out = format!("Measured by this client, and by the server's own log ({} requests):\n", truth.len());
    out += &row("median TTFT", latency.ttft.median(), ttft.median());
    out += &row("p99 TTFT", latency.ttft.percentile(99.0), ttft.percentile(99.0));
    out += &row("median end-to-end", latency.e2e.median(), e2e.median());
    out += &row("p99 end-to-end", latency.e2e.percentile(99.0), e2e.percentile(99.0));
    out += &format!("  truth log: {}\n", file.display());
    Ok(out)
}

fn closing(codes: &[u8]) -> String {
    let word = |code: u8| match code {
        0 => "valid, objectives met",
        crate::failure::exit::INVALID => "INVALID: see the reasons above (a busy machine is the usual one)",
        crate::failure::exit::OBJECTIVE_MISSED => "valid, objectives missed",
        _ => "interrupted",
    };
    let mut out = String::from("\nOne replica, two loads:\n");
    for ((rate, _), code) in RATES.iter().zip(codes) {
        out += &format!("  {rate:>3} requests/s  exit code {code:<3} {}\n", word(*code));
    }
    out += "\nNext: your own server\n  tailbound doctor http://127.0.0.1:8000\n  tailbound bench serve --base-url http://127.0.0.1:8000 --request-rate 5/s --duration 30s --goodput ttft:300 tpot:50\n";
    out
}
