use super::{Compared, Side};
use serde_json::{Value, json};
use tailbound_stats::compare::{Agreement, Contrast, Estimate, Finding, Measure};

pub(super) fn object(compared: &Compared) -> Value {
    let design = &compared.design;
    let contrasts = compared.comparison.contrasts.iter().enumerate();
    json!({
        "workload": compared.workload,
        "load": compared.load,
        "design": {
            "primary": design.primary.to_string(),
            "pairing": design.pairing.name(),
            "alpha": design.alpha,
            "margin": design.margin,
            "share_margin": design.share_margin,
            "replicates": design.replicates,
            "seed": design.seed.0,
        },
        "valid": compared.comparison.invalid.is_empty(),
        "sides": compared.sides.iter().map(side).collect::<Vec<Value>>(),
        "contrasts": contrasts.map(|(i, c)| contrast(compared, i, c)).collect::<Vec<Value>>(),
        "gate": compared.gate.map(|gate| json!({
            "tolerance": gate.tolerance,
            "proof": gate.proof,
            "passes": compared.passes(),
        })),
        "notes": compared.notes,
    })
}

fn side(side: &Side) -> Value {
    let runs: Vec<Value> = side
        .runs
        .iter()
        .enumerate()
        .map(|(round, run)| {
            json!({
                "round": round + 1,
                "order": run.order,
                "folder": run.folder,
                "requests": run.requests,
                "completed": run.completed,
                "valid": run.reasons.is_empty(),
                "reasons": run.reasons,
            })
        })
        .collect();
    json!({ "name": side.name, "source": side.source, "runs": runs })
}

fn contrast(compared: &Compared, i: usize, contrast: &Contrast) -> Value {
    let findings = contrast.findings.iter().enumerate();
    json!({
        "side": compared.sides[contrast.side].name,
        "against": compared.sides[0].name,
        "sentence": compared.sentence(i),
        "pairing": contrast.pairing.name(),
        "rounds": contrast.rounds,
        "knows_runs": contrast.knows_runs(),
        "findings": findings.map(|(rank, f)| finding(compared, contrast, f, rank == 0)).collect::<Vec<Value>>(),
        "agreement": compared.agreements.get(i).and_then(Option::as_ref).map(agreement),
    })
}

fn finding(compared: &Compared, contrast: &Contrast, finding: &Finding, primary: bool) -> Value {
    let (a, b) = (&compared.sides[0].name, &compared.sides[contrast.side].name);
    let (unit, scale) = unit(finding.measure);
    let scaled = |e: Estimate| estimate(Estimate { value: e.value * scale, low: e.low * scale, high: e.high * scale });
    json!({
        "metric": finding.measure.to_string(),
        "primary": primary,
        "unit": unit,
        "lower_is_better": finding.measure.lower_is_better(),
        "a": finding.a.map(|v| v * scale),
        "b": finding.b.map(|v| v * scale),
        "ratio": finding.ratio.map(estimate),
        "difference": finding.difference.map(scaled),
        "within_runs": finding.within.map(estimate),
        "p": finding.p,
        "adjusted_p": finding.adjusted_p,
        "claim": finding.claim.name(),
        "better": finding.better(),
        "block": finding.block,
        "segments": finding.segments,
        "sentence": finding.sentence(a, b, &compared.design),
    })
}

fn estimate(estimate: Estimate) -> Value {
    json!({ "value": estimate.value, "low": estimate.low, "high": estimate.high })
}

fn agreement(agreement: &Agreement) -> Value {
    json!({
        "pairs": agreement.pairs,
        "identical": agreement.identical,
        "unread": agreement.unread,
        "share": agreement.share(),
        "interval": agreement.interval().map(|(low, high)| [low, high]),
        "first_divergence_chars": {
            "min": agreement.first_divergence.min(),
            "median": agreement.first_divergence.median(),
        },
        "shared_beginning": { "median": agreement.shared_beginning.median() },
    })
}

/// A measure's unit in files, and what turns its value into that.
fn unit(measure: Measure) -> (&'static str, f64) {
    match measure {
        Measure::Latency(..) => ("ms", 1e-6),
        Measure::Attainment | Measure::Completed => ("share", 1.0),
        _ => ("1/s", 1.0),
    }
}
