//! When arrivals come and clients begin: closed forms over stages.

use super::Stage;
use tailbound_clock::{Dur, Rng};

/// How many requests a rate brings over all stages: the area under it.
pub fn area(from: f64, stages: &[Stage]) -> f64 {
    let mut from = from;
    let of = |stage: &Stage| {
        let area = (from + stage.target) / 2.0 * stage.duration.secs();
        from = stage.target;
        area
    };
    stages.iter().map(of).sum()
}

/// Arrivals in nanoseconds from the first stage's start.
///
/// The n-th comes when the area under the rate reaches n, from 1 on; or from 0 on (`at_once`), as k6's constant rate begins with a
/// request and its ramps don't. With a generator the areas between arrivals are exponential instead of 1, which makes them a Poisson
/// process of that rate (by the change of time).
pub fn arrivals(from: f64, stages: &[Stage], mut poisson: Option<&mut Rng>, at_once: bool) -> Vec<u64> {
    let mut out = Vec::new();
    let mut count = 0u32;
    let mut step = |wanted: f64| -> f64 {
        count += 1;
        match &mut poisson {
            Some(rng) => wanted + rng.exponential(),
            // Not a running sum: whole numbers are exact.
            None => f64::from(count) - f64::from(u8::from(at_once)),
        }
    };
    let mut wanted = step(0.0);
    let (mut from, mut done, mut begin) = (from, 0.0, Dur::ZERO);
    for stage in stages {
        let seconds = stage.duration.secs();
        let end = done + (from + stage.target) / 2.0 * seconds;
        // An arrival on the very end of everything is none of a rate that begins with one.
        while wanted < end || (wanted == end && !at_once && end > done) {
            let at = Dur::from_secs_f64(reached(from, stage.target, seconds, wanted - done)).min(stage.duration);
            if at_once && at == stage.duration {
                break; // the area was rounded up
            }
            out.push((begin + at).ns());
            wanted = step(wanted);
        }
        done = end;
        from = stage.target;
        begin += stage.duration;
    }
    out
}

/// When the area under a rate that goes from one value to another over `seconds` reaches `area`: the root of
/// from·t + (to − from)·t²/(2·seconds) = area, in the form that doesn't cancel.
fn reached(from: f64, to: f64, seconds: f64, area: f64) -> f64 {
    if area <= 0.0 {
        return 0.0;
    }
    let discriminant = from * from + 2.0 * area * (to - from) / seconds;
    2.0 * area / (from + discriminant.max(0.0).sqrt())
}

/// Steps of the number of clients, ns from the start: the n-th client of a rise from a to b over d begins at d·(n − a)/(b − a), so that
/// the last begins with the stage's end, and a fall mirrors that. The last step, at the end of all stages, has none left.
pub fn client_steps(from: u32, stages: &[Stage]) -> Vec<(u64, u32)> {
    let mut steps = vec![(0u64, from)];
    let (mut now, mut begin) = (from, 0u64);
    for stage in stages {
        let target = stage.target as u32;
        let (distance, duration) = (u64::from(target.abs_diff(now)), stage.duration.ns());
        for k in 1..=distance {
            let at = begin + (u128::from(duration) * u128::from(k) / u128::from(distance)) as u64;
            now = if target > now { now + 1 } else { now - 1 };
            push(&mut steps, at, now);
        }
        begin += duration;
    }
    push(&mut steps, begin, 0);
    steps
}

/// Of several steps at one moment the last counts.
fn push(steps: &mut Vec<(u64, u32)>, at: u64, clients: u32) {
    match steps.last_mut() {
        Some(last) if last.0 == at => last.1 = clients,
        _ => steps.push((at, clients)),
    }
}
