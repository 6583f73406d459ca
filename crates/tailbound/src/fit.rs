//! `tailbound fit`: the step law of a server, learnt from a run it was measured in.

use crate::bench::serve::args::Format;
use crate::bench::serve::journal;
use crate::failure::{Failure, Outcome};
use crate::{bundle, output, units};
use clap::Args;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use tailbound_clock::{Dur, Time};
use tailbound_engine::fit::{Asked, Errors, Learnt, learn};
use tailbound_engine::{Aic, Config, Law};
use tailbound_record::{Moment, Row};

/// `tailbound fit`.
#[derive(Args, Debug)]
pub struct FitArgs {
    /// The folder of a run, or a file of JSON lines with at, input, output, ttft, tpot, and cached if known (times in seconds)
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Most sequences in a step of that server
    #[arg(long, value_name = "N", value_parser = units::count32, default_value = "256")]
    max_num_seqs: u32,
    /// Most tokens in a step of that server
    #[arg(long, value_name = "N", value_parser = units::count32, default_value = "8192")]
    max_num_batched_tokens: u32,
    /// Blocks of its KV cache [default: as many as never to run out]
    #[arg(long, value_name = "N", value_parser = units::count32)]
    num_gpu_blocks: Option<u32>,
    /// Tokens in a block
    #[arg(long, value_name = "N", value_parser = units::count32, default_value = "16")]
    block_size: u32,
    /// Write the law to a file, for `tailbound emulate --law FILE`
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Result on stdout as text, or as one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Reads, learns, tells.
pub fn run(args: &FitArgs) -> Outcome<u8> {
    let asked = read(&args.run)?;
    let longest = asked.iter().map(|a| a.input.saturating_add(a.output)).max().unwrap_or(1);
    let total: u64 = asked.iter().map(|a| u64::from(a.input) + u64::from(a.output)).sum();
    let enough = (total / u64::from(args.block_size) + asked.len() as u64 + 1).min(1 << 24) as u32;
    let config = Config {
        block_size: args.block_size,
        max_num_seqs: args.max_num_seqs,
        max_num_batched_tokens: args.max_num_batched_tokens,
        ..Config::new(Law::Aic(UNKNOWN), args.num_gpu_blocks.unwrap_or(enough), longest)
    };
    let failed = |e| Failure::new(format!("failed to learn from {}: {e}", args.run.display()));
    let learnt = learn(&asked, &config).map_err(failed)?;
    let json = |value: &serde_json::Value| serde_json::to_string_pretty(value).map_err(Failure::new);
    if let Some(file) = &args.output {
        let law = serde_json::to_value(learnt.law).map_err(Failure::new)?;
        bundle::write(file, (json(&law)? + "\n").as_bytes())?;
    }
    output::print(&match args.format {
        Format::Text => text(&learnt),
        Format::Json => json(&value(&learnt)?)? + "\n",
    })?;
    Ok(0)
}

/// `emulate --law`: what [`run`] wrote.
pub fn law(file: &Path) -> Outcome<Law> {
    let failed = |e: String| Failure::usage(format!("--law {}: {e}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|e| failed(e.to_string()))?;
    let law: Aic = serde_json::from_str(&text).map_err(|e| failed(e.to_string()))?;
    Ok(Law::Aic(law))
}

/// Stands where the law is asked for that is being looked for.
const UNKNOWN: Aic = Aic { decode: [1.0, 0.0, 0.0], prefill: [1.0, 0.0, 0.0], knee: 0.0, shared: None };

/// A line of a file of requests; seconds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    at: f64,
    input: u32,
    output: u32,
    #[serde(default)]
    cached: u32,
    ttft: f64,
    #[serde(default)]
    tpot: Option<f64>,
}

fn read(path: &Path) -> Outcome<Vec<Asked>> {
    if path.is_dir() {
        let rows = journal::read(path)?.rows;
        let first = rows.iter().filter_map(|r| r.at.get(Moment::WriteStart)).min().unwrap_or_default();
        let asked: Vec<Asked> = rows.iter().filter_map(|row| of_row(row, first)).collect();
        return Ok(asked);
    }
    let failed = |why: String| Failure::usage(format!("failed to read {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
    let mut asked = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let l: Line = serde_json::from_str(line).map_err(|e| failed(format!("line {}: {e}", i + 1)))?;
        let sound = |x: f64| (0.0..1e9).contains(&x);
        if l.input == 0 || l.output == 0 || ![l.at, l.ttft, l.tpot.unwrap_or(0.0)].iter().all(|x| sound(*x)) {
            return Err(failed(format!("line {}: tokens must be above 0, and times 0 to 1e9 seconds", i + 1)));
        }
        asked.push(Asked {
            at: Dur::from_secs_f64(l.at),
            input: l.input,
            cached: l.cached.min(l.input),
            output: l.output,
            ttft: 1e3 * l.ttft,
            tpot: l.tpot.filter(|_| l.output > 1).map(|t| 1e3 * t),
        });
    }
    Ok(asked)
}

/// A request whose whole answer came; the others tell nothing.
fn of_row(row: &Row, first: Time) -> Option<Asked> {
    let sent = row.at.get(Moment::WriteStart)?;
    let output = row.output_tokens();
    let gaps = row.at.between(Moment::FirstToken, Moment::LastToken)?;
    let input = row.prompt_tokens().filter(|n| *n > 0)?;
    (row.ok() && output > 0).then_some(Asked {
        at: sent.since(first),
        input,
        cached: row.tokens.cached_server.unwrap_or(0).min(input),
        output,
        ttft: row.ttft()?.ms(),
        tpot: (output > 1).then(|| gaps.ms() / f64::from(output - 1)),
    })
}

fn text(learnt: &Learnt) -> String {
    let Aic { decode: [every, sequence, context], prefill: [_, token, pair], .. } = learnt.law;
    let errors = |name: &str, e: &Errors| {
        let [t50, t90] = e.ttft.map(|x| 100.0 * x);
        let [p50, p90] = e.tpot.map(|x| 100.0 * x);
        format!(
            "{name:<10}{:>6} requests   mean TTFT {:+.1} %, TPOT {:+.1} %   each, p50 and p90: TTFT {t50:.1} % {t90:.1} %, TPOT {p50:.1} % {p90:.1} %\n",
            e.requests,
            100.0 * e.ttft_mean,
            100.0 * e.tpot_mean,
        )
    };
    format!(
        "A step takes {every:.3} ms, {sequence:.4} ms for each sequence that decodes and {context:.3e} ms for each token of its context,\n\
         {token:.4} ms for each prompt token and {pair:.3e} ms for each pair of tokens in a prompt's attention.\n\n\
         {}{}The run was simulated {} times. What was held out, its last 30 %, is the error to expect.\n",
        errors("learnt", &learnt.learnt),
        errors("held out", &learnt.held_out),
        learnt.runs,
    )
}

fn value(learnt: &Learnt) -> Outcome<serde_json::Value> {
    let errors = |e: &Errors| {
        serde_json::json!({
            "requests": e.requests, "ttft_mean": e.ttft_mean, "tpot_mean": e.tpot_mean,
            "ttft_p50_p90": e.ttft, "tpot_p50_p90": e.tpot,
        })
    };
    let law = serde_json::to_value(learnt.law).map_err(Failure::new)?;
    let (seen, held_out) = (errors(&learnt.learnt), errors(&learnt.held_out));
    Ok(serde_json::json!({ "law": law, "learnt": seen, "held_out": held_out, "runs": learnt.runs }))
}
