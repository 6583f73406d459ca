//! `sweep plot`: one variable of a sweep's runs against another.

use super::judged::strip;
use super::plot_args::{PlotArgs, ScaleName};
use super::results::{RunData, figure, invalid};
use super::select::{Bins, Filters, group, grouped, summaries, unknown};
use crate::bundle;
use crate::failure::{Failure, Outcome};
use crate::output;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tailbound_report::page::{Axis, Block, Column, Mark, Page, Plot, Point, Section, Series, Table, brief};
use tailbound_sweep::layout;

/// A run, and which combination it is of.
struct Run {
    combination: usize,
    /// The combination's folder.
    name: Rc<str>,
    data: RunData,
}

/// Runs the command.
pub fn run(args: &PlotArgs) -> Outcome<u8> {
    let (filters, bins) = (Filters::parse(&args.filter_by)?, Bins::parse(&args.bin_by)?);
    let mut runs = Vec::new();
    for (combination, summary) in summaries(&args.experiment_dir)?.into_iter().enumerate() {
        let name: Rc<str> = summary.name.into();
        runs.extend(summary.runs.into_iter().map(|data| Run { combination, name: name.clone(), data }));
    }
    if let Some(first) = runs.first() {
        let all = [&args.fig_by, &args.row_by, &args.col_by, &args.curve_by].into_iter().flatten();
        for key in all.chain([&args.var_x, &args.var_y]) {
            if !runs.iter().any(|r| r.data.contains_key(key)) {
                return Err(unknown(key, &first.data));
            }
        }
    }
    runs.retain(|run| filters.pass(&run.data));
    if runs.is_empty() {
        return Err(Failure::usage(format!("--filter-by {}: no run passes", args.filter_by)));
    }
    runs.iter_mut().for_each(|run| bins.apply(&mut run.data));
    let folder = args.experiment_dir.join(args.fig_dir.as_deref().unwrap_or(Path::new("")));
    for (key, runs) in grouped(runs, |run| group(&run.data, &args.fig_by))? {
        draw(args, &bins, &folder, &key, runs)?;
    }
    Ok(0)
}

/// One figure: a page with all its plots, and each plot as an SVG file.
fn draw(args: &PlotArgs, bins: &Bins, folder: &Path, key: &[String], runs: Vec<Run>) -> Outcome<()> {
    let name = |more: &[String]| {
        let parts: Vec<&str> =
            [args.fig_name.as_str()].into_iter().chain(key.iter().chain(more).map(String::as_str)).collect();
        folder.join(layout::sanitized(&parts.join("-")))
    };
    let all: Vec<(&str, &RunData)> = runs.iter().map(|run| (&*run.name, &run.data)).collect();
    let verdict = strip(&all);
    let facets = grouped(runs, |run| Ok([group(&run.data, &args.row_by)?, group(&run.data, &args.col_by)?].concat()))?;
    let page_path = with(&name(&[]), "html");
    let mut said = format!("{}: {} plots\n", page_path.display(), facets.len());
    let mut blocks = Vec::new();
    for (facet, runs) in facets {
        let plot = plot(args, bins, &facet, &runs)?;
        let path = with(&name(&facet), "svg");
        said +=
            &format!("  {}: {} points\n", path.display(), plot.series.iter().map(|s| s.points.len()).sum::<usize>());
        if !args.dry_run {
            make(folder)?;
            bundle::write(&path, plot.svg().as_bytes())?;
        }
        blocks.push(Block::Plot(plot));
        blocks.push(Block::Table(table(args, &facet, &runs)));
    }
    if !args.dry_run {
        let title = args.experiment_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let page = Page {
            title: [&[title], key].concat().join(", "),
            kind: "sweep".into(),
            lead: format!("{} against {}; a point is the mean over the runs of a combination.", args.var_y, args.var_x),
            verdict: Some(verdict),
            sections: vec![Section { id: "curves".into(), heading: "Curves".into(), blocks }],
            footer: format!("tailbound bench sweep plot · tailbound {}", env!("CARGO_PKG_VERSION")),
            ..Page::default()
        };
        bundle::write(&page_path, page.html().as_bytes())?;
    }
    output::print(&said)
}

fn plot(args: &PlotArgs, bins: &Bins, facet: &[String], runs: &[Run]) -> Outcome<Plot> {
    let mut series = Vec::new();
    let curves = grouped(runs.iter().collect(), |run: &&Run| group(&run.data, &args.curve_by))?;
    let mut curves = curves;
    curves.sort_by(|a, b| a.0.cmp(&b.0));
    for (colour, (curve, runs)) in curves.into_iter().enumerate() {
        let name = if curve.is_empty() { args.var_y.clone() } else { curve.join(", ") };
        let (bad, good): (Vec<&Run>, Vec<&Run>) = runs.into_iter().partition(|run| invalid(&run.data).is_some());
        let mut means = points(args, bins, &good);
        means.sort_by(|a, b| a.x.total_cmp(&b.x));
        let line: Vec<(f64, f64)> = means.iter().map(|p| (p.x, p.y)).collect();
        let hollow = bad.iter().filter_map(|run| {
            let (x, y) = (figure(&run.data, &args.var_x)?, figure(&run.data, &args.var_y)?);
            Some(Point { x, y, hollow: true, label: "INVALID".into(), ..Point::default() })
        });
        means.extend(hollow);
        means.sort_by(|a, b| a.x.total_cmp(&b.x));
        if line.len() > 1 {
            series.push(Series::new(name.clone(), Mark::Line, line).coloured(colour));
        }
        series.push(Series::new(format!("{name}: runs"), Mark::Dots, means).coloured(colour));
    }
    let axis = |key: &str, scale: ScaleName| match scale {
        ScaleName::Linear => Axis::linear(key),
        ScaleName::Log => Axis::log(key),
    };
    let bars = if args.no_error_bars { "" } else { "; bars are one standard deviation" };
    Ok(Plot {
        title: format!(
            "{} against {}{}",
            args.var_y,
            args.var_x,
            if facet.is_empty() { String::new() } else { format!(", {}", facet.join(", ")) }
        ),
        finding: format!("Points are means over the runs of a combination{bars}."),
        x: axis(&args.var_x, args.scale_x),
        y: axis(&args.var_y, args.scale_y),
        series,
    })
}

/// Means of runs that belong together: those with the same x where x is a setting or is binned, else those of one combination, whose x
/// is measured and so differs from run to run.
fn points(args: &PlotArgs, bins: &Bins, runs: &[&Run]) -> Vec<Point> {
    let x = |run: &Run| figure(&run.data, &args.var_x).filter(|x| x.is_finite());
    let set = bins.has(&args.var_x)
        || runs.iter().all(|a| runs.iter().all(|b| a.combination != b.combination || x(a) == x(b)));
    let mut groups: Vec<(u64, Vec<(f64, f64)>)> = Vec::new();
    for run in runs {
        let (Some(x), Some(y)) = (x(run), figure(&run.data, &args.var_y)) else { continue };
        let key = if set { x.to_bits() } else { run.combination as u64 };
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, values)) => values.push((x, y)),
            None => groups.push((key, vec![(x, y)])),
        }
    }
    let of = |values: &[(f64, f64)]| {
        let (x, sx) = mean_sd(values.iter().map(|v| v.0));
        let (y, sy) = mean_sd(values.iter().map(|v| v.1));
        let bar = |mean: f64, sd: Option<f64>| {
            sd.filter(|sd| *sd > 0.0 && !args.no_error_bars).map(|sd| (mean - sd, mean + sd))
        };
        Point { x, y, x_range: bar(x, sx), y_range: bar(y, sy), ..Point::default() }
    };
    groups.iter().map(|(_, values)| of(values)).collect()
}

/// Mean, and the standard deviation of more than one.
fn mean_sd(values: impl Iterator<Item = f64> + Clone) -> (f64, Option<f64>) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let squares: f64 = values.map(|v| (v - mean) * (v - mean)).sum();
    (mean, (n > 1.0).then(|| (squares / (n - 1.0)).sqrt()))
}

fn table(args: &PlotArgs, facet: &[String], runs: &[Run]) -> Table {
    let columns = ["run", &args.var_x, &args.var_y].map(|head| head.to_owned());
    let cell = |run: &Run, key: &str| figure(&run.data, key).map_or("–".into(), brief);
    let name = |run: &Run| format!("{} run {}", run.name, figure(&run.data, "run_number").unwrap_or(0.0));
    Table {
        caption: if facet.is_empty() { "Runs".into() } else { format!("Runs, {}", facet.join(", ")) },
        columns: columns
            .into_iter()
            .enumerate()
            .map(|(i, c)| if i == 0 { Column::Text(c) } else { Column::Figure(c) })
            .collect(),
        rows: runs.iter().map(|run| vec![name(run), cell(run, &args.var_x), cell(run, &args.var_y)]).collect(),
        invalid: runs.iter().enumerate().filter(|(_, run)| invalid(&run.data).is_some()).map(|(i, _)| i).collect(),
    }
}

/// A file's name may have dots in it, so that its extension is added and not replaced.
pub fn with(path: &Path, extension: &str) -> PathBuf {
    path.with_added_extension(extension)
}

pub fn make(folder: &Path) -> Outcome<()> {
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::new(format!("failed to make the folder {}: {e}", folder.display())))
}
