//! The run itself: the load released, rows collected, and what the client saw of itself.

use super::args::ServeArgs;
use super::discover::Model;
use super::journal::Journal;
use super::preset;
use super::replay::Outline;
use super::requests::{self, Prepared};
use super::target::Endpoint;
use super::tokens::Counter;
use crate::bench::point::Shape;
use crate::bench::scenario::file::Phased;
use crate::bench::scenario::thresholds::Watcher;
use crate::failure::{Failure, Outcome};
use crate::http::Server;
use crate::progress;
use crate::server_counters::Counters;
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
use tailbound_record::{Moment, Row, StampSource, Why};
use tailbound_report::{Description, Extras, Grouping, RateChange, SpecDecode};
use tailbound_stats::{ClientHealth, Group, RunFacts, by_group};
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
    /// Whether every threshold of its scenario held.
    pub thresholds_held: bool,
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
    #[serde(default)]
    spec_decode: Option<SpecDecode>,
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
) -> Outcome<(Vec<Row>, Ending)> {
    let counters_before = Counters::read(server);
    profiler(args, server, "/start_profile")?;
    let mut journal = Journal::open(args, names)?;
    let config = client::Config { acks, ..config(args) };
    let (rows, log) = send(args, plan, server, prepared, &config, &mut journal, watch)?;
    profiler(args, server, "/stop_profile")?;
    let measured = |id: u32| plan.intent(IntentId(id)).stage == Stage::Measured;
    let mut notes = log.refused.clone();
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
        spec_decode: counters_before.and_then(|before| Counters::read(server)?.since(&before)),
    };
    journal.close(&ending)?;
    Ok((rows, ending))
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

/// From rows to a run: the same whether it has just ended or is read back from its folder. Without an ending it was cut off.
pub fn assemble(
    args: &ServeArgs,
    plan: &Plan,
    mut facts: RunFacts,
    names: &Names,
    rows: Vec<Row>,
    ending: Option<Ending>,
) -> Outcome<Ran> {
    let cut_off = ending.is_none();
    let ending = ending.unwrap_or_default();
    let (measured, probes) = part(rows, plan);
    let mut measured = measured;
    name_classes(&mut measured, names.replay.as_ref());
    let phased = args.load.phased.as_deref();
    if let Some(phased) = phased {
        name_phases(&mut measured, plan, phased);
    }
    facts.start = ending.origin_ns.map(Time).or_else(|| origin(&measured, plan)).unwrap_or(Time(names.anchor.0));
    facts.end = measured.iter().filter_map(super::judge::ended).max().unwrap_or(facts.start).max(facts.start);
    facts.interrupted = ending.interrupted || cut_off;
    facts.output_forced = requests::forced(args, names.replay.as_ref());
    facts.prompt_lengths_exact = names.lengths_exact;
    facts.templated = names.templated;
    let mut groups = groups(&measured, &facts, names.replay.as_ref());
    let mut notes = ending.notes;
    let mut thresholds_held = true;
    if let Some(phased) = phased {
        groups.extend(by_phase(&measured, &facts, plan, phased));
        let mut watcher = Watcher::new(phased, plan);
        measured.iter().for_each(|row| drop(watcher.row(row)));
        for judged in watcher.judgements() {
            thresholds_held &= judged.held;
            notes.push(judged.sentence);
        }
    }
    let description = Description {
        date: names.date(facts.end).compact(),
        backend: args.target.backend.clone(),
        label: args.report.label.clone(),
        model_id: names.model_id.clone(),
        tokenizer_id: names.tokenizer_id.clone(),
        max_model_len: args.data.max_model_len,
        protocol: (!modelled(&measured)).then_some(if args.client.http2 { "HTTP/2" } else { "HTTP/1.1" }),
        num_prompts: names.num_prompts,
        metadata: metadata(args)?,
    };
    let changes = plan.rps_changes().into_iter().map(|change| RateChange {
        rps: u64::from(change.rps),
        timestamp: names.date(facts.start + change.at).to_string(),
    });
    let extras = Extras {
        probes: super::judge::probes(&probes),
        rate_changes: changes.collect(),
        spec_decode: ending.spec_decode,
        trace: names.replay.as_ref().map(|r| r.account.clone()),
        groups,
        ..Extras::default()
    };
    let health = ClientHealth {
        lateness_ns: ending.lateness_ns,
        probe_noise_ns: ending.probe_noise_ns,
        cpu_share: ending.cpu_share,
        reader_late_p99_ns: ending.reader_late_p99_ns,
        fd_limit_hit: ending.fd_limit_hit,
        ..ClientHealth::default()
    };
    Ok(Ran {
        facts,
        rows: measured,
        health,
        description,
        extras,
        notes,
        thresholds_held,
        terminated: ending.terminated,
        plan: plan.hash().to_string(),
    })
}

/// A row that was never sent doesn't know its class.
fn name_classes(rows: &mut [Row], replay: Option<&Outline>) {
    let Some(classes) = replay.map(|replay| replay.classes.small()) else { return };
    for row in rows {
        row.class = classes.get(row.id as usize).copied().unwrap_or(row.class);
    }
}

/// The same of a load of phases.
fn name_phases(rows: &mut [Row], plan: &Plan, phased: &Phased) {
    let Some(phases) = plan.phases() else { return };
    for row in rows {
        let class = phases.of(IntentId(row.id as u32)).and_then(|phase| phased.class_of.get(phase));
        row.class = class.copied().unwrap_or(row.class);
    }
}

/// The requests by phase and by class, where there is more than one of them.
fn by_phase(rows: &[Row], facts: &RunFacts, plan: &Plan, phased: &Phased) -> Vec<Grouping> {
    let Some(phases) = plan.phases() else { return Vec::new() };
    let phase = |row: &Row| phases.of(IntentId(row.id as u32));
    let class = |row: &Row| phase(row).and_then(|p| phased.class_of.get(p)).map(|&class| usize::from(class));
    let names: Vec<String> = phases.names().map(str::to_owned).collect();
    let mut told = Vec::new();
    if phased.classes.len() > 1 {
        told.push(grouped("class", &phased.classes, by_group(rows, facts, phased.classes.len(), class)));
    }
    if names.len() > 1 {
        told.push(grouped("phase", &names, by_group(rows, facts, names.len(), phase)));
    }
    told
}

/// Groups with their names, but for those nothing was planned for.
fn grouped(by: &'static str, names: &[String], figures: Vec<Group>) -> Grouping {
    let named = names.iter().cloned().zip(figures);
    Grouping { by, groups: named.filter(|(_, group)| group.requests.planned > 0).collect() }
}

/// The requests by class, by client and by turn, where there is more than one of them.
fn groups(rows: &[Row], facts: &RunFacts, replay: Option<&Outline>) -> Vec<Grouping> {
    let Some(replay) = replay else { return Vec::new() };
    let by = [("class", &replay.classes), ("client", &replay.clients), ("turn", &replay.turns)];
    let told = by.into_iter().filter(|(_, labels)| labels.names.len() > 1);
    told.map(|(by, labels)| {
        let of = |row: &Row| labels.of.get(row.id as usize).map(|&index| index as usize);
        grouped(by, &labels.names, by_group(rows, facts, labels.names.len(), of))
    })
    .collect()
}

/// `--metadata`, as pairs.
pub fn metadata(args: &ServeArgs) -> Outcome<Vec<(String, String)>> {
    args.report.metadata.iter().map(|pair| super::target::key_value("--metadata", pair)).collect()
}

/// The schedule's start, from any request whose offset the plan knows.
fn origin(rows: &[Row], plan: &Plan) -> Option<Time> {
    let of = |row: &Row| Some(row.at.get(Moment::Scheduled)? - plan.intent(IntentId(row.id as u32)).offset?);
    rows.iter().find_map(of)
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

/// Whether a model answered, so that nothing was sent.
fn modelled(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.stamps == StampSource::Virtual)
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
