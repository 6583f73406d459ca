//! The run itself: the load released, rows collected, and what the client saw of itself.

mod assemble;

use super::args::ServeArgs;
use super::discover::Model;
use super::journal::Journal;
use super::preset;
use super::replay::Outline;
use super::requests::Prepared;
use super::target::Endpoint;
use super::tokens::Counter;
use crate::bench::point::Shape;
use crate::bench::scenario::file::Phased;
use crate::failure::{Failure, Outcome};
use crate::http::Server;
use crate::progress;
use crate::server_metrics::{self, Scraper};
pub use assemble::{assemble, metadata};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tailbound_client::{self as client, Control, RunLog};
use tailbound_clock::{Dur, Time};
use tailbound_os::clock::WallAnchor;
use tailbound_os::date::LocalDate;
use tailbound_os::{clock, signals, sleep};
use tailbound_prompt::PromptSet;
use tailbound_record::server::Scrape;
use tailbound_record::{Row, Why};
use tailbound_report::{Description, Extras};
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
    /// The hash of its plan.
    pub plan: String,
}

impl Ran {
    /// Whether Ctrl-C ended it.
    pub fn interrupted(&self) -> bool {
        self.facts.interrupted && !self.terminated
    }
}

/// What is known of a run before it begins, beside its flags.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Names {
    /// The command line, from which plan and selection can be made again.
    pub argv: Vec<String>,
    model_id: String,
    tokenizer_id: Option<String>,
    /// How many prompts the data set gave.
    pub num_prompts: usize,
    /// What was replayed, if a trace was.
    #[serde(default)]
    pub replay: Option<Outline>,
    /// The phases, if the load has them.
    #[serde(default)]
    pub phased: Option<Phased>,
    lengths_exact: bool,
    /// Whether the server puts a chat template around prompts.
    #[serde(default)]
    templated: bool,
    /// A moment of the run's clock, and the same in Unix time, ns.
    anchor: (u64, u64),
    /// Which point of a command that measures several it is, if it is one.
    #[serde(default)]
    pub point: Option<Shape>,
}

/// What is known of it once it has ended, beside its rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ending {
    origin_ns: Option<u64>,
    interrupted: bool,
    terminated: bool,
    lateness_ns: Option<Vec<u64>>,
    probe_noise_ns: Option<Vec<u64>>,
    cpu_share: Option<f64>,
    reader_late_p99_ns: Option<f64>,
    fd_limit_hit: Option<bool>,
    notes: Vec<String>,
}

/// What a run gave.
#[derive(Debug, Default)]
pub struct Gathered {
    /// All rows by number, warm-ups and probes too.
    pub rows: Vec<Row>,
    /// What servers said of themselves.
    pub scrapes: Vec<Scrape>,
}

impl Ending {
    /// Of a run of a model, which has no client to judge.
    pub fn in_virtual_time(origin: Option<Time>) -> Ending {
        Ending { origin_ns: origin.map(Time::ns), ..Ending::default() }
    }
}

/// Is shown each measured request as it ends; whether the run is to go on.
pub type Watch<'a> = &'a mut dyn FnMut(&Row) -> bool;

/// Sends the load and gathers everything about it. Once `watch` says `false` nothing more is sent.
pub fn run(
    args: &ServeArgs,
    plan: &Arc<Plan>,
    server: &Server,
    prepared: &Prepared,
    names: &Names,
    acks: client::Acks,
    watch: Watch<'_>,
) -> Outcome<(Gathered, Ending)> {
    let sources = server_metrics::sources(&args.target, server)?;
    profiler(args, server, "/start_profile")?;
    let mut journal = Journal::open(args, names)?;
    let scraper = Scraper::start(sources, journal.beside()?);
    let config = client::Config { acks, ..config(args) };
    let (rows, log) = send(args, plan, server, prepared, &config, &mut journal, watch)?;
    let (scrapes, unread) = scraper.finish();
    profiler(args, server, "/stop_profile")?;
    let measured = |id: u32| plan.intent(IntentId(id)).stage == Stage::Measured;
    let mut notes = log.refused.clone();
    notes.extend(unread);
    if acks == client::Acks::Delayed {
        notes.push(
            "acknowledgements are delayed: the ready check saw the server send without waiting for them".to_owned(),
        );
    }
    let ending = Ending {
        origin_ns: log.origin.map(Time::ns),
        interrupted: signals::interrupts() + signals::terminates() > 0,
        terminated: signals::terminates() > 0,
        lateness_ns: Some(log.late.iter().filter(|l| measured(l.id)).map(|l| l.by.ns()).collect()),
        probe_noise_ns: Some(log.noise.sorted_ns.clone()),
        cpu_share: log.busiest_loop(),
        reader_late_p99_ns: reader_late_p99(&log.read_delay),
        fd_limit_hit: Some(log.local_limit_hits > 0),
        notes,
    };
    journal.close(&ending)?;
    Ok((Gathered { rows, scrapes }, ending))
}

impl Names {
    /// Of a run about to begin.
    pub fn new(
        model: &Model,
        counter: &Counter,
        prompts: &PromptSet,
        prepared: &Prepared,
        replay: Option<&Outline>,
    ) -> Names {
        let anchor = WallAnchor::take();
        let now = clock::now();
        Names {
            argv: std::env::args().collect(),
            model_id: model.id.clone(),
            tokenizer_id: counter.id(),
            num_prompts: prompts.prompts.len(),
            replay: replay.cloned(),
            phased: None,
            // What a chat template adds is the server's secret, so lengths can be held to only where the prompt is sent as it is.
            lengths_exact: !matches!(counter, Counter::None) && prepared.api() == Api::Completions,
            templated: !matches!(prepared.api(), Api::Completions | Api::LlamaCompletion | Api::TgiGenerate),
            anchor: (now.ns(), anchor.unix_ns(now)),
            point: None,
        }
    }

    /// A moment of the run's clock in Unix time, ms.
    pub fn unix_ms(&self, at: Time) -> u64 {
        self.anchor.1.saturating_add_signed(at.minus(Time(self.anchor.0))) / 1_000_000
    }

    /// The same, of a run whose clock begins at zero.
    pub fn in_virtual_time(self) -> Names {
        let now = clock::now();
        Names { anchor: (0, WallAnchor::take().unix_ns(now)), ..self }
    }

    /// The same, of a point of a command that measures several.
    pub fn of_point(self, point: Option<Shape>) -> Names {
        Names { point, ..self }
    }

    /// The same, of a load of phases, and of the command that makes its flags again.
    pub fn of_scenario(self, args: &ServeArgs) -> Names {
        let argv = args.report.argv.clone().unwrap_or(self.argv);
        Names { argv, phased: args.load.phased.as_deref().cloned(), ..self }
    }

    fn date(&self, at: Time) -> LocalDate {
        LocalDate::of_unix_ns(self.anchor.1.saturating_add_signed(at.minus(Time(self.anchor.0))))
    }
}

/// Releases the load and collects the rows, under the eye of Ctrl-C.
fn send(
    args: &ServeArgs,
    plan: &Arc<Plan>,
    server: &Server,
    prepared: &Prepared,
    config: &client::Config,
    journal: &mut Journal,
    watch: Watch<'_>,
) -> Outcome<(Vec<Row>, RunLog)> {
    signals::watch();
    let control = Arc::new(Control::new());
    let over = AtomicBool::new(false);
    let total = (!plan.endless()).then(|| u64::from(plan.requests()));
    let mut load = Load::new(plan.clone());
    let mut rows = Vec::with_capacity(total.unwrap_or(0) as usize);
    let (mut broken, mut enough) = (None, false);
    let log = std::thread::scope(|scope| {
        scope.spawn(|| watch_signals(&control, &over));
        let line = progress::Line::start(&control, total, args.report.disable_tqdm);
        let log = client::run(&mut load, prepared, &server.target, config, &control, &mut |row| {
            if let Err(failure) = journal.row(&row) {
                broken.get_or_insert(failure);
            }
            let measured = plan.intent(IntentId(row.id as u32)).stage == Stage::Measured;
            if measured && !enough && !watch(&row) {
                enough = true;
                control.stop(Why::Rule);
            }
            rows.push(row);
        });
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
pub fn watch_signals(control: &Control, over: &AtomicBool) {
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

/// How the client is to work.
pub fn config(args: &ServeArgs) -> client::Config {
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
    replay: Option<&Outline>,
) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<18} {value}");
    };
    line("plan", plan.hash().to_string());
    line("target", endpoint.url());
    line("model", model.name.clone());
    match args.preset {
        Some(preset) => preset::lines(preset, args).into_iter().for_each(|(name, value)| line(name, value)),
        None => line("data set", args.data.dataset_name.clone()),
    }
    line("token counts", counter.description());
    match plan.endless() {
        true => line("requests", "as many as fit into --duration".into()),
        false => line("requests", plan.requests().to_string()),
    }
    if let Some(replay) = replay {
        tailbound_report::text::trace_account(&replay.account).into_iter().for_each(|(name, value)| line(&name, value));
    }
    line("warm-ups", plan.warmups().to_string());
    line("arrivals", format!("{:?}", plan.law()));
    line("last arrival", plan.span().to_string());
    line("concurrency cap", plan.max_concurrency().map_or("none".into(), |n| n.to_string()));
    line("bodies", format!("{:.1} MB", prepared.bytes() as f64 / 1e6));
    out
}
