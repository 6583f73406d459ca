//! `tailbound sim`: scenario file → a fleet in virtual time → rows → the report of a measured run.

use crate::bench::serve::args::Format;
use crate::bench::serve::judge::ended;
use crate::bench::serve::plan::objective;
use crate::failure::{Failure, Outcome, exit};
use crate::output;
use clap::Args;
use std::path::{Path, PathBuf};
use tailbound_clock::Time;
use tailbound_os::clock::{self, WallAnchor};
use tailbound_os::date::LocalDate;
use tailbound_record::Moment;
use tailbound_report::{Description, Extras, Run, Selection, json, text};
use tailbound_sim::{Engines, Outcome as Simulated, Scenario};
use tailbound_stats::{Bounds, ClientHealth, Objectives, RunFacts, judge, summarize};

/// `tailbound sim`.
#[derive(Args, Debug)]
pub struct SimArgs {
    /// The scenario: engines, policy, requests and their arrivals, as TOML
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Draw from this seed instead of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Objectives per request, in ms or with a unit: ttft:500 tpot:50 e2el:10s; 90 % of the requests must meet them
    #[arg(long, value_name = "METRIC:MS", num_args = 1..)]
    goodput: Vec<String>,
    /// Result on stdout as text, or as one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command; the exit code tells the verdict.
pub fn run(args: &SimArgs) -> Outcome<u8> {
    let all = args.goodput.iter().map(|text| objective(text)).collect::<Outcome<Vec<_>>>()?;
    let scenario = read(&args.scenario, args.seed)?;
    let wrong = |e| Failure::usage(format!("{}: {e}", args.scenario.display()));
    let simulated = tailbound_sim::run(&scenario).map_err(wrong)?;

    let rows = &simulated.rows;
    let objectives = Objectives { all, required_share: 0.9, ..Objectives::default() };
    let facts = RunFacts { self_timed: true, output_forced: true, objectives, ..span(&simulated) };
    let summary = summarize(rows, &facts);
    let verdict = judge(&summary, &facts, &ClientHealth::default(), &Bounds::default());
    let run = Run {
        description: &description(&scenario, rows.len()),
        facts: &facts,
        summary: &summary,
        verdict: &verdict,
        rows,
        selection: &Selection::default(),
        extras: &Extras::default(),
    };
    output::print(&match args.format {
        Format::Json => json::vllm_result(&run, json::Detail::Totals) + "\n",
        Format::Text => {
            let colour = if output::color() { text::Colour::On } else { text::Colour::Off };
            text::report(&run, colour) + &fleet(&scenario, &simulated)
        }
    })?;
    Ok(match (verdict.valid(), summary.goodput.as_ref().is_none_or(|g| g.met())) {
        (false, _) => exit::INVALID,
        (_, false) => exit::OBJECTIVE_MISSED,
        _ => 0,
    })
}

fn read(file: &Path, seed: Option<u64>) -> Outcome<Scenario> {
    let scenario = Scenario::open(file).map_err(|e| Failure::usage(format!("{}: {e}", file.display())))?;
    Ok(Scenario { seed: seed.unwrap_or(scenario.seed), ..scenario })
}

/// From the first arrival to the end of the last answer.
fn span(simulated: &Simulated) -> RunFacts {
    let start = simulated.rows.iter().filter_map(|row| row.at.get(Moment::Scheduled)).min().unwrap_or(Time::ZERO);
    let end = simulated.rows.iter().filter_map(ended).max().unwrap_or(start);
    RunFacts::new(start, end)
}

fn description(scenario: &Scenario, requests: usize) -> Description {
    let wall = WallAnchor::take().unix_ns(clock::now());
    Description {
        date: LocalDate::of_unix_ns(wall).compact(),
        backend: "sim".to_owned(),
        model_id: fleet_name(scenario),
        num_prompts: requests,
        ..Description::default()
    }
}

/// The replicas, group by group.
fn fleet_name(scenario: &Scenario) -> String {
    let group = |e: &Engines| format!("{} × {}", e.count, e.profile.as_deref().unwrap_or("engine"));
    scenario.engines.iter().map(group).collect::<Vec<_>>().join(" + ")
}

/// What only a simulation knows.
fn fleet(scenario: &Scenario, simulated: &Simulated) -> String {
    let f = &simulated.figures;
    format!(
        "fleet: {}; {} steps; {:.1} % of prompt tokens from prefix caches; {:.1} requests waiting in each engine on average\n",
        fleet_name(scenario),
        f.steps,
        100.0 * f.hit_ratio,
        f.mean_waiting,
    )
}
