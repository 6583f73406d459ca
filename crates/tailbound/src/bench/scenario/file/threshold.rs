//! What must hold over a run.

use super::{Amount, Wrong, wrong};
use crate::units;
use serde::{Deserialize, Serialize};
use tailbound_clock::Dur;

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ThresholdTable {
    metric: String,
    percentile: Option<f64>,
    below: Amount,
    class: Option<String>,
    #[serde(default)]
    abort: bool,
    delay: Option<Amount>,
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

pub(super) fn threshold(table: &ThresholdTable, classes: &[String]) -> Result<Threshold, Wrong> {
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
