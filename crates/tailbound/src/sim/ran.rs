//! A simulation as a run that can be reported, compared and drawn.

use super::folder::Kept;
use crate::bench::serve::exit_code;
use crate::bench::serve::judge::ended;
use crate::bench::serve::live::Ran;
use crate::bench::serve::plan::objective;
use crate::failure::Outcome;
use crate::output;
use std::path::Path;
use tailbound_clock::Time;
use tailbound_os::date::LocalDate;
use tailbound_record::Moment;
use tailbound_report::page::Page;
use tailbound_report::{About, Description, Extras, Grouping, Run, Selection, json, run_page, text};
use tailbound_sim::Figures;
use tailbound_stats::{Bounds, ClientHealth, Objectives, RunFacts, Summary, Verdict, by_group, judge, summarize};

/// Whether `--goodput` can be read.
pub fn check(goodput: &[String]) -> Outcome<()> {
    goodput.iter().try_for_each(|text| objective(text).map(drop))
}

/// A simulation's rows as a live run's.
pub fn ran(kept: &Kept) -> Outcome<Ran> {
    let read = |list: &[String]| list.iter().map(|text| objective(text)).collect::<Outcome<Vec<_>>>();
    let all = read(&kept.about.goodput)?;
    // What the command asks for goes before what the scenario does.
    let by_class = match all.is_empty() {
        true => {
            (0..).zip(&kept.about.by_class).map(|(class, list)| Ok((class, read(list)?))).collect::<Outcome<_>>()?
        }
        false => Vec::new(),
    };
    let rows = &kept.rows;
    let start = rows.iter().filter_map(|row| row.at.get(Moment::Scheduled)).min().unwrap_or(Time::ZERO);
    let end = rows.iter().filter_map(ended).max().unwrap_or(start);
    let facts = RunFacts {
        self_timed: true,
        output_forced: true,
        objectives: Objectives { all, by_class, required_share: 0.9 },
        interrupted: kept.figures.is_none(),
        ..RunFacts::new(start, end)
    };
    let description = Description {
        date: LocalDate::of_unix_ns(kept.about.made_unix_ns).compact(),
        backend: "sim".to_owned(),
        model_id: kept.about.fleet.clone(),
        num_prompts: rows.len(),
        ..Description::default()
    };
    let extras = Extras { groups: classes(kept, &facts), ..Extras::default() };
    Ok(Ran {
        facts,
        rows: rows.clone(),
        health: ClientHealth::default(),
        description,
        extras,
        notes: kept.figures.iter().map(|f| fleet(&kept.about.fleet, f)).collect(),
        terminated: false,
        plan: String::new(),
    })
}

/// The figures of each class, where there are several.
fn classes(kept: &Kept, facts: &RunFacts) -> Vec<Grouping> {
    let names = kept.figures.as_ref().map_or(&[][..], |f| &f.classes);
    if names.len() < 2 {
        return Vec::new();
    }
    let figures = by_group(&kept.rows, facts, names.len(), |row| Some(row.class as usize));
    vec![Grouping { by: "class", groups: names.iter().cloned().zip(figures).collect() }]
}

/// What only a simulation knows.
fn fleet(name: &str, f: &Figures) -> String {
    let tiers = if f.tier_hit_ratio > 0.0 {
        format!(", {:.1} % from tiers below", 100.0 * f.tier_hit_ratio)
    } else {
        String::new()
    };
    let loads = match f.lora_loads {
        0 => String::new(),
        n => format!("; {n} adapters brought to a GPU"),
    };
    format!(
        "fleet: {name}; {} steps; {:.1} % of prompt tokens from prefix caches{tiers}{loads}; {:.1} requests waiting in each engine on average",
        f.steps,
        100.0 * f.hit_ratio,
        f.mean_waiting,
    )
}

/// A simulation with its figures and its verdict.
pub struct Told {
    ran: Ran,
    pub(super) summary: Summary,
    verdict: Verdict,
    pub(super) figures: Option<Figures>,
}

impl Told {
    /// Sums up and judges.
    pub fn new(kept: &Kept) -> Outcome<Told> {
        let ran = ran(kept)?;
        let summary = summarize(&ran.rows, &ran.facts);
        let verdict = judge(&summary, &ran.facts, &ran.health, &Bounds::default());
        Ok(Told { ran, summary, verdict, figures: kept.figures.clone() })
    }

    /// Hands the run to what reports it.
    pub fn with<R>(&self, report: impl FnOnce(&Run<'_>) -> R) -> R {
        report(&Run {
            description: &self.ran.description,
            facts: &self.ran.facts,
            summary: &self.summary,
            verdict: &self.verdict,
            rows: &self.ran.rows,
            selection: &Selection::default(),
            extras: &self.ran.extras,
        })
    }

    /// The report for programs.
    pub fn json(&self) -> String {
        self.with(|run| json::vllm_result(run, json::Detail::Totals)) + "\n"
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let colour = if output::color() { text::Colour::On } else { text::Colour::Off };
        let notes: String = self.ran.notes.iter().map(|note| format!("{note}\n")).collect();
        self.with(|run| text::report(run, colour)) + &notes
    }

    /// The page; `from` is the scenario's file or the folder.
    pub fn page(&self, from: &Path) -> Page {
        let about = About {
            command: &format!("tailbound sim {}", from.display()),
            target: "simulated replicas",
            plan: "",
            seed: None,
            health: &self.ran.health,
            notes: &self.ran.notes,
        };
        self.with(|run| run_page(run, &about))
    }

    /// By the verdict and the objectives.
    pub fn exit_code(&self) -> u8 {
        let met = self.summary.goodput.as_ref().is_none_or(|g| g.met());
        exit_code(self.ran.interrupted(), false, self.verdict.valid(), met)
    }
}
