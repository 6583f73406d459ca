//! The run itself: the load released, rows collected, and what the client saw of itself.

use super::args::ServeArgs;
use super::discover::Model;
use super::requests::Prepared;
use super::target::Endpoint;
use super::tokens::Counter;
use crate::failure::{Failure, Outcome};
use crate::http::Server;
use crate::progress;
use crate::server_counters::Counters;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tailbound_client::{self as client, Control, RunLog};
use tailbound_clock::Dur;
use tailbound_os::clock::WallAnchor;
use tailbound_os::date::LocalDate;
use tailbound_os::{clock, signals, sleep};
use tailbound_prompt::PromptSet;
use tailbound_record::{Row, Why};
use tailbound_report::{Description, Extras, RateChange};
use tailbound_stats::{ClientHealth, RunFacts};
use tailbound_wire::Api;
use tailbound_workload::{IntentId, Load, Plan, Stage};

/// A run that has ended.
pub struct Ran {
    /// How it was asked for, and when it began and ended.
    pub facts: RunFacts,
    /// The measured requests, by number.
    pub rows: Vec<Row>,
    /// What the client saw of itself.
    pub health: ClientHealth,
    /// Names.
    pub description: Description,
    /// What came from elsewhere.
    pub extras: Extras,
    /// Sentences for the reader: what was asked for and not permitted.
    pub notes: Vec<String>,
    /// Whether SIGTERM ended it.
    pub terminated: bool,
}

impl Ran {
    /// Whether Ctrl-C ended it.
    pub fn interrupted(&self) -> bool {
        self.facts.interrupted && !self.terminated
    }
}

/// Sends the load and gathers everything about it.
#[allow(clippy::too_many_arguments)] // each is one station of the run's path
pub fn run(
    args: &ServeArgs,
    plan: Arc<Plan>,
    mut facts: RunFacts,
    server: &Server,
    model: &Model,
    counter: &Counter,
    prompts: &PromptSet,
    prepared: &Prepared,
) -> Outcome<Ran> {
    let counters_before = Counters::read(server);
    profiler(args, server, "/start_profile")?;
    let anchor = WallAnchor::take();
    let (rows, log) = send(args, &plan, server, prepared)?;
    profiler(args, server, "/stop_profile")?;
    let spec_decode = counters_before.and_then(|before| Counters::read(server)?.since(&before));

    let (measured, probes) = part(rows, &plan);
    facts.start = log.origin.unwrap_or(log.start);
    facts.end = measured.iter().filter_map(super::judge::ended).max().unwrap_or(log.end).max(facts.start);
    facts.interrupted = signals::interrupts() + signals::terminates() > 0;
    facts.output_forced = args.payload.ignore_eos || args.data.dataset_name == "random";
    // What a chat template adds is the server's secret, so lengths can be held to only where the prompt is sent as it is.
    facts.prompt_lengths_exact = !matches!(counter, Counter::None) && prepared.api() == Api::Completions;

    let health = health(&log, &plan);
    let metadata = args.report.metadata.iter().map(|pair| super::target::key_value("--metadata", pair));
    let description = Description {
        date: LocalDate::of_unix_ns(anchor.unix_ns(clock::now())).compact(),
        backend: args.target.backend.clone(),
        label: args.report.label.clone(),
        model_id: model.id.clone(),
        tokenizer_id: counter.id(),
        num_prompts: prompts.prompts.len(),
        metadata: metadata.collect::<Outcome<_>>()?,
    };
    let changes = plan.rps_changes().into_iter().map(|change| RateChange {
        rps: u64::from(change.rps),
        timestamp: LocalDate::of_unix_ns(anchor.unix_ns(facts.start + change.at)).to_string(),
    });
    let extras = Extras {
        probes: super::judge::probes(&probes),
        rate_changes: changes.collect(),
        spec_decode,
        ..Extras::default()
    };
    Ok(Ran {
        facts,
        rows: measured,
        health,
        description,
        extras,
        notes: log.refused,
        terminated: signals::terminates() > 0,
    })
}

/// Releases the load and collects the rows, under the eye of Ctrl-C.
fn send(args: &ServeArgs, plan: &Arc<Plan>, server: &Server, prepared: &Prepared) -> Outcome<(Vec<Row>, RunLog)> {
    signals::watch();
    let control = Arc::new(Control::new());
    let over = AtomicBool::new(false);
    let total = (!plan.endless()).then(|| u64::from(plan.requests()));
    let mut load = Load::new(plan.clone());
    let mut rows = Vec::with_capacity(total.unwrap_or(0) as usize);
    let log = std::thread::scope(|scope| {
        scope.spawn(|| watch_signals(&control, &over));
        let line = progress::Line::start(&control, total, args.report.disable_tqdm);
        let log = client::run(&mut load, prepared, &server.target, &config(args), &control, &mut |row| rows.push(row));
        drop(line);
        over.store(true, Ordering::Relaxed);
        log
    });
    let log = log
        .map_err(|e| Failure::new(format!("failed to {e}")).during(format!("sending the load to {}", server.target)))?;
    rows.sort_unstable_by_key(|row| row.id);
    Ok((rows, log))
}

/// First signal: stop sending and drain. Second: end at once.
fn watch_signals(control: &Control, over: &AtomicBool) {
    let mut told = 0;
    while !over.load(Ordering::Relaxed) {
        let signals = signals::interrupts() + signals::terminates();
        if signals > told {
            match told {
                0 => {
                    eprintln!("\ninterrupted: nothing more is sent; waiting for requests in flight (again to end now)");
                    control.stop(Why::Interrupted);
                }
                _ => control.abort(Why::Interrupted),
            }
            if signals > 1 {
                control.abort(Why::Interrupted);
            }
            told = signals;
        }
        sleep::until(clock::now() + Dur::from_ms(20));
    }
}

fn config(args: &ServeArgs) -> client::Config {
    let timeouts = client::Timeouts {
        connect: args.client.connect_timeout,
        first_token: args.client.first_token_timeout.unwrap_or(args.client.timeout),
        gap: args.client.gap_timeout.unwrap_or(args.client.timeout),
        request: args.client.timeout,
    };
    client::Config {
        threads: args.client.threads as usize,
        timeouts,
        gather: !args.client.no_gather,
        realtime: args.client.realtime,
        pin: args.client.pin.iter().map(|&core| core as usize).collect(),
        preconnect: args.client.preconnect as usize,
        grace: args.client.grace,
        keep_text: args.report.save_detailed,
        ..client::Config::default()
    }
}

fn profiler(args: &ServeArgs, server: &Server, path: &str) -> Outcome<()> {
    if !args.load.profile {
        return Ok(());
    }
    let reply = server.ask(path, Some(&serde_json::json!({})))?;
    match reply.status {
        200..300 => Ok(()),
        status => Err(Failure::new(format!("{path} answered with status {status}"))
            .during("switching the server's profiler (--profile)")
            .hint("the server must have been started with a profiler configuration")),
    }
}

/// Measured rows, and probes; warm-ups are dropped.
fn part(rows: Vec<Row>, plan: &Plan) -> (Vec<Row>, Vec<Row>) {
    let mut measured = Vec::with_capacity(rows.len());
    let mut probes = Vec::new();
    for row in rows {
        match plan.intent(IntentId(row.id as u32)).stage {
            Stage::Measured => measured.push(row),
            Stage::Probe => probes.push(row),
            Stage::Warmup => {}
        }
    }
    (measured, probes)
}

fn health(log: &RunLog, plan: &Plan) -> ClientHealth {
    let measured = |id: u32| plan.intent(IntentId(id)).stage == Stage::Measured;
    ClientHealth {
        lateness_ns: Some(log.late.iter().filter(|l| measured(l.id)).map(|l| l.by.ns()).collect()),
        probe_noise_ns: Some(log.noise.sorted_ns.clone()),
        cpu_share: log.busiest_loop(),
        reader_late_p99_ns: reader_late_p99(&log.read_delay),
        fd_limit_hit: Some(log.local_limit_hits > 0),
        ..ClientHealth::default()
    }
}

/// The upper edge of the bucket that holds the 99th percentile.
fn reader_late_p99(buckets: &[u64; 24]) -> Option<f64> {
    let total: u64 = buckets.iter().sum();
    let rank = total - total / 100;
    let mut seen = 0;
    buckets.iter().enumerate().find_map(|(i, n)| {
        seen += n;
        (total > 0 && seen >= rank).then(|| (1u64 << i) as f64 * 1e3)
    })
}

/// What would be sent.
pub fn dry_run(
    args: &ServeArgs,
    plan: &Plan,
    endpoint: &Endpoint,
    model: &Model,
    counter: &Counter,
    prepared: &Prepared,
) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<18} {value}");
    };
    line("plan", plan.hash().to_string());
    line("target", endpoint.url());
    line("model", model.name.clone());
    line("data set", args.data.dataset_name.clone());
    line("token counts", counter.description());
    match plan.endless() {
        true => line("requests", "as many as fit into --duration".into()),
        false => line("requests", plan.requests().to_string()),
    }
    line("warm-ups", plan.warmups().to_string());
    line("arrivals", format!("{:?}", plan.law()));
    line("last arrival", plan.span().to_string());
    line("concurrency cap", plan.max_concurrency().map_or("none".into(), |n| n.to_string()));
    line("bodies", format!("{:.1} MB", prepared.bytes() as f64 / 1e6));
    out
}
