//! What a trace is like, in figures with exact definitions.

mod arrivals;
mod explain;
mod fits;
mod groups;
mod lengths;
mod plots;
mod prefix;
mod profile;
mod prompts;
mod sessions;
mod text;

pub use arrivals::{ArrivalFigures, Burstiness, CountFigures, GammaFit, GapFigures, WindowFigures, burstiness};
pub use explain::{Definition, explain};
pub use fits::Fit;
pub use groups::{GroupFigures, Grouped};
pub(crate) use lengths::Histogram;
pub use lengths::LengthFigures;
pub(crate) use lengths::figures_of;
pub use plots::{Counts, Plots};
pub use prefix::{CAPACITIES, CacheFigures, IdFigures, PrefixFigures};
pub use profile::{Cycle, ProfileFigures};
pub use prompts::PromptFigures;
pub use sessions::SessionFigures;
pub(crate) use text::{length_line, num};

use crate::account::{Accounting, Notice};
use crate::conversations::ConversationFigures;
use crate::error::Error;
use crate::formats::PerMinute;
use crate::reader::Reader;
use crate::row::{Clock, Names, Row};
use crate::source::FileBytes;
use groups::Groups;
use prefix::Prefix;
use prompts::Prompts;
use serde::Serialize;
use sessions::Sessions;
use std::borrow::Cow;

/// Everything `describe` says about a trace. What the trace does not tell is left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// The file as the caller named it.
    pub file: String,
    /// Its format.
    pub format: String,
    /// Column names, or the first record's fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Requests described.
    pub rows: u64,
    /// What became of every row.
    pub accounting: Accounting,
    /// What the bytes look like.
    #[serde(flatten)]
    pub bytes: Option<FileBytes>,
    /// What the times count from.
    pub clock: Clock,
    /// When requests arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalFigures>,
    /// Hours, days and weekdays.
    #[serde(flatten)]
    pub profile: Option<ProfileFigures>,
    /// Daily and weekly cycles found; `None` if the trace is too short to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub periodicity: Option<Vec<Cycle>>,
    /// Prompt tokens, of all rows that tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_length: Option<LengthFigures>,
    /// Output tokens, of all rows that tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_length: Option<LengthFigures>,
    /// Rank correlation of the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spearman_in_out: Option<f64>,
    /// Prompt tokens over the span of arrivals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens_per_s: Option<f64>,
    /// Output tokens over the span of arrivals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens_per_s: Option<f64>,
    /// The source's failed requests, where the format tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<FailureFigures>,
    /// By model, class and client.
    #[serde(flatten)]
    pub groups: Option<Grouped>,
    /// How long the source's requests took, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<LengthFigures>,
    /// Conversations by session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionFigures>,
    /// Prefix sharing by block ids.
    #[serde(flatten)]
    pub prefix: Option<PrefixFigures>,
    /// Prompt and answer texts.
    #[serde(flatten)]
    pub prompts: Option<PromptFigures>,
    /// Conversation entries.
    #[serde(flatten)]
    pub conversations: Option<ConversationFigures>,
    /// Counts per minute.
    #[serde(flatten)]
    pub per_minute: Option<PerMinute>,
    /// What plots show; no part of the JSON.
    #[serde(skip)]
    pub plots: Plots,
}

/// Failed requests and the lengths without them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FailureFigures {
    /// Rows that failed at the source.
    pub failed_rows: u64,
    /// Rows without prompt tokens.
    pub zero_input_rows: u64,
    /// Prompt tokens of the others.
    pub input: Option<LengthFigures>,
    /// Output tokens of the others.
    pub output: Option<LengthFigures>,
    /// Rank correlation of the two, of the others.
    pub spearman_in_out: Option<f64>,
}

/// Describes what a reader gives, row by row: of a plain trace it keeps 20 bytes a row.
pub fn describe(reader: &mut Reader) -> Result<Description, Error> {
    let mut describer = Describer::default();
    while let Some(row) = reader.next() {
        describer.row(&row?, reader.block_tokens());
    }
    let clock = reader.clock();
    let inversions = reader.accounting().noticed(Notice::OutOfOrder);
    let mut description = describer.finish(clock, inversions, reader.names());
    description.file = reader.file().to_owned();
    description.format = reader.format().word().to_owned();
    description.columns = reader.fields().to_vec();
    description.accounting = reader.accounting().clone();
    description.bytes = Some(reader.bytes());
    description.conversations = reader.conversations().map(|c| c.figures());
    description.per_minute = reader.per_minute().cloned();
    Ok(description)
}

/// Describes rows from anywhere: a generated workload, a transformed trace. `names` are those of the rows.
pub fn describe_rows(rows: &[Row], names: &Names, block_tokens: Option<u32>, clock: Clock) -> Description {
    let mut describer = Describer::default();
    rows.iter().for_each(|row| describer.row(row, block_tokens));
    let times: Vec<i64> = rows.iter().filter_map(|r| r.at).collect();
    let inversions = times.windows(2).filter(|w| w[1] < w[0]).count() as u64;
    describer.finish(clock, inversions, names)
}

/// The arrival figures of ascending times in nanoseconds.
pub fn describe_arrivals(sorted: Vec<i64>) -> Option<ArrivalFigures> {
    let span = sorted.last()? - sorted.first()?;
    arrivals::figures(sorted, Clock::Offset, 0, span)
}

/// Spearman's rank correlation of pairs, average ranks.
pub(crate) fn spearman_of(pairs: &[[u32; 2]]) -> Option<f64> {
    let (mut x, mut y) = (Histogram::default(), Histogram::default());
    for &[a, b] in pairs {
        x.add(a.into());
        y.add(b.into());
    }
    lengths::spearman(pairs, &x, &y)
}

#[derive(Default)]
struct Describer {
    rows: u64,
    arrivals: Vec<i64>,
    /// Kind of each arrival, once there is more than one.
    tags: Vec<u32>,
    untimed: u64,
    ok: Lengths,
    failed: Lengths,
    judged: bool,
    groups: Groups,
    sessions: Sessions,
    took: Vec<f64>,
    prefix: Option<Prefix>,
    prompts: Prompts,
}

#[derive(Clone, Default)]
struct Lengths {
    rows: u64,
    input: Histogram,
    output: Histogram,
    pairs: Vec<[u32; 2]>,
}

impl Lengths {
    fn row(&mut self, row: &Row) {
        self.rows += 1;
        if let Some(input) = row.input {
            self.input.add(input.into());
        }
        if let Some(output) = row.output {
            self.output.add(output.into());
        }
        if let (Some(input), Some(output)) = (row.input, row.output) {
            self.pairs.push([input, output]);
        }
    }

    fn spearman(&self) -> Option<f64> {
        let complete = self.pairs.len() as u64;
        if complete < 2 {
            return None;
        }
        if complete == self.input.n() && complete == self.output.n() {
            return lengths::spearman(&self.pairs, &self.input, &self.output);
        }
        spearman_of(&self.pairs)
    }
}

impl Describer {
    /// `block_tokens`: what the reader knows by now; some formats tell it with their first row.
    fn row(&mut self, row: &Row, block_tokens: Option<u32>) {
        self.rows += 1;
        let tag = self.groups.row(row);
        match row.at {
            Some(at) => {
                if tag > 0 && self.tags.is_empty() {
                    self.tags.resize(self.arrivals.len(), 0);
                }
                if tag > 0 || !self.tags.is_empty() {
                    self.tags.push(tag);
                }
                self.arrivals.push(at);
            }
            None => self.untimed += 1,
        }
        self.judged |= row.ok.is_some();
        if row.ok == Some(false) { &mut self.failed } else { &mut self.ok }.row(row);
        if row.session.is_some() || row.took.is_some() {
            self.sessions.row(row);
        }
        if let Some(took) = row.took {
            self.took.push(took.ns() as f64 / 1e9);
        }
        if let (Some(block), Some(ids)) = (block_tokens, row.blocks()) {
            self.prefix.get_or_insert_with(|| Prefix::new(block)).request(ids, row.input);
        }
        self.prompts.row(row);
    }

    fn finish(mut self, clock: Clock, inversions: u64, names: &Names) -> Description {
        let groups = self.grouped(names);
        let file_span = self.arrivals.last().zip(self.arrivals.first()).map_or(0, |(last, first)| last - first);
        if !self.arrivals.is_sorted() {
            self.arrivals.sort_unstable();
        }
        let profile = profile::profile(&self.arrivals, clock);
        let long_enough = match (self.arrivals.first(), self.arrivals.last()) {
            (Some(first), Some(last)) => last - first >= 3 * 86_400_000_000_000,
            _ => false,
        };
        let periodicity = long_enough.then(|| profile::cycles(&self.arrivals, clock));
        let mut plots = Plots {
            arrivals: plots::counts(&self.arrivals),
            gap_cv: plots::gap_cv(&self.arrivals),
            week: (clock == Clock::Wall).then(|| plots::week(&self.arrivals)),
            ..Plots::default()
        };
        let arrivals = arrivals::figures(std::mem::take(&mut self.arrivals), clock, inversions, file_span);
        let all = self.all_lengths();
        (plots.input, plots.output) = (plots::distribution(&all.input), plots::distribution(&all.output));
        let (input, output, spearman) = (all.input.figures(), all.output.figures(), all.spearman());
        let span = arrivals.as_ref().map(|a| a.span_s).filter(|&s| s > 0.0);
        let per_s = |lengths: Option<LengthFigures>| Some(lengths?.sum / span?);
        Description {
            file: String::new(),
            format: "generated".into(),
            columns: Vec::new(),
            rows: self.rows,
            accounting: Accounting {
                records: self.rows,
                rows_read: self.rows,
                rows_emitted: self.rows,
                ..Accounting::default()
            },
            bytes: None,
            clock,
            arrivals,
            profile,
            periodicity,
            input_length: input,
            output_length: output,
            spearman_in_out: spearman,
            input_tokens_per_s: per_s(input),
            output_tokens_per_s: per_s(output),
            failures: self.judged.then(|| FailureFigures {
                failed_rows: self.failed.rows,
                zero_input_rows: zeros(&self.ok.input) + zeros(&self.failed.input),
                input: self.ok.input.figures(),
                output: self.ok.output.figures(),
                spearman_in_out: self.ok.spearman(),
            }),
            groups,
            duration_s: figures_of(self.took),
            sessions: self.sessions.figures(),
            prefix: self.prefix.as_ref().and_then(Prefix::figures),
            prompts: self.prompts.figures(),
            conversations: None,
            per_minute: None,
            plots,
        }
    }

    /// Of good and failed requests together.
    fn all_lengths(&self) -> Cow<'_, Lengths> {
        if self.failed.rows == 0 {
            return Cow::Borrowed(&self.ok);
        }
        Cow::Owned(Lengths {
            rows: self.rows,
            input: self.ok.input.merged(&self.failed.input),
            output: self.ok.output.merged(&self.failed.output),
            pairs: [self.ok.pairs.as_slice(), &self.failed.pairs].concat(),
        })
    }

    fn grouped(&mut self, names: &Names) -> Option<Grouped> {
        if self.groups.is_one_unnamed() {
            return None;
        }
        self.tags.resize(self.arrivals.len(), 0);
        let mut tagged: Vec<(i64, u32)> = self.arrivals.iter().copied().zip(self.tags.iter().copied()).collect();
        tagged.sort_by_key(|(at, _)| *at);
        self.groups.figures(&tagged, names)
    }
}

fn zeros(histogram: &Histogram) -> u64 {
    histogram.values().next().filter(|&(value, _)| value == 0).map_or(0, |(_, n)| n)
}
