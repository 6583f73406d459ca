//! One run, measured or read, as a comparison needs it.

use super::measure::stop_code;
use crate::bench::serve::args::ServeArgs;
use crate::bench::serve::judge::Judged;
use crate::bench::serve::live::Ran;
use std::path::PathBuf;
use tailbound_clock::Time;
use tailbound_record::Row;
use tailbound_stats::RunFacts;

/// One run.
pub struct Measured {
    pub rows: Vec<Row>,
    pub facts: RunFacts,
    /// Why it is INVALID.
    pub reasons: Vec<String>,
    pub model: String,
    /// Its place in the order of measuring, from 1.
    pub order: Option<usize>,
    pub folder: Option<PathBuf>,
    /// What tells its requests from others'; `None` if nobody knows.
    pub requests: Option<String>,
    /// The exit code of the signal that ended it.
    pub stopped: Option<u8>,
    /// Temperature asked for.
    pub temperature: Option<f64>,
}

impl Measured {
    /// Its verdict; the rows come by [`Measured::take`].
    pub fn new(args: &ServeArgs, judged: &Judged<'_>, interrupted: bool) -> Measured {
        let run = judged.run();
        let mut reasons: Vec<String> =
            run.verdict.reasons.iter().map(|r| format!("{}: {}; {}", r.code.name(), r.sentence, r.mend)).collect();
        if interrupted && reasons.is_empty() {
            reasons.push("interrupted: it did not come to its end".to_owned());
        }
        Measured {
            rows: Vec::new(),
            facts: RunFacts::new(Time::ZERO, Time::ZERO),
            reasons,
            model: run.description.model_id.clone(),
            order: None,
            folder: None,
            requests: None,
            stopped: interrupted.then(stop_code),
            temperature: args.payload.temperature,
        }
    }

    /// Rows and facts.
    pub fn take(&mut self, ran: Ran) {
        (self.rows, self.facts) = (ran.rows, ran.facts);
    }
}
