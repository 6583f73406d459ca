//! What a driver heard of samples beside their moments: answers to be logged, and why others never came.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use tailbound_record::{End, Row};
use tailbound_stats::loadgen::Scenario;
use tailbound_stats::loadgen::accuracy::Answer;
use tailbound_stats::loadgen::scenario::Test;
use tailbound_token::Tokenizer;

/// Kept while a test runs.
#[derive(Default)]
pub struct Heard {
    answers: Vec<Said>,
    /// By cause: how many, and the words of the first.
    lost: BTreeMap<String, (u64, String)>,
}

struct Said {
    sample: u64,
    index: u32,
    text: Box<str>,
    tokens: i64,
}

impl Heard {
    /// An answer to be logged.
    pub fn answer(&mut self, sample: u64, index: u32, text: &str, tokens: i64) {
        self.answers.push(Said { sample, index, text: text.into(), tokens });
    }

    /// A request without a whole answer.
    pub fn lost(&mut self, row: &Row) {
        let (cause, detail) = match &row.end {
            End::Failed { cause, detail, .. } => (cause.to_string(), detail.to_string()),
            End::Cancelled(why) | End::NeverSent(why) => (format!("given up ({why:?})").to_lowercase(), String::new()),
            End::Done(_) => return,
        };
        self.lost_to(cause, detail);
    }

    /// The same, in words.
    pub fn lost_to(&mut self, cause: String, detail: String) {
        self.lost.entry(cause).or_insert((0, detail)).0 += 1;
    }

    /// How many never came.
    pub fn losses(&self) -> u64 {
        self.lost.values().map(|(n, _)| n).sum()
    }

    /// Why, a line each.
    pub fn complaint(&self) -> String {
        let mut out = String::new();
        for (cause, (n, detail)) in &self.lost {
            let detail: String = detail.chars().take(200).collect();
            let detail = if detail.is_empty() || detail == *cause { String::new() } else { format!(", e.g. {detail}") };
            let _ = writeln!(out, "  {n} x {cause}{detail}");
        }
        out
    }

    /// Hands the answers to the test's accuracy log: as token ids of 32 bits where a tokenizer is known, else as text.
    pub fn log(&mut self, test: &mut Test, tokenizer: Option<&Tokenizer>) {
        let r = &test.effective().requested;
        let token_mode = r.use_token_latencies;
        let first = token_mode && r.scenario != Scenario::Offline;
        for said in self.answers.drain(..) {
            let ids = tokenizer.and_then(|t| t.encode(&said.text, false).ok());
            let data: Vec<u8> = match &ids {
                Some(ids) => ids.iter().flat_map(|id| id.to_le_bytes()).collect(),
                None => said.text.as_bytes().to_vec(),
            };
            let first_token = first.then(|| match &ids {
                Some(ids) => ids.iter().take(1).flat_map(|id| id.to_le_bytes()).collect(),
                None => Vec::new(),
            });
            test.answer(Answer {
                seq: said.sample,
                index: said.index,
                data,
                first_token,
                tokens: token_mode.then_some(said.tokens),
            });
        }
    }
}
