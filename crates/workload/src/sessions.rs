use crate::SpecError;
use serde::{Deserialize, Serialize};
use tailbound_clock::Dur;

/// Which requests of a load follow from which: conversations, agents' trees.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// For each request in order, the turn it follows; `None` begins a session.
    pub turns: Vec<Option<Turn>>,
    /// A failed turn ends its session: the turns after it can't be asked without its answer. Otherwise they go on.
    pub end_with_failure: bool,
}

/// A request that follows another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The request it follows: an earlier one. Several may follow the same.
    pub after: u32,
    /// How long after that one's end.
    pub wait: Dur,
    /// Not before this, from the start of the schedule (a trace's own time).
    pub earliest: Option<Dur>,
}

impl Sessions {
    /// How many sessions there are among the first `n` requests.
    pub fn begun(&self, n: usize) -> usize {
        self.turns.iter().take(n).filter(|turn| turn.is_none()).count()
    }

    /// For each request, which session it belongs to, counted from 0 in the order in which they begin.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = Vec::with_capacity(self.turns.len());
        let mut begun = 0;
        for turn in &self.turns {
            let number = turn.map_or(begun, |turn| numbers[turn.after as usize]);
            begun += u32::from(turn.is_none());
            numbers.push(number);
        }
        numbers
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        let backward = |(i, turn): (usize, &Option<Turn>)| turn.is_some_and(|turn| turn.after as usize >= i);
        match self.turns.iter().enumerate().position(backward) {
            None => Ok(()),
            Some(i) => Err(SpecError {
                flag: "--dataset-path",
                value: None,
                problem: format!("request {} follows one that is not before it", i + 1),
                hint: "a session's turns must stand in order".into(),
            }),
        }
    }
}
