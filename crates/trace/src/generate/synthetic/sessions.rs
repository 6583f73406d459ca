use super::{Maker, ns};
use crate::generate::Law;
use tailbound_clock::Dur;

/// Conversations: each turn's prompt is everything said before, and what it adds.
#[derive(Clone, Debug, PartialEq)]
pub struct Sessions {
    /// Turns of a conversation.
    pub turns: Law,
    /// Seconds from an answer's end to the next turn.
    pub think_s: Law,
}

impl Maker<'_> {
    pub(super) fn conversation(&mut self, sessions: &Sessions, start: f64) {
        let session = self.names.intern(&format!("session-{}", self.names.len()));
        let mut context = self.blocks.begin(self.spec.prefixes.as_ref(), &mut self.draws.sharing);
        let mut at = start;
        for turn in 1..=sessions.turns.count(1, &mut self.draws.shape) {
            let think = (turn > 1).then(|| sessions.think_s.draw(&mut self.draws.shape).max(0.0));
            at += think.unwrap_or(0.0);
            let mut row = self.turn(at, &mut context);
            row.session = Some(session);
            let more = row.more_mut();
            more.turn = Some(turn);
            more.think = think.map(|s| Dur(ns(s) as u64));
            at += f64::from(row.output.unwrap_or(0)) * self.spec.token_s;
            self.rows.push(row);
        }
    }
}
