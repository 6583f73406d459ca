//! What must hold over a run, watched while it goes on and judged when it has ended.

use super::file::{Metric, Phased, Threshold};
use tailbound_clock::Time;
use tailbound_record::{End, Moment, Row};
use tailbound_report::ThresholdOutcome;
use tailbound_stats::tpot_ns;
use tailbound_workload::{IntentId, Plan};

/// The values a run has given so far.
pub struct Watcher<'a> {
    phased: &'a Phased,
    plan: &'a Plan,
    /// The first moment anything was due.
    started: Option<Time>,
    seen: Vec<Vec<f64>>,
}

/// Fewer ended requests than this abort no run.
const FEW: usize = 10;

impl<'a> Watcher<'a> {
    /// Of a run that is to begin.
    pub fn new(phased: &'a Phased, plan: &'a Plan) -> Watcher<'a> {
        Watcher { phased, plan, started: None, seen: vec![Vec::new(); phased.thresholds.len()] }
    }

    /// Takes an ended request. `Some`: the threshold that ends the run with it, in words.
    pub fn row(&mut self, row: &Row) -> Option<String> {
        let scheduled = row.at.get(Moment::Scheduled);
        self.started = self.started.or(scheduled);
        let class = self.class(row);
        let now = Moment::ALL.into_iter().filter_map(|m| row.at.get(m)).max();
        let lasted = now.zip(self.started).map(|(now, start)| now.since(start));
        for (threshold, seen) in self.phased.thresholds.iter().zip(&mut self.seen) {
            if threshold.class.is_some() && threshold.class != class {
                continue;
            }
            let Some(value) = value(threshold.metric, row) else { continue };
            let at = seen.partition_point(|&v| v <= value);
            seen.insert(at, value);
            let ripe = threshold.abort && seen.len() >= FEW && lasted.is_some_and(|lasted| lasted >= threshold.delay);
            let figure = figure(threshold.metric, seen);
            if ripe && figure.is_some_and(|v| v >= threshold.below) {
                return Some(judgement(threshold, &self.phased.classes, figure).sentence);
            }
        }
        None
    }

    fn class(&self, row: &Row) -> Option<u16> {
        let phase = self.plan.phases()?.of(IntentId(row.id as u32))?;
        self.phased.class_of.get(phase).copied()
    }

    /// What came of all of them.
    pub fn judgements(&self) -> Vec<ThresholdOutcome> {
        let all = self.phased.thresholds.iter().zip(&self.seen);
        all.map(|(threshold, seen)| judgement(threshold, &self.phased.classes, figure(threshold.metric, seen)))
            .collect()
    }
}

/// A request's value: seconds, or 1 for one that failed. A failed request has an infinite latency; one that was cancelled or never sent
/// has none.
fn value(metric: Metric, row: &Row) -> Option<f64> {
    let failed = matches!(row.end, End::Failed { .. });
    if !failed && !row.ok() {
        return None;
    }
    let latency = |seconds: Option<f64>| if failed { Some(f64::INFINITY) } else { seconds };
    match metric {
        Metric::Failed => Some(f64::from(u8::from(failed))),
        Metric::Ttft(_) => latency(row.ttft_scheduled().map(|d| d.secs())),
        Metric::E2el(_) => latency(row.e2e_scheduled().map(|d| d.secs())),
        Metric::Tpot(_) => latency(tpot_ns(row).map(|ns| ns / 1e9)),
    }
}

/// The share, or the percentile by nearest rank, of sorted values.
fn figure(metric: Metric, sorted: &[f64]) -> Option<f64> {
    let percentile = match metric {
        Metric::Failed => return (!sorted.is_empty()).then(|| sorted.iter().sum::<f64>() / sorted.len() as f64),
        Metric::Ttft(p) | Metric::Tpot(p) | Metric::E2el(p) => p,
    };
    let rank = (percentile / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

fn judgement(threshold: &Threshold, classes: &[String], figure: Option<f64>) -> ThresholdOutcome {
    let of = threshold.class.and_then(|c| classes.get(c as usize)).map_or(String::new(), |c| format!(" of {c}"));
    let (metric, percentile, name) = match threshold.metric {
        Metric::Failed => ("failed", None, format!("failed requests{of}")),
        Metric::Ttft(p) => ("ttft", Some(p), format!("p{p} TTFT{of}")),
        Metric::Tpot(p) => ("tpot", Some(p), format!("p{p} TPOT{of}")),
        Metric::E2el(p) => ("e2el", Some(p), format!("p{p} E2EL{of}")),
    };
    let shown = |v: f64| match threshold.metric {
        Metric::Failed => format!("{:.2} %", v * 100.0),
        _ if v.is_infinite() => "infinite".into(),
        _ => format!("{:.1} ms", v * 1e3),
    };
    let held = figure.is_some_and(|v| v < threshold.below);
    let word = if held { "held" } else { "MISSED" };
    let was = figure.map_or("never seen".into(), shown);
    ThresholdOutcome {
        metric,
        percentile,
        class: threshold.class.and_then(|c| classes.get(usize::from(c)).cloned()),
        below: threshold.below,
        value: figure,
        held,
        sentence: format!("threshold {word}: {name} {was}, below {} wanted", shown(threshold.below)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_clock::Dur;
    use tailbound_record::{Blame, Cause, Finish, Phase as Part};
    use tailbound_workload::{Executor, Phase, Spec};

    fn phased(thresholds: Vec<Threshold>) -> (Phased, Plan) {
        let executor =
            |iterations| Executor::SharedIterations { clients: 1, iterations, max_duration: Dur::from_secs(9) };
        let phase = |name: &str, n| Phase { name: name.into(), start: Dur::ZERO, executor: executor(n) };
        let phases = vec![phase("a", 50), phase("b", 50)];
        let plan = Spec { phases: Some(phases.clone()), ..Spec::default() }.plan().unwrap();
        (Phased { phases, classes: vec!["a".into(), "b".into()], class_of: vec![0, 1], thresholds }, plan)
    }

    fn row(id: u64, ttft_ms: Option<u64>) -> Row {
        let mut row = Row::new(id);
        let start = Time(1_000_000_000 + id * 100_000_000);
        row.at.set(Moment::Scheduled, start);
        match ttft_ms {
            Some(ms) => {
                row.at.set(Moment::FirstToken, start + Dur::from_ms(ms));
                row.at.set(Moment::LastToken, start + Dur::from_ms(ms));
                row.end = End::Done(Finish::Stop);
            }
            None => {
                row.end = End::Failed {
                    phase: Part::Headers,
                    blame: Blame::Server,
                    cause: Cause::Status(500),
                    detail: "".into(),
                }
            }
        }
        row
    }

    fn limit(metric: Metric, class: Option<u16>, below: f64, abort: bool, delay: Dur) -> Threshold {
        Threshold { metric, class, below, abort, delay }
    }

    #[test]
    fn a_threshold_is_held_or_missed_over_all_or_a_class() {
        let (phased, plan) = phased(vec![
            limit(Metric::Ttft(90.0), None, 0.1, false, Dur::ZERO),
            limit(Metric::Ttft(90.0), Some(1), 0.1, false, Dur::ZERO),
            limit(Metric::Failed, Some(0), 0.2, false, Dur::ZERO),
            limit(Metric::Tpot(50.0), Some(1), 1.0, false, Dur::ZERO),
        ]);
        let mut watcher = Watcher::new(&phased, &plan);
        for id in 0..10 {
            assert_eq!(watcher.row(&row(id, (id > 0).then_some(50))), None);
            assert_eq!(watcher.row(&row(50 + id, Some(200))), None);
        }
        let judged = watcher.judgements();
        assert_eq!(judged.iter().map(|j| j.held).collect::<Vec<_>>(), [false, false, true, false]);
        assert_eq!(judged[1].sentence, "threshold MISSED: p90 TTFT of b 200.0 ms, below 100.0 ms wanted");
        assert_eq!(judged[2].sentence, "threshold held: failed requests of a 10.00 %, below 20.00 % wanted");
        assert!(judged[3].sentence.contains("never seen"), "one token has no time per token: {}", judged[3].sentence);
    }

    #[test]
    fn a_run_is_ended_by_a_rule_after_its_delay_and_not_by_a_few_requests() {
        let (phased, plan) = phased(vec![limit(Metric::Failed, None, 0.5, true, Dur::from_secs(2))]);
        let mut watcher = Watcher::new(&phased, &plan);
        // Every request fails; one is due each 100 ms.
        let ended: Vec<u64> = (0..30).filter(|&id| watcher.row(&row(id, None)).is_some()).collect();
        assert_eq!(ended.first(), Some(&20));
        let (phased, plan) = self::phased(vec![limit(Metric::E2el(95.0), None, 0.1, true, Dur::ZERO)]);
        let mut watcher = Watcher::new(&phased, &plan);
        let ended: Vec<u64> = (0..30).filter(|&id| watcher.row(&row(id, Some(200))).is_some()).collect();
        assert_eq!(ended.first(), Some(&9));
    }
}
