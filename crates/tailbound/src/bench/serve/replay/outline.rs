use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use tailbound_clock::Dur;
use tailbound_report::TraceAccount;
use tailbound_trace::{Name, Row, Trace};
use tailbound_workload::Sessions;

/// What plan and report need to know of a replayed trace; kept in the run's folder, so that a report needs the trace no more.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outline {
    /// When each request arrives; `None` if a law says.
    pub schedule: Option<Vec<Dur>>,
    /// Which requests follow from which.
    pub sessions: Option<Sessions>,
    /// What became of the trace's rows.
    pub account: TraceAccount,
    /// Whether the server is told to generate the full length: the trace knows lengths, not texts.
    pub forced: bool,
    /// The trace's classes of requests.
    pub classes: Labels,
    /// Who sent them.
    pub clients: Labels,
    /// Which turn of its session each is.
    #[serde(default)]
    pub turns: Labels,
}

/// Names that requests carry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Labels {
    /// The names, in the order in which they come up. Empty: no request has one.
    pub names: Vec<String>,
    /// For each request, the index of its name.
    pub of: Vec<u32>,
}

impl Labels {
    /// The labels as a row's class: there are rarely more than a handful.
    pub fn small(&self) -> Vec<u16> {
        self.of.iter().map(|&index| u16::try_from(index).unwrap_or(u16::MAX)).collect()
    }
}

/// The name of requests without one, beside others that have one.
const NAMELESS: &str = "(none)";

/// From this turn on they are taken together.
const LATE: usize = 8;

/// Which turn of its session each request is; nothing where nothing follows anything.
pub fn turn_labels(sessions: Option<&Sessions>) -> Labels {
    let Some(sessions) = sessions else { return Labels::default() };
    let mut of: Vec<u32> = Vec::with_capacity(sessions.turns.len());
    for turn in &sessions.turns {
        of.push(turn.map_or(0, |turn| (of[turn.after as usize] + 1).min(LATE as u32 - 1)));
    }
    let name = |n: usize| if n == LATE { format!("turn {n} and later") } else { format!("turn {n}") };
    let deepest = of.iter().max().map_or(0, |&last| last as usize + 1);
    Labels { names: (1..=deepest).map(name).collect(), of }
}

/// The names that `of` finds in a trace's rows.
pub fn labels(trace: &Trace, of: impl Fn(&Row) -> Option<Name>) -> Labels {
    if trace.rows.iter().all(|row| of(row).is_none()) {
        return Labels::default();
    }
    let mut known: HashMap<Option<Name>, u32> = HashMap::new();
    let mut labels = Labels::default();
    for row in &trace.rows {
        let name = of(row);
        let index = *known.entry(name).or_insert_with(|| {
            labels.names.push(name.map_or(NAMELESS, |name| trace.names.text(name)).to_owned());
            labels.names.len() as u32 - 1
        });
        labels.of.push(index);
    }
    labels
}

impl Outline {
    /// Only the first `n` rows are part of the plan: those after them come when its time is over.
    pub fn cut_to(&mut self, n: u32) {
        self.account.beyond_duration = self.account.rows_planned.saturating_sub(u64::from(n));
        self.account.rows_planned = u64::from(n);
        if let Some(schedule) = &mut self.schedule {
            schedule.truncate(n as usize);
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.turns.truncate(n as usize);
        }
    }
}
