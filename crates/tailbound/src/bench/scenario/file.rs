//! A scenario's file, parsed and dumb, and what it means.

use crate::failure::{Failure, Outcome};
use crate::units;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_clock::Dur;
use tailbound_workload::{Arrivals, Executor, Phase, PhaseStage as Stage, WhenFull};

/// The file as written.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Flags of `bench serve`.
    #[serde(default)]
    serve: toml::Table,
    #[serde(default)]
    phase: Vec<PhaseTable>,
    /// Objectives of every request: metric = limit.
    #[serde(default)]
    objectives: BTreeMap<String, Amount>,
    /// Objectives of one class instead.
    #[serde(default)]
    class: BTreeMap<String, BTreeMap<String, Amount>>,
    #[serde(default)]
    threshold: Vec<ThresholdTable>,
    #[serde(default)]
    repeat: Option<RepeatTable>,
}

/// A number, or text with a unit.
#[derive(Deserialize, Debug, Clone)]
#[serde(untagged)]
enum Amount {
    Number(f64),
    Text(String),
}

impl Amount {
    fn text(&self) -> String {
        match self {
            Amount::Number(n) => n.to_string(),
            Amount::Text(text) => text.clone(),
        }
    }
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct PhaseTable {
    name: Option<String>,
    executor: String,
    class: Option<String>,
    start: Option<Amount>,
    clients: Option<u32>,
    start_clients: Option<u32>,
    iterations: Option<u32>,
    duration: Option<Amount>,
    max_duration: Option<Amount>,
    rate: Option<Amount>,
    start_rate: Option<Amount>,
    stages: Option<Vec<StageTable>>,
    poisson: Option<bool>,
    max_clients: Option<u32>,
    when_full: Option<WhenFull>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct StageTable {
    duration: Amount,
    target: Amount,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct ThresholdTable {
    metric: String,
    percentile: Option<f64>,
    below: Amount,
    class: Option<String>,
    #[serde(default)]
    abort: bool,
    delay: Option<Amount>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct RepeatTable {
    until: String,
    within: f64,
    min: Option<u32>,
    max: Option<u32>,
}

/// A load's phases, and which class of requests each sends: what a run's folder keeps, so that a report needs the file no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phased {
    /// The phases.
    pub phases: Vec<Phase>,
    /// The classes' names.
    pub classes: Vec<String>,
    /// Each phase's class, by its place among the names.
    pub class_of: Vec<u16>,
    /// What must hold over the run.
    pub thresholds: Vec<Threshold>,
}

/// Something that must hold over all requests, or those of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// What is looked at.
    pub metric: Metric,
    /// The class, by its place; `None`: all.
    pub class: Option<u16>,
    /// What it must stay below: seconds, or a share of requests.
    pub below: f64,
    /// Whether the run ends when it is not.
    pub abort: bool,
    /// Not before so long into the run.
    pub delay: Dur,
}

/// What a threshold looks at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// The share of requests that failed.
    Failed,
    /// A percentile of the time to the first token.
    Ttft(f64),
    /// A percentile of the time per output token.
    Tpot(f64),
    /// A percentile of the end-to-end latency.
    E2el(f64),
}

/// How often a scenario is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// The key of the result whose mean is to be known.
    pub until: String,
    /// Half of the interval's width over the mean, at most.
    pub within: f64,
    /// Runs at least.
    pub min: u32,
    /// Runs at most.
    pub max: u32,
}

/// What a file means.
pub struct Scenario {
    /// The load.
    pub phased: Phased,
    /// Flags of `bench serve`.
    pub flags: Vec<String>,
    /// How often it is run; `None`: once.
    pub repeat: Option<Repeat>,
}

/// How long k6 lets iterations go on, if nothing says otherwise.
const MAX_DURATION: Dur = Dur::from_secs(600);

/// Reads a scenario.
pub fn read(path: &Path) -> Outcome<Scenario> {
    let failed = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| failed(format!("failed to read it: {e}")))?;
    parse(&text).map_err(|(why, hint)| if hint.is_empty() { failed(why) } else { failed(why).hint(hint) })
}

type Wrong = (String, String);

fn wrong(why: impl Into<String>) -> Wrong {
    (why.into(), String::new())
}

fn parse(text: &str) -> Result<Scenario, Wrong> {
    let file: File = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        wrong(format!("line {line}: {}", e.message().replace('\n', " ")))
    })?;
    let mut phases = Vec::new();
    let (mut classes, mut class_of) = (Vec::new(), Vec::new());
    let mut after = Dur::ZERO;
    for (number, table) in file.phase.iter().enumerate() {
        let name = table.name.clone().unwrap_or_else(|| format!("phase {}", number + 1));
        let start = match &table.start {
            Some(start) => duration(&name, "start", start)?,
            None => after,
        };
        let executor = executor(&name, table)?;
        after = start + executor.duration();
        let class = table.class.clone().unwrap_or_else(|| name.clone());
        let place = classes.iter().position(|c| *c == class).unwrap_or_else(|| {
            classes.push(class);
            classes.len() - 1
        });
        class_of.push(u16::try_from(place).unwrap_or(u16::MAX));
        phases.push(Phase { name, start, executor });
    }
    let thresholds = file.threshold.iter().map(|t| threshold(t, &classes)).collect::<Result<_, _>>()?;
    let flags = flags(&file, &classes)?;
    let repeat = file.repeat.map(repeat).transpose()?;
    Ok(Scenario { phased: Phased { phases, classes, class_of, thresholds }, flags, repeat })
}

fn duration(phase: &str, key: &str, amount: &Amount) -> Result<Dur, Wrong> {
    units::duration(&amount.text()).map_err(|e| wrong(format!("phase `{phase}`: {key}: {e}")))
}

fn executor(name: &str, table: &PhaseTable) -> Result<Executor, Wrong> {
    let missing = |key: &str| wrong(format!("phase `{name}`: {} needs `{key}`", table.executor));
    let rate = |key: &str, amount: &Amount| {
        units::rate(&amount.text()).map_err(|e| wrong(format!("phase `{name}`: {key}: {e}")))
    };
    let stages = |rates: bool| -> Result<Vec<Stage>, Wrong> {
        let stages = table.stages.as_ref().ok_or_else(|| missing("stages"))?;
        let one = |stage: &StageTable| {
            let target = match (rates, &stage.target) {
                (true, target) => rate("target", target)?,
                (false, Amount::Number(n)) => *n,
                (false, Amount::Text(text)) => {
                    return Err(wrong(format!("phase `{name}`: target: `{text}` is no number of clients")));
                }
            };
            Ok(Stage { duration: duration(name, "duration", &stage.duration)?, target })
        };
        stages.iter().map(one).collect()
    };
    let lasting =
        || table.duration.as_ref().ok_or_else(|| missing("duration")).and_then(|d| duration(name, "duration", d));
    let at_most = || table.max_duration.as_ref().map_or(Ok(MAX_DURATION), |d| duration(name, "max_duration", d));
    let arrivals = Arrivals {
        poisson: table.poisson.unwrap_or(false),
        max_clients: table.max_clients,
        when_full: table.when_full.unwrap_or_default(),
    };
    let (executor, keys): (Executor, &[&str]) = match table.executor.as_str() {
        "shared-iterations" => {
            let (clients, max_duration) = (table.clients.unwrap_or(1), at_most()?);
            let iterations = table.iterations.unwrap_or(clients);
            (
                Executor::SharedIterations { clients, iterations, max_duration },
                &["clients", "iterations", "max_duration"],
            )
        }
        "per-client-iterations" | "per-vu-iterations" => {
            let (clients, iterations) = (table.clients.unwrap_or(1), table.iterations.unwrap_or(1));
            let max_duration = at_most()?;
            (
                Executor::PerClientIterations { clients, iterations, max_duration },
                &["clients", "iterations", "max_duration"],
            )
        }
        "constant-clients" | "constant-vus" => {
            let clients = table.clients.unwrap_or(1);
            (Executor::ConstantClients { clients, duration: lasting()? }, &["clients", "duration"])
        }
        "ramping-clients" | "ramping-vus" => {
            let start = table.start_clients.unwrap_or(1);
            (Executor::RampingClients { start, stages: stages(false)? }, &["start_clients", "stages"])
        }
        "constant-arrival-rate" => {
            let rate = rate("rate", table.rate.as_ref().ok_or_else(|| missing("rate"))?)?;
            let executor = Executor::ConstantArrivalRate { rate, duration: lasting()?, arrivals };
            (executor, &["rate", "duration", "poisson", "max_clients", "when_full"])
        }
        "ramping-arrival-rate" => {
            let start = table.start_rate.as_ref().map_or(Ok(0.0), |r| rate("start_rate", r))?;
            let executor = Executor::RampingArrivalRate { start, stages: stages(true)?, arrivals };
            (executor, &["start_rate", "stages", "poisson", "max_clients", "when_full"])
        }
        other => {
            let hint = "one of shared-iterations, per-client-iterations, constant-clients, ramping-clients, constant-arrival-rate, ramping-arrival-rate";
            return Err((format!("phase `{name}`: executor: `{other}` is none"), hint.into()));
        }
    };
    let given = [
        ("clients", table.clients.is_some()),
        ("start_clients", table.start_clients.is_some()),
        ("iterations", table.iterations.is_some()),
        ("duration", table.duration.is_some()),
        ("max_duration", table.max_duration.is_some()),
        ("rate", table.rate.is_some()),
        ("start_rate", table.start_rate.is_some()),
        ("stages", table.stages.is_some()),
        ("poisson", table.poisson.is_some()),
        ("max_clients", table.max_clients.is_some()),
        ("when_full", table.when_full.is_some()),
    ];
    match given.iter().find(|(key, there)| *there && !keys.contains(key)) {
        Some((key, _)) => {
            let why = format!("phase `{name}`: {} has no `{key}`", table.executor);
            Err((why, format!("it has {}", keys.join(", "))))
        }
        None => Ok(executor),
    }
}

fn threshold(table: &ThresholdTable, classes: &[String]) -> Result<Threshold, Wrong> {
    let fail = |why: String| wrong(format!("threshold on `{}`: {why}", table.metric));
    let percentile = table.percentile.unwrap_or(95.0);
    if !(0.0..=100.0).contains(&percentile) {
        return Err(fail(format!("percentile {percentile} does not lie between 0 and 100")));
    }
    let metric = match table.metric.as_str() {
        "failed" => Metric::Failed,
        "ttft" => Metric::Ttft(percentile),
        "tpot" => Metric::Tpot(percentile),
        "e2el" => Metric::E2el(percentile),
        _ => return Err((fail("there is no such metric".into()).0, "one of failed, ttft, tpot, e2el".into())),
    };
    let below = match (metric, &table.below) {
        (Metric::Failed, Amount::Number(share)) if (0.0..=1.0).contains(share) => *share,
        (Metric::Failed, other) => return Err(fail(format!("below: `{}` is no share of requests", other.text()))),
        // As everywhere in objectives, a bare number counts in milliseconds.
        (_, Amount::Number(ms)) => ms / 1e3,
        (_, Amount::Text(text)) => units::duration(text).map_err(|e| fail(format!("below: {e}")))?.secs(),
    };
    let class = match &table.class {
        None => None,
        Some(class) => {
            let place = classes.iter().position(|c| c == class);
            let known = || format!("the classes are {}", classes.join(", "));
            Some(place.ok_or_else(|| (fail(format!("no class `{class}`")).0, known()))? as u16)
        }
    };
    let delay = table
        .delay
        .as_ref()
        .map_or(Ok(Dur::ZERO), |d| units::duration(&d.text()))
        .map_err(|e| fail(format!("delay: {e}")))?;
    Ok(Threshold { metric, class, below, abort: table.abort, delay })
}

fn repeat(table: RepeatTable) -> Result<Repeat, Wrong> {
    let fail = |why: &str| Err(wrong(format!("repeat: {why}")));
    let (min, max) = (table.min.unwrap_or(3), table.max.unwrap_or(10));
    if !(table.within > 0.0 && table.within < 1.0) {
        return fail("within: a share of the mean lies between 0 and 1");
    }
    if min < 2 || max < min {
        return fail("min and max: at least two runs, and no fewer at most than at least");
    }
    Ok(Repeat { until: table.until, within: table.within, min, max })
}

/// The file's settings as flags of `bench serve`.
fn flags(file: &File, classes: &[String]) -> Result<Vec<String>, Wrong> {
    let mut flags = Vec::new();
    for (key, value) in &file.serve {
        let flag = format!("--{}", key.replace('_', "-"));
        if flag == "--scenario" {
            return Err(wrong("serve: a scenario names no scenario"));
        }
        match value {
            toml::Value::Boolean(true) => flags.push(flag),
            toml::Value::Boolean(false) => {}
            toml::Value::Array(items) => {
                flags.push(flag);
                flags.extend(items.iter().map(plain));
            }
            other => flags.push(format!("{flag}={}", plain(other))),
        }
    }
    let limits = |all: &BTreeMap<String, Amount>| -> Vec<String> {
        all.iter()
            .filter(|(key, _)| *key != "attainment")
            .map(|(key, limit)| format!("{key}:{}", limit.text()))
            .collect()
    };
    if let Some(share) = file.objectives.get("attainment") {
        flags.push(format!("--attainment={}", share.text()));
    }
    let all = limits(&file.objectives);
    if !all.is_empty() {
        flags.push("--goodput".into());
        flags.extend(all);
    }
    for (class, own) in &file.class {
        if !classes.contains(class) {
            return Err((
                format!("class `{class}`: no phase sends it"),
                format!("the classes are {}", classes.join(", ")),
            ));
        }
        flags.push(format!("--class-goodput={class}={}", limits(own).join(",")));
    }
    Ok(flags)
}

fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(n) => n.to_string(),
        toml::Value::Float(n) => n.to_string(),
        toml::Value::Boolean(on) => on.to_string(),
        toml::Value::Datetime(at) => at.to_string(),
        // No flag takes either; what it says of this names the flag.
        toml::Value::Array(_) | toml::Value::Table(_) => "(several values)".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        objectives = { ttft = "500ms", tpot = 50, attainment = 0.95 }
        [serve]
        base_url = "http://127.0.0.1:8000"
        random-input-len = 100
        ignore_eos = true
        metadata = ["a=1", "b=2"]
        [[phase]]
        name = "up"
        executor = "ramping-arrival-rate"
        stages = [{ duration = "1min", target = "120/min" }]
        class = "chat"
        [[phase]]
        executor = "constant-vus"
        clients = 3
        duration = 20
        [[phase]]
        name = "beside"
        executor = "shared-iterations"
        start = "10s"
        iterations = 7
        class = "chat"
        [class.chat]
        ttft = "1s"
        [[threshold]]
        metric = "ttft"
        below = "2s"
        class = "chat"
        abort = true
        delay = "5s"
        [[threshold]]
        metric = "failed"
        below = 0.05
        [repeat]
        until = "median_ttft_ms"
        within = 0.05
    "#;

    #[test]
    fn a_file_says_what_it_means() {
        let Ok(scenario) = parse(WHOLE) else { panic!("{:?}", parse(WHOLE).err()) };
        let [up, steady, beside] = &scenario.phased.phases[..] else { panic!("three phases") };
        let s = Dur::from_secs;
        assert_eq!((up.start, steady.start, beside.start), (s(0), s(60), s(10)));
        assert_eq!(steady.executor, Executor::ConstantClients { clients: 3, duration: s(20) });
        assert_eq!(beside.executor, Executor::SharedIterations { clients: 1, iterations: 7, max_duration: s(600) });
        let Executor::RampingArrivalRate { start, stages, .. } = &up.executor else { panic!("{up:?}") };
        assert_eq!((*start, stages[0].target, stages[0].duration), (0.0, 2.0, s(60)));
        assert_eq!(scenario.phased.classes, ["chat", "phase 2"]);
        assert_eq!(scenario.phased.class_of, [0, 1, 0]);
        assert_eq!(
            scenario.flags,
            [
                "--base-url=http://127.0.0.1:8000",
                "--ignore-eos",
                "--metadata",
                "a=1",
                "b=2",
                "--random-input-len=100",
                "--attainment=0.95",
                "--goodput",
                "tpot:50",
                "ttft:500ms",
                "--class-goodput=chat=ttft:1s"
            ]
        );
        let [ttft, failed] = &scenario.phased.thresholds[..] else { panic!("two thresholds") };
        assert_eq!(
            (ttft.metric, ttft.class, ttft.below, ttft.abort, ttft.delay),
            (Metric::Ttft(95.0), Some(0), 2.0, true, s(5))
        );
        assert_eq!((failed.metric, failed.class, failed.below, failed.abort), (Metric::Failed, None, 0.05, false));
        assert_eq!(scenario.repeat, Some(Repeat { until: "median_ttft_ms".into(), within: 0.05, min: 3, max: 10 }));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("[[phase]]\nexecutor = \"constant-vus\"", "phase `phase 1`: constant-vus needs `duration`"),
            ("[[phase]]\nexecutor = \"sideways\"", "executor: `sideways` is none"),
            ("[[phase]]\nexecutor = \"constant-vus\"\nduration = 1\nrate = 3", "constant-vus has no `rate`"),
            ("[[phase]]\nexecutor = \"constant-vus\"\nduration = \"1 parsec\"", "duration: unknown unit"),
            ("[[phase]]\nexecutor = \"constant-vus\"\nlength = 1", "unknown field `length`"),
            ("[class.x]\nttft = 1", "class `x`: no phase sends it"),
            ("[[threshold]]\nmetric = \"speed\"\nbelow = 1", "threshold on `speed`: there is no such metric"),
            ("[[threshold]]\nmetric = \"failed\"\nbelow = \"2s\"", "below: `2s` is no share"),
            ("[[threshold]]\nmetric = \"ttft\"\nbelow = 1\nclass = \"x\"", "no class `x`"),
            ("[repeat]\nuntil = \"x\"\nwithin = 2", "repeat: within"),
            ("[serve]\nscenario = \"x\"", "a scenario names no scenario"),
            ("phase = 3", "line 1: invalid type"),
        ] {
            let Err((why, _)) = parse(text) else { panic!("{text} is accepted") };
            assert!(why.contains(says), "{why}");
        }
    }
}
