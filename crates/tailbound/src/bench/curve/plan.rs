//! From flags to a checked plan of the curve, and what `--dry-run` says of it.

use super::args::{CurveArgs, OfflineArg};
use crate::bench::point::Shape;
use crate::bench::serve::plan as run;
use crate::bundle;
use crate::failure::{Failure, Outcome};
use serde_json::json;
use std::fmt::Write as _;
use tailbound_clock::Dur;
use tailbound_stats::loadgen::endpoints::check::PUBLISHED;
use tailbound_stats::loadgen::endpoints::client::order_without_replacement;
use tailbound_stats::loadgen::endpoints::plan::{CannotPlan, CurvePlan, CurveSpec, Offline, PlannedPoint, plan};

/// The curve to measure.
pub fn curve(args: &CurveArgs, dataset: u64, request_s: Option<[f64; 2]>) -> Outcome<CurvePlan> {
    let c = &args.curve;
    let spec = CurveSpec {
        c_min: c.c_min,
        c_max: c.c_max,
        points: c.points,
        dataset,
        dedicated_offline: c.offline == OfflineArg::Dedicated,
        request_s,
        passes: c.passes,
        min_window_s: c.min_window.map(Dur::secs),
    };
    plan(spec).map_err(|e| {
        let flag = match e {
            CannotPlan::Regions(_) => "--c-min and --c-max",
            CannotPlan::Points { .. } => "--points",
            CannotPlan::NoLength | CannotPlan::Passes(_) => "--passes",
            CannotPlan::NoData => "--dataset-samples",
            CannotPlan::OfflineTooSmall { .. } => "--offline dedicated",
        };
        Failure::usage(format!("{flag}: {e}"))
    })
}

/// How a request's time grows with concurrency, from its time alone and at the highest.
pub fn request_s(alone: Dur, at_max: Dur, [c_min, c_max]: [u64; 2]) -> [f64; 2] {
    let per = (at_max.secs() - alone.secs()).max(0.0) / (c_max.saturating_sub(c_min)).max(1) as f64;
    [alone.secs() - per * c_min as f64, per]
}

/// What `--request-time` says.
pub fn given_request_s(args: &CurveArgs) -> Option<[f64; 2]> {
    let alone = args.curve.request_time?;
    Some(request_s(alone, args.curve.request_time_at_max.unwrap_or(alone), [args.curve.c_min, args.curve.c_max]))
}

/// A point's run.
pub fn shape(args: &CurveArgs, point: &PlannedPoint) -> Shape {
    let least = u32::try_from(point.concurrency).unwrap_or(u32::MAX).max(8);
    let warmups = args.curve.warmup_requests.unwrap_or(least);
    Shape { requests: point.samples, concurrency: Some(point.concurrency), warmups, ..Shape::default() }
}

/// Which sample each request of a point sends: pass after pass, by the published seed.
pub fn order(samples: u64, dataset: u32) -> Vec<u32> {
    order_without_replacement(PUBLISHED[PUBLISHED.len() - 1].sample_index, dataset).take(samples as usize).collect()
}

/// The hash of everything that decides what is sent and when. Equal hashes: equal curves.
pub fn hash(args: &CurveArgs, plan: &CurvePlan, model: &str) -> Outcome<String> {
    let mut points = Vec::new();
    for point in &plan.points {
        points.push(run::plan(&args.serve(shape(args, point), None).load, None)?.hash().to_string());
    }
    let file = args.data.dataset_path.as_deref().map(bundle::file_digest).transpose()?;
    let what = json!({
        "curve": plan,
        "points": points,
        "seed_set": PUBLISHED[PUBLISHED.len() - 1].id,
        "model": model,
        "backend": args.target.backend,
        "endpoint": args.target.endpoint,
        "virtual": args.curve.virtual_time.then_some(&args.curve.profile),
        "salted": !args.curve.no_salt,
        "seed": args.curve.seed,
        "data": format!("{:?}", args.data),
        "data_file": file,
        "payload": format!("{:?}", args.payload),
    });
    Ok(bundle::digest(what.to_string().as_bytes()))
}

/// What would be measured, and how long it takes.
pub fn describe(args: &CurveArgs, plan: &CurvePlan, dataset: u64, model: &str, hash: Option<&str>) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<18} {value}");
    };
    line("plan", hash.unwrap_or("its hash follows from the pilot").to_owned());
    line("model", model.to_owned());
    line("data set", format!("{}, {dataset} samples a pass", args.data.dataset_name));
    line("seeds", format!("set {}", PUBLISHED[PUBLISHED.len() - 1].id));
    let requests: u64 = plan.points.iter().map(|p| p.samples).sum();
    line("requests", format!("{requests}, and {} to warm up", warmups(args, plan)));
    line("takes", plan.expected_s().map_or_else(|| unknown(plan), |s| format!("about {}", length(s))));
    out += "\n concurrency  region            passes   requests   window     takes\n";
    for p in &plan.points {
        let _ = writeln!(
            out,
            "{:>12}  {:<16} {:>7} {:>10} {:>8} {:>9}{}",
            p.concurrency,
            p.region.map_or("offline", |r| r.name()),
            p.passes,
            p.samples,
            length(p.min_window_s),
            p.expected_s.map_or_else(|| "?".into(), length),
            match p.offline {
                Offline::Elected => "  (elected as the offline point)",
                _ => "",
            },
        );
    }
    out
}

fn unknown(plan: &CurvePlan) -> String {
    let least: f64 = plan.points.iter().map(|p| p.min_window_s).sum();
    format!("nobody knows how long a request takes (--request-time); to count, at least {}", length(least))
}

fn warmups(args: &CurveArgs, plan: &CurvePlan) -> u64 {
    plan.points.iter().map(|p| u64::from(shape(args, p).warmups)).sum()
}

/// A length of time as people say it.
pub fn length(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..=9 => format!("{seconds:.1} s"),
        10..=119 => format!("{whole} s"),
        120..=7199 => format!("{} min", (seconds / 60.0).round()),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
