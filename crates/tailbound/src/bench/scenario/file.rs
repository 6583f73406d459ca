//! A scenario's file, parsed and dumb, and what it means.

mod flags;
mod phase;
mod threshold;

use crate::failure::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_clock::Dur;
use tailbound_workload::Phase;
pub use threshold::{Metric, Threshold};

/// The file as written.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Flags of `bench serve`.
    #[serde(default)]
    serve: toml::Table,
    #[serde(default)]
    phase: Vec<phase::PhaseTable>,
    /// Objectives of every request: metric = limit.
    #[serde(default)]
    objectives: BTreeMap<String, Amount>,
    /// Objectives of one class instead.
    #[serde(default)]
    class: BTreeMap<String, BTreeMap<String, Amount>>,
    #[serde(default)]
    threshold: Vec<threshold::ThresholdTable>,
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
            Some(start) => phase::duration(&name, "start", start)?,
            None => after,
        };
        let executor = phase::executor(&name, table)?;
        after = start + executor.duration();
        let class = table.class.clone().unwrap_or_else(|| name.clone());
        let place = classes.iter().position(|c| *c == class).unwrap_or_else(|| {
            classes.push(class);
            classes.len() - 1
        });
        class_of.push(u16::try_from(place).unwrap_or(u16::MAX));
        phases.push(Phase { name, start, executor });
    }
    let thresholds = file.threshold.iter().map(|t| threshold::threshold(t, &classes)).collect::<Result<_, _>>()?;
    let flags = flags::flags(&file, &classes)?;
    let repeat = file.repeat.map(repeat).transpose()?;
    Ok(Scenario { phased: Phased { phases, classes, class_of, thresholds }, flags, repeat })
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

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_workload::Executor;

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
