//! `sweep plot_pareto`: how fast a user gets tokens against how many an accelerator makes.

use super::judged::{apart, strip};
use super::plot::{make, with};
use super::plot_args::{ParetoArgs, PerUser};
use super::results::{RunData, figure, invalid};
use super::select::{Summary, summaries, unknown};
use super::table::short;
use crate::bundle;
use crate::failure::{Failure, Outcome};
use crate::output;
use std::fmt::Write as _;
use tailbound_clock::Seed;
use tailbound_report::page::{Axis, Block, Column, Mark, Page, Plot, Point, Section, Series, Table};
use tailbound_stats::pareto::{Frontier, Placed, Setting, frontier};
use tailbound_sweep::python;

/// Frontiers drawn to see how sure the one is.
const DRAWS: usize = 2000;
const SEED: Seed = Seed(0);

/// A combination with what its runs came to.
struct Placement {
    name: String,
    label: String,
    /// (tokens/s for each user, tokens/s for each accelerator) of each valid run.
    valid: Vec<(f64, f64)>,
    /// The same of those that don't count.
    invalid: Vec<(f64, f64)>,
}

/// Runs the command.
pub fn run(args: &ParetoArgs) -> Outcome<u8> {
    let combinations = summaries(&args.experiment_dir)?;
    let placements = combinations.iter().map(|c| placement(args, c)).collect::<Outcome<Vec<_>>>()?;
    let settings: Vec<Setting> = placements
        .iter()
        .map(|p| Setting { runs: p.valid.clone(), valid: !p.valid.is_empty() && p.invalid.is_empty() })
        .collect();
    let found = frontier(&settings, 0.05, DRAWS, SEED);
    let runs: Vec<(&str, &RunData)> =
        combinations.iter().flat_map(|c| c.runs.iter().map(|run| (c.name.as_str(), run))).collect();
    let folder = args.experiment_dir.join("pareto");
    let path = folder.join("PARETO");
    let plot = plot(args, &placements, &found);
    if !args.dry_run {
        make(&folder)?;
        bundle::write(&with(&path, "svg"), plot.svg().as_bytes())?;
        let page = Page { verdict: Some(strip(&runs)), ..page(args, &placements, &found, plot) };
        bundle::write(&with(&path, "html"), page.html().as_bytes())?;
    }
    output::print(&text(args, &placements, &found))?;
    apart(&runs).iter().for_each(|words| output::note(words));
    eprintln!("{} {}", if args.dry_run { "it would be drawn to" } else { "drawn to" }, with(&path, "svg").display());
    Ok(0)
}

fn placement(args: &ParetoArgs, summary: &Summary) -> Outcome<Placement> {
    let mut placed =
        Placement { name: summary.name.clone(), label: String::new(), valid: Vec::new(), invalid: Vec::new() };
    for run in &summary.runs {
        let Some(output) = figure(run, "output_throughput") else { return Err(unknown("output_throughput", run)) };
        let accelerators = accelerators(args, run)?;
        let user = match args.per_user {
            PerUser::Request => own_speed(run).ok_or_else(|| {
                Failure::usage(format!("{}: its runs don't tell each request's own speed", summary.name))
                    .hint("they are of another benchmark than `tailbound bench serve`: --per-user quotient")
            })?,
            PerUser::Quotient => output / users(args, run)?,
        };
        let point = (user, output / accelerators);
        if invalid(run).is_some() {
            placed.invalid.push(point)
        } else {
            placed.valid.push(point)
        }
        let part = |key: &String| match key.as_str() {
            "gpu_count" => Some(format!("gpu_count={}", python::float(accelerators).trim_end_matches(".0"))),
            key => Some(format!("{key}={}", python::text(any(run, key).filter(|v| !v.is_null())?))),
        };
        placed.label = args.label_by.iter().filter_map(part).collect::<Vec<_>>().join(" ");
    }
    Ok(placed)
}

/// The median over requests of 1/TPOT, tokens/s.
fn own_speed(run: &RunData) -> Option<f64> {
    run.get("tailbound")?.get("interactivity_tokens_per_s")?.get("percentiles")?.get("p50")?.as_f64()
}

/// vLLM's count: the named variable, else the rate (which is none of users, but is what vLLM takes), else the most seen in flight.
fn users(args: &ParetoArgs, run: &RunData) -> Outcome<f64> {
    let keys = [args.user_count_var.as_str(), "request_rate", "max_concurrent_requests"];
    let count = keys.iter().find_map(|key| any(run, key).and_then(number).filter(|n| *n != 0.0));
    count.ok_or_else(|| unknown(&args.user_count_var, run))
}

fn accelerators(args: &ParetoArgs, run: &RunData) -> Outcome<f64> {
    if let Some(n) = args.accelerators {
        return if n > 0.0 { Ok(n) } else { Err(Failure::usage(format!("--accelerators {n}: more than none"))) };
    }
    if let Some(key) = &args.gpu_count_var {
        return any(run, key).and_then(number).filter(|n| *n > 0.0).ok_or_else(|| unknown(key, run));
    }
    let of = |keys: &[&str]| keys.iter().find_map(|key| any(run, key).and_then(number).filter(|n| *n > 0.0));
    let product = || {
        let sizes = [["tensor_parallel_size", "tp"], ["pipeline_parallel_size", "pp"], ["data_parallel_size", "dp"]];
        sizes.iter().filter_map(|keys| of(keys)).product()
    };
    Ok(of(&["num_gpus", "gpu_count"]).unwrap_or_else(product))
}

/// A variable, however its name is spelled.
fn any<'a>(run: &'a RunData, key: &str) -> Option<&'a serde_json::Value> {
    [key.to_owned(), key.replace('_', "-"), key.replace('-', "_")].iter().find_map(|key| run.get(key))
}

fn number(value: &serde_json::Value) -> Option<f64> {
    match value {
        serde_json::Value::String(text) => text.parse().ok(),
        value => value.as_f64(),
    }
}

/// What a million output tokens cost at so many a second from each accelerator.
fn cost(args: &ParetoArgs, per_accelerator: f64) -> Option<f64> {
    let price = args.cost_per_accelerator_hour?;
    (per_accelerator > 0.0).then(|| price / 3600.0 / per_accelerator * 1e6)
}

fn plot(args: &ParetoArgs, placements: &[Placement], found: &Frontier) -> Plot {
    let finite = |e: &tailbound_stats::compare::Estimate| {
        (e.low.is_finite() && e.high.is_finite()).then_some((e.low.max(0.0), e.high))
    };
    let point = |(placement, placed): (&Placement, &Placed)| -> Option<Point> {
        let (x, y) = (placed.x.as_ref()?, placed.y.as_ref()?);
        let label = if placed.on_frontier { placement.label.clone() } else { String::new() };
        Some(Point {
            x: x.value,
            y: y.value,
            x_range: finite(x),
            y_range: finite(y),
            hollow: !placement.invalid.is_empty(),
            label,
        })
    };
    let mut dots: Vec<Point> = placements.iter().zip(&found.settings).filter_map(point).collect();
    let hollow = placements.iter().flat_map(|p| &p.invalid);
    dots.extend(hollow.map(|&(x, y)| Point { x, y, hollow: true, label: "INVALID".into(), ..Point::default() }));
    dots.sort_by(|a, b| a.x.total_cmp(&b.x));
    let steps: Vec<(f64, f64)> = found.steps.iter().map(|s| (s.x, s.y.value)).collect();
    let mut series = vec![Series::new("Pareto frontier", Mark::Frontier, steps).coloured(0)];
    series.push(Series::new("combinations, 95 % intervals over runs", Mark::Dots, dots).coloured(1));
    Plot {
        title: "Speed for each user against speed for each accelerator".into(),
        finding: lead(args, placements, found),
        x: Axis::linear(match args.per_user {
            PerUser::Request => "tokens/s for each user (median of the requests' own)",
            PerUser::Quotient => "tokens/s for each user (throughput ÷ users)",
        }),
        y: Axis::linear("output tokens/s for each accelerator"),
        series,
    }
}

fn lead(args: &ParetoArgs, placements: &[Placement], found: &Frontier) -> String {
    let on = found.settings.iter().filter(|s| s.on_frontier).count();
    let out = placements.iter().filter(|p| !p.invalid.is_empty()).count();
    let mut lead = format!("{on} of {} combinations are beaten by none at both.", placements.len());
    if out > 0 {
        let _ = write!(lead, " {out} with INVALID runs do not count.");
    }
    let best =
        found.settings.iter().filter(|s| s.on_frontier).filter_map(|s| Some(s.y.as_ref()?.value)).fold(0.0, f64::max);
    if let Some(cost) = cost(args, best) {
        let _ = write!(lead, " A million output tokens cost {} at the least.", short(cost));
    }
    lead
}

/// The table's head, and a row for each combination: whether it counts, and its cells.
fn rows(args: &ParetoArgs, placements: &[Placement], found: &Frontier) -> (Vec<String>, Vec<(bool, Vec<String>)>) {
    let mut head: Vec<String> =
        ["combination", "runs", "tokens/s/user", "tokens/s/accelerator"].map(str::to_owned).into();
    if args.cost_per_accelerator_hour.is_some() {
        head.push("cost of 1M".into());
    }
    head.push("frontier".into());
    let interval = |e: &Option<tailbound_stats::compare::Estimate>| match e {
        None => "-".into(),
        Some(e) if e.low.is_finite() => format!("{} [{}, {}]", short(e.value), short(e.low), short(e.high)),
        Some(e) => short(e.value),
    };
    let row = |(p, s): (&Placement, &Placed)| {
        let mut cells =
            vec![p.name.clone(), (p.valid.len() + p.invalid.len()).to_string(), interval(&s.x), interval(&s.y)];
        if args.cost_per_accelerator_hour.is_some() {
            let cost = s.y.as_ref().and_then(|y| cost(args, y.value));
            cells.push(cost.map_or("-".into(), short));
        }
        cells.push(match (p.invalid.len(), s.on_frontier, s.confidence) {
            (0, true, Some(sure)) => format!("yes ({:.0} %)", sure * 100.0),
            (0, true, None) => "yes (one run)".into(),
            (0, false, Some(sure)) => format!("no ({:.0} %)", sure * 100.0),
            (0, false, None) => "no".into(),
            (bad, ..) => format!("{bad} INVALID"),
        });
        (p.invalid.is_empty(), cells)
    };
    (head, placements.iter().zip(&found.settings).map(row).collect())
}

fn text(args: &ParetoArgs, placements: &[Placement], found: &Frontier) -> String {
    let (head, rows) = rows(args, placements, found);
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(rows.iter().map(|(_, cells)| cells)).collect();
    let widths: Vec<usize> =
        (0..head.len()).map(|i| lines.iter().map(|l| l[i].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(i, (cell, width))| match i {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        out += cells.collect::<Vec<_>>().join("  ").trim_end();
        out.push('\n');
    }
    out += "Intervals are 95 % over the runs; beside the frontier stands how often frontiers that runs like these might give have the point.\n";
    out
}

fn page(args: &ParetoArgs, placements: &[Placement], found: &Frontier, plot: Plot) -> Page {
    let (head, rows) = rows(args, placements, found);
    let table = Table {
        caption: "Combinations, with 95 % intervals over the runs".into(),
        columns: head
            .into_iter()
            .enumerate()
            .map(|(i, c)| if i == 0 { Column::Text(c) } else { Column::Figure(c) })
            .collect(),
        invalid: rows.iter().enumerate().filter(|(_, row)| !row.0).map(|(i, _)| i).collect(),
        rows: rows.into_iter().map(|(_, cells)| cells).collect(),
    };
    let title = args.experiment_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Page {
        title,
        kind: "sweep, Pareto frontier".into(),
        lead: lead(args, placements, found),
        sections: vec![Section {
            id: "frontier".into(),
            heading: "Frontier".into(),
            blocks: vec![Block::Plot(plot), Block::Table(table)],
        }],
        footer: format!("tailbound bench sweep plot_pareto · tailbound {}", env!("CARGO_PKG_VERSION")),
        ..Page::default()
    }
}
