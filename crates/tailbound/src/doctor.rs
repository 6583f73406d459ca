//! `tailbound doctor [URL]`: what would spoil a run, before the run. Each line: ok, warning or fault, and its mend.

use crate::failure::{Failure, Outcome, exit};
use crate::http::{Server, complaint};
use crate::output;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use tailbound_client::{self as client, Trust};
use tailbound_clock::Dur;
use tailbound_os::{TimerProbe, clock, limits, sleep};
use tailbound_record::{End, Row, StampSource};
use tailbound_wire::Api;

/// Check a server, and this machine, before a run.
#[derive(Args, Debug, Clone)]
pub struct DoctorArgs {
    /// Server address, e.g. http://127.0.0.1:8000; without one only this machine is checked
    pub url: Option<String>,
    /// Model to ask for; by default the first one the server lists
    #[arg(long)]
    pub model: Option<String>,
    /// Don't verify the server's certificate
    #[arg(long)]
    pub insecure: bool,
    /// Speak HTTP/2 with it
    #[arg(long)]
    pub http2: bool,
    /// Trust the certificates in this PEM file too
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Ok,
    Warning,
    Fault,
}

struct Finding {
    level: Level,
    what: &'static str,
    found: String,
    mend: &'static str,
}

fn finding(level: Level, what: &'static str, found: impl Into<String>, mend: &'static str) -> Finding {
    Finding { level, what, found: found.into(), mend }
}

/// Checks everything; exit code 1 if there is a fault.
pub fn run(args: &DoctorArgs) -> Outcome<u8> {
    let mut findings = machine()?;
    if let Some(url) = &args.url {
        findings.extend(check_server(args, url)?);
    }
    let worst = findings.iter().map(|f| f.level).max().unwrap_or(Level::Ok);
    output::print(&findings.iter().map(line).collect::<String>())?;
    Ok(if worst == Level::Fault { exit::COULD_NOT_RUN } else { 0 })
}

fn line(finding: &Finding) -> String {
    let (word, colour) = match finding.level {
        Level::Ok => ("ok", "32"),
        Level::Warning => ("warning", "33"),
        Level::Fault => ("fault", "31"),
    };
    let word = format!("{word:<8}");
    let word = if output::color() { format!("\x1b[{colour}m{word}\x1b[0m") } else { word };
    let mend = match finding.level {
        Level::Ok => String::new(),
        _ => format!("{:25}mend: {}\n", "", finding.mend),
    };
    format!("{word} {:<15} {}\n{mend}", finding.what, finding.found)
}

fn machine() -> Outcome<Vec<Finding>> {
    let files =
        limits::raise_nofile().map_err(|e| Failure::new(format!("failed to read the limit on open files: {e}")))?;
    let level = if files.now < 4096 { Level::Warning } else { Level::Ok };
    let mut findings = vec![finding(
        level,
        "open files",
        format!("{} allowed: about as many requests in flight", files.now),
        "ulimit -n 65536",
    )];
    if let Some(ports) = limits::ephemeral_ports() {
        findings.push(finding(Level::Ok, "local ports", format!("{ports} for connections to one address"), ""));
    }
    let probe = TimerProbe::start(Dur::from_ms(2), None, None)
        .map_err(|e| Failure::new(format!("failed to start a thread: {e}")))?;
    sleep::until(clock::now() + Dur::from_ms(600));
    let noise = probe.finish();
    if let (Some(p50), Some(p99)) = (noise.percentile(0.5), noise.percentile(0.99)) {
        let level = if p99 > Dur::from_ms(1) { Level::Warning } else { Level::Ok };
        let found = format!("a timer wakes {p50} late at p50, {p99} at p99");
        findings.push(finding(level, "scheduler", found, "quiet the machine, or use --realtime and --pin"));
    }
    Ok(findings)
}

fn check_server(args: &DoctorArgs, url: &str) -> Outcome<Vec<Finding>> {
    let trust = match (&args.cacert, args.insecure) {
        (_, true) => Trust::Anything,
        (Some(file), false) => Trust::File(file.clone()),
        (None, false) => Trust::System,
    };
    let key = std::env::var("OPENAI_API_KEY").ok().filter(|k| !k.is_empty());
    let headers: Vec<(String, String)> = key.iter().map(|k| ("authorization".into(), format!("Bearer {k}"))).collect();
    let mut server = Server::new(url, &headers, trust)?;
    server.target.http2 = args.http2;
    let mut findings = Vec::new();

    let reply = match server.ask("/v1/models", None) {
        Ok(reply) => reply,
        Err(failure) => {
            let found = failure.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            findings.push(finding(Level::Fault, "reachable", found, "start the server, or correct the address"));
            return Ok(findings);
        }
    };
    findings.push(finding(Level::Ok, "reachable", format!("{} answers in {}", server.target, reply.took), ""));
    match reply.status {
        401 | 403 => {
            let found = format!("status {}: {}", reply.status, complaint(&reply));
            findings.push(finding(Level::Fault, "key", found, "set OPENAI_API_KEY to a key the server accepts"));
            return Ok(findings);
        }
        200 if key.is_some() => findings.push(finding(Level::Ok, "key", "accepted", "")),
        200 => findings.push(finding(Level::Ok, "key", "none needed", "")),
        status => findings.push(finding(
            Level::Warning,
            "models",
            format!("/v1/models answers with status {status}"),
            "name the model with --model",
        )),
    }
    let listed: Vec<String> = server.models().unwrap_or_default().into_iter().map(|(id, _)| id).collect();
    let model = match args.model.clone().or_else(|| listed.first().cloned()) {
        Some(model) => model,
        None => {
            findings.push(finding(Level::Fault, "model", "the server lists none", "name one with --model"));
            return Ok(findings);
        }
    };
    let there = listed.contains(&model);
    let level = if there || listed.is_empty() { Level::Ok } else { Level::Warning };
    findings.push(finding(
        level,
        "model",
        format!("{model} (listed: {})", listed.join(", ")),
        "use a name that is listed",
    ));
    findings.extend(check_stream(&server, &model)?);
    Ok(findings)
}

/// One short chat, streamed, and what its row tells.
fn check_stream(server: &Server, model: &str) -> Outcome<Vec<Finding>> {
    let (row, api) = match ask(server, model, Api::Chat)? {
        row if row.ok() => (row, Api::Chat),
        _ => (ask(server, model, Api::Completions)?, Api::Completions),
    };
    if let End::Failed { cause, detail, .. } = &row.end {
        let found = format!("neither chat nor completions works: {cause}: {detail}");
        return Ok(vec![finding(Level::Fault, "answers", found, "see the server's log")]);
    }
    let ttft = row.ttft().map_or("-".into(), |d| d.to_string());
    let mut findings =
        vec![finding(Level::Ok, "answers", format!("{} works, first token after {ttft}", api.path()), "")];
    let (events, shared) = (row.chunks.len(), row.chunks.coalesced());
    findings.push(match events > 1 && shared < events / 2 {
        true => finding(
            Level::Ok,
            "streams",
            format!("{events} events for {} tokens, {shared} shared a read", row.output_tokens()),
            "",
        ),
        false => {
            let found = format!("{events} events, {shared} of them in one read with another");
            finding(
                Level::Warning,
                "streams",
                found,
                "something between buffers the stream (a proxy?): gaps between tokens can't be measured",
            )
        }
    });
    findings.push(match row.tokens.output_server {
        Some(n) => finding(Level::Ok, "usage", format!("the server counts {n} output tokens"), ""),
        None => finding(
            Level::Warning,
            "usage",
            "the server states no token counts",
            "give --tokenizer, or tokens are counted as stream events",
        ),
    });
    findings.push(match row.stamps {
        StampSource::Kernel => finding(Level::Ok, "stamps", "receive times come from the kernel", ""),
        _ => finding(
            Level::Warning,
            "stamps",
            "receive times are taken by this process",
            "a busy machine will show in the latencies",
        ),
    });
    Ok(findings)
}

fn ask(server: &Server, model: &str, api: Api) -> Outcome<Row> {
    let body = match api {
        Api::Chat => {
            json!({"model": model, "messages": [{"role": "user", "content": "Count from one to twenty."}], "max_tokens": 16,
                            "stream": true, "stream_options": {"include_usage": true}})
        }
        _ => {
            json!({"model": model, "prompt": "One, two, three,", "max_tokens": 16, "stream": true, "stream_options": {"include_usage": true}})
        }
    };
    let request = client::Request {
        output_tokens: Some(16),
        ..client::Request::new(api, api.path(), body.to_string().into_bytes())
    };
    let limit = Dur::from_secs(60);
    let timeouts = client::Timeouts { connect: Dur::from_secs(5), first_token: limit, gap: limit, request: limit };
    let config = client::Config { timeouts, ..client::Config::default() };
    client::one(&request, &server.target, &config).map_err(|e| Failure::new(format!("failed to {e}")))
}
