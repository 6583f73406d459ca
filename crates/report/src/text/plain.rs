//! What the figures mean, for somebody who reads only this.

use super::figures::{ms, percent};
use super::own::metric_name;
use crate::Run;

pub(crate) fn sentences(run: &Run<'_>) -> Vec<String> {
    [speed(run), queued(run), missed(run), overload(run)].into_iter().flatten().collect()
}

fn speed(run: &Run<'_>) -> Option<String> {
    let users = &run.summary.latency.interactivity;
    let (typical, slow) = (users.median()?, users.nearest_rank(5.0)?);
    Some(format!(
        "A typical user reads {typical:.1} tokens/s once the answer has begun; the slowest 5 % read {slow:.1} or less."
    ))
}

fn queued(run: &Run<'_>) -> Option<String> {
    let cap = run.facts.max_concurrency?;
    let share = run.summary.queued_share.filter(|share| *share >= 0.001 && run.facts.open_loop())?;
    Some(format!(
        "Requests spent {} of their time queued in this client, waiting for one of {cap} places; figures from the write leave that out.",
        percent(share)
    ))
}

fn missed(run: &Run<'_>) -> Option<String> {
    let goodput = run.summary.goodput.as_ref()?;
    if goodput.met() {
        return None;
    }
    let worst = goodput
        .by_metric
        .iter()
        .min_by(|a, b| a.share().partial_cmp(&b.share()).unwrap_or(std::cmp::Ordering::Equal))?;
    let name = metric_name(worst.metric, run);
    let met = worst.share().map_or("n/a".to_owned(), percent);
    let needed = percent(goodput.required_share);
    Some(match (worst.limit_ms, worst.at_required_ns) {
        (Some(limit), Some(at)) if at.is_infinite() => format!(
            "{name} was missed most: {met} of requests kept to {limit} ms where {needed} must; so many failed or were never sent that no limit would do."
        ),
        (Some(limit), Some(at)) if at * 1e-6 > limit => format!(
            "{name} was missed most: {met} of requests kept to {limit} ms where {needed} must; {needed} kept to {} ms, {} ms more than allowed.",
            ms(at),
            ms(at - limit * 1e6)
        ),
        _ => format!(
            "No single objective was missed by itself, but only {} of requests met all of theirs.",
            percent(goodput.attainment?)
        ),
    })
}

fn overload(run: &Run<'_>) -> Option<String> {
    if run.facts.open_loop() || run.facts.max_concurrency.is_some() || run.summary.requests.planned < 2 {
        return None;
    }
    Some("All requests were sent at once: TTFT shows how the server works through a queue of that length, not how it answers a user.".to_owned())
}
