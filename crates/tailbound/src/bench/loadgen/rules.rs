//! From flags and configuration files to LoadGen's settings: what is silently ignored elsewhere is told here.

use super::args::{RuleArgs, RuleSet};
use crate::bench::serve::target::{distance, key_value};
use crate::failure::{Failure, Outcome};
use crate::output;
use tailbound_stats::loadgen::benchmarks::{self, LLMS};
use tailbound_stats::loadgen::conf::{self, MLPERF_CONF};
use tailbound_stats::loadgen::isca2020::{TASKS, Task};
use tailbound_stats::loadgen::{Scenario, Settings, Source, audit};

/// What is to be run.
pub struct Rules {
    /// LoadGen's settings.
    pub settings: Settings,
    /// The benchmark's name in the files; `*` for none.
    pub benchmark: String,
    /// Samples its performance set should have.
    pub samples: Option<u64>,
    /// Warnings for the detail log.
    pub warnings: Vec<String>,
    /// The paper's task, by its rules.
    pub task: Option<Task>,
}

/// Reads flags and files, in LoadGen's order: its defaults, mlperf.conf, user.conf, `--set`, `--mode`, audit.config.
pub fn rules(args: &RuleArgs) -> Outcome<Rules> {
    let (scenario, interactive) = scenario(&args.scenario)?;
    let benchmark = benchmark(args.benchmark.as_deref(), interactive)?;
    let mut settings = match &args.mlperf_conf {
        None => Settings::official(&benchmark, scenario),
        Some(file) => {
            let mut settings = Settings { scenario, ..Settings::default() };
            let name = file.display().to_string();
            lay(&mut settings, &read(file, "--mlperf-conf")?, &name, &benchmark, Source::Defaults)?;
            settings
        }
    };
    if let Some(file) = &args.user_conf {
        let name = file.display().to_string();
        lay(&mut settings, &read(file, "--user-conf")?, &name, &benchmark, Source::User)?;
    }
    let task = task(args)?;
    if let Some(task) = &task {
        task.apply(&mut settings, 1);
    }
    set(&mut settings, &args.set)?;
    if let Some(mode) = args.mode {
        settings.mode = mode.mode();
    }
    let warnings = audited(&mut settings, args, &benchmark)?;
    let samples = Some(settings.performance_sample_count_override).filter(|&n| n > 0);
    Ok(Rules { settings, benchmark, samples, warnings, task })
}

fn scenario(name: &str) -> Outcome<(Scenario, bool)> {
    let plain = |s: &str| s.to_ascii_lowercase().replace(['-', '_'], "");
    if plain(name) == "interactive" {
        return Ok((Scenario::Server, true));
    }
    let found = Scenario::ALL.into_iter().find(|s| plain(s.name()) == plain(name));
    found.map(|s| (s, false)).ok_or_else(|| {
        Failure::usage(format!("--scenario {name}: unknown scenario"))
            .hint("one of SingleStream, MultiStream, Server, Offline, Interactive")
    })
}

/// The name under which the files know the benchmark.
fn benchmark(name: Option<&str>, interactive: bool) -> Outcome<String> {
    const SUFFIX: &str = "-interactive";
    let Some(name) = name else {
        return match interactive {
            false => Ok("*".to_owned()),
            true => Err(Failure::usage("--scenario Interactive: whose limits? name the --benchmark")
                .hint("or --scenario Server --set use_token_latencies=1 --set ttft_latency=MS --set tpot_latency=MS")),
        };
    };
    let full = if interactive && !name.ends_with(SUFFIX) { format!("{name}{SUFFIX}") } else { name.to_owned() };
    if known(&full) {
        return Ok(full);
    }
    let near = LLMS.into_iter().min_by_key(|b| distance(b, &full)).filter(|b| distance(b, &full) <= 4);
    let failure = Failure::usage(match interactive && known(name) {
        true => format!("--scenario Interactive: the benchmark {name} has no such limits"),
        false => format!("--benchmark {name}: mlperf.conf knows no such benchmark"),
    });
    Err(match near {
        Some(near) if !interactive => failure.hint(format!("did you mean {near}?")),
        _ => failure.hint(format!("LLM benchmarks: {}", LLMS.join(", "))),
    })
}

fn known(name: &str) -> bool {
    let begins = |line: &str| line.split_once('.').is_some_and(|(model, _)| model == name);
    benchmarks::benchmark(name).is_some() || MLPERF_CONF.lines().any(begins)
}

fn read(file: &std::path::Path, flag: &str) -> Outcome<String> {
    std::fs::read_to_string(file)
        .map_err(|e| Failure::usage(format!("{flag} {}: failed to read it: {e}", file.display())))
}

/// LoadGen drops a whole file with an error in it, and runs on without; here that ends it.
fn lay(settings: &mut Settings, text: &str, name: &str, benchmark: &str, source: Source) -> Outcome<()> {
    let conf = conf::parse(text);
    if let Some(error) = conf.errors.first() {
        return Err(Failure::usage(format!("{name}: {error}"))
            .hint("LoadGen would drop the whole file for that and run with its defaults: mend the line"));
    }
    for remark in settings.apply(&conf, benchmark, source) {
        output::note(&format!("{name}: {remark}"));
    }
    Ok(())
}

/// `--set`: lines of user.conf for the running scenario; one that would be ignored is refused.
fn set(settings: &mut Settings, pairs: &[String]) -> Outcome<()> {
    let mut text = String::new();
    for pair in pairs {
        let (key, value) = key_value("--set", pair)?;
        let name = key.rsplit('.').next().unwrap_or(&key);
        text += &format!("*.{}.{name} = {value}\n", settings.scenario.name());
    }
    let conf = conf::parse(&text);
    let line = |n: usize| pairs.get(n - 1).map_or("", String::as_str);
    if let Some(error) = conf.errors.first() {
        return Err(Failure::usage(format!("--set {}: {}", line(error.line), error.what)));
    }
    match settings.apply(&conf, "*", Source::User).first() {
        None => Ok(()),
        Some(remark) => Err(Failure::usage(format!("--set {}: {}", line(remark.line), remark.what))),
    }
}

fn audited(settings: &mut Settings, args: &RuleArgs, benchmark: &str) -> Outcome<Vec<String>> {
    const TOLD: &str = "Found Audit Config file (audit.config). Overriding TestSettings from audit.config file.";
    let Some(named) = &args.audit_conf else {
        if std::path::Path::new("audit.config").exists() {
            output::note(
                "audit.config in this folder was not read (LoadGen would): --audit-conf audit.config applies it",
            );
        }
        return Ok(Vec::new());
    };
    let text = match audit::config(&named.to_ascii_lowercase()) {
        Some(text) => text.to_owned(),
        None => read(std::path::Path::new(named), "--audit-conf")?,
    };
    lay(settings, &text, named, benchmark, Source::Audit)?;
    Ok(vec![TOLD.to_owned()])
}

fn task(args: &RuleArgs) -> Outcome<Option<Task>> {
    let names = || TASKS.iter().map(|t| t.name).collect::<Vec<_>>().join(", ");
    match (args.rules, &args.task) {
        (RuleSet::Current, None) => Ok(None),
        (RuleSet::Current, Some(_)) => Err(Failure::usage("--task needs --rules isca2020")),
        (RuleSet::Isca2020, None) => {
            Err(Failure::usage("--rules isca2020: by which task's bounds? name the --task").hint(names()))
        }
        (RuleSet::Isca2020, Some(name)) => Task::named(name).map(Some).ok_or_else(|| {
            Failure::usage(format!("--task {name}: the paper has no such task")).hint(format!("one of {}", names()))
        }),
    }
}
