use super::span;
use std::collections::BTreeMap;
use tailbound_report::page::{Axis, Block, Mark, Plot, Scale, Series, Ticks, brief};
use tailbound_trace::describe::{Counts, Description, PrefixFigures};

/// Arrivals and burstiness over time.
pub fn arrivals(d: &Description) -> Vec<Block> {
    let Some(counts) = &d.plots.arrivals else { return Vec::new() };
    let mut blocks = vec![Block::Plot(over_time(counts))];
    if let Some((window, cvs)) = &d.plots.gap_cv {
        blocks.push(Block::Plot(burstiness(*window, cvs, counts.span_s)));
    }
    blocks
}

fn over_time(counts: &Counts) -> Plot {
    // The last bin is a partial one, so what would be its rate is left out, unless it is all there is.
    let whole = counts.counts.len().saturating_sub(1).max(1);
    let per_s = |n: u64| n as f64 / counts.bin_s;
    let mut points: Vec<(f64, f64)> =
        counts.counts[..whole].iter().enumerate().map(|(i, n)| (i as f64 * counts.bin_s, per_s(*n))).collect();
    if let Some(&(_, last)) = points.last() {
        points.push((whole as f64 * counts.bin_s, last));
    }
    let peak = points.iter().map(|p| p.1).fold(0.0, f64::max);
    let idle = counts.counts[..whole].iter().filter(|n| **n == 0).count();
    let bin = span(counts.bin_s);
    let idle = if idle > 0 { format!("; {idle} of {whole} bins are empty") } else { String::new() };
    Plot {
        title: "Arrivals over time".into(),
        finding: format!("In bins of {bin}; the busiest has {} requests/s{idle}.", brief(peak)),
        x: Axis::seconds("since the first arrival", (0.0, (whole as f64 * counts.bin_s).max(1.0))),
        y: Axis::linear("requests/s"),
        series: vec![Series::new("arrivals", Mark::Step, points)],
    }
}

fn burstiness(window: f64, cvs: &[(f64, f64)], span_s: f64) -> Plot {
    let points: Vec<(f64, f64)> = cvs.iter().map(|(t, cv)| (t + window / 2.0, *cv)).collect();
    let mut sorted: Vec<f64> = cvs.iter().map(|(_, cv)| *cv).collect();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
    let windows = if cvs.len() == 1 { "one window".into() } else { format!("{} windows", cvs.len()) };
    Plot {
        title: "Burstiness over time".into(),
        finding: format!(
            "CV of the gaps in {windows} of {} with ten arrivals or more: {} to {}, median {}.",
            span(window),
            brief(low),
            brief(high),
            brief(sorted[sorted.len() / 2])
        ),
        x: Axis::seconds("since the first arrival", (0.0, span_s.max(1.0))),
        y: Axis::linear("gap CV"),
        series: vec![Series::new("gap CV", Mark::Dots, points), Series::level("Poisson", 1.0)],
    }
}

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// By hour and by weekday, and the cycles found.
pub fn profile(d: &Description) -> Vec<Block> {
    let Some(profile) = &d.profile else { return Vec::new() };
    let bars = |points: Vec<(f64, f64)>| vec![Series::new("requests", Mark::Bars(0.85), points)];
    let zone = if profile.day_of_week_counts.is_some() { "UTC" } else { "of the file's own day" };
    let hours: Vec<(f64, f64)> = profile.hour_of_day_counts.iter().map(|(h, n)| (*h as f64, *n as f64)).collect();
    let busiest = |points: &[(f64, f64)]| points.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |p| p.0);
    let mut blocks = Vec::new();
    // One bar alone says nothing.
    if hours.len() > 1 {
        blocks.push(Block::Plot(Plot {
            title: "By hour of day".into(),
            finding: format!("The busiest hour begins at {:.0}:00.", busiest(&hours)),
            x: Axis {
                ticks: Ticks::Named((0..24).step_by(3).map(|h| (f64::from(h), h.to_string())).collect()),
                range: Some((-0.5, 23.5)),
                ..Axis::linear(format!("hour ({zone})"))
            },
            y: Axis::linear("requests"),
            series: bars(hours),
        }));
    }
    let counts = |map: &BTreeMap<i64, u64>| map.iter().map(|(day, n)| (*day as f64, *n as f64)).collect::<Vec<_>>();
    if let Some(days) = profile.day_of_week_counts.as_ref().map(counts).filter(|days| days.len() > 1) {
        blocks.push(Block::Plot(Plot {
            title: "By day of week".into(),
            finding: format!("The busiest day is {}.", DAYS[busiest(&days) as usize % 7]),
            x: Axis {
                ticks: Ticks::Named(DAYS.iter().enumerate().map(|(i, d)| (i as f64, (*d).into())).collect()),
                range: Some((-0.5, 6.5)),
                ..Axis::linear("day (UTC)")
            },
            y: Axis::linear("requests"),
            series: bars(days),
        }));
    }
    if let Some(days) = profile.day_index_counts.as_ref().map(counts).filter(|days| days.len() > 1) {
        let (first, last) = (days[0].0, days[days.len() - 1].0);
        blocks.push(Block::Plot(Plot {
            title: "By day".into(),
            finding: format!("The busiest is day {:.0} of days {first:.0} to {last:.0}.", busiest(&days)),
            x: Axis { range: Some((first - 0.5, last + 0.5)), ..Axis::linear("day of the file's clock") },
            y: Axis::linear("requests"),
            series: bars(days),
        }));
    }
    match d.periodicity.as_deref() {
        Some([]) => blocks.push(Block::Note("No daily or weekly cycle was found.".into())),
        Some(cycles) => {
            for c in cycles {
                let (word, from) =
                    if c.period_h == 24 { ("Daily", "midnight") } else { ("Weekly", "the week's start") };
                blocks.push(Block::Note(format!(
                    "{word} cycle: it peaks {} h after {from}, with an amplitude of {}\u{202f}% of the mean rate.",
                    brief(c.peak_at_h),
                    brief(100.0 * c.amplitude)
                )));
            }
        }
        None => {}
    }
    blocks
}

/// The distributions of lengths.
pub fn lengths(d: &Description) -> Option<Block> {
    let known = [("input", &d.plots.input, d.input_length), ("output", &d.plots.output, d.output_length)];
    let known: Vec<_> = known.into_iter().filter(|(_, points, _)| !points.is_empty()).collect();
    if known.is_empty() {
        return None;
    }
    let told = known.iter().filter_map(|(word, _, x)| {
        x.map(|x| {
            format!("half of the {word}s have at most {} tokens, 99\u{202f}% at most {}", brief(x.p50), brief(x.p99))
        })
    });
    let told = told.collect::<Vec<_>>().join("; ");
    let most = known.iter().filter_map(|(_, _, x)| x.map(|x| x.n)).max().unwrap_or(1);
    // The last value stands where one request is left.
    let top = 1.0 - 1.0 / (2.0 * most.max(5) as f64);
    let series = |(word, points, _): &(&str, &Vec<(f64, f64)>, _)| {
        let points = points.iter().map(|(value, share)| (*value, share.min(top)));
        Series::new(format!("{word} tokens"), Mark::Step, points)
    };
    let mut finding = told;
    if let Some(first) = finding.get(..1).map(str::to_uppercase) {
        finding.replace_range(..1, &first);
    }
    Some(Block::Plot(Plot {
        title: "Lengths".into(),
        finding: finding + ".",
        x: Axis::log("tokens, at most"),
        y: Axis { range: Some((0.0, top)), ..Axis::nines("share of requests") },
        series: known.iter().map(series).collect(),
    }))
}

/// The hit ratio against the cache's size.
pub fn prefix(p: &PrefixFigures) -> Option<Block> {
    let (size, best) = p.curve.last()?;
    let half = p.curve.iter().find(|(_, ratio)| *ratio >= best / 2.0).map_or(*size, |(c, _)| *c);
    let points = p.curve.iter().map(|(c, ratio)| (*c as f64, 100.0 * ratio));
    Some(Block::Plot(Plot {
        title: "Hit ratio against cache size".into(),
        finding: format!(
            "LRU; {} blocks of {} tokens give half of the {}\u{202f}% that no cache can exceed.",
            brief(half as f64),
            p.block_tokens,
            brief(100.0 * best)
        ),
        x: Axis { scale: Scale::Log, ..Axis::linear("cache size (blocks)") },
        y: Axis { range: Some((0.0, 100.0)), ..Axis::linear("% of blocks hit") },
        series: vec![Series::new("LRU", Mark::Line, points)],
    }))
}
