use crate::make::{Lead, Maker, Wanted};
use crate::{Options, Place, Prompt, PromptError, file, order};
use std::path::{Path, PathBuf};
use tailbound_clock::Dur;

/// The data set `burstgpt`: the lengths of a BurstGPT trace, with synthetic text of exactly these lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BurstGpt {
    /// `--dataset-path`.
    pub path: PathBuf,
    /// Only rows of this model; vLLM takes `GPT-4`. `None`: all.
    pub model: Option<String>,
    /// Keep the trace's order and times, so that it can be replayed. Otherwise rows are drawn at random and have no times (as vLLM does).
    pub times: bool,
}

struct Row {
    line: u64,
    at: f64,
    input: u32,
    output: u32,
}

pub(crate) fn build(
    set: &BurstGpt,
    options: &Options<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Prompt>, PromptError> {
    let mut rows = read(set, notes)?;
    let have = rows.len();
    if set.times {
        rows.sort_by(|a, b| a.at.total_cmp(&b.at));
        if let Some(count) = options.count {
            if count as usize > have {
                let problem = format!("{count}: the trace has only {have} usable rows");
                let hint = "a trace replayed with its times can't be repeated; give fewer, or leave it out";
                return Err(PromptError::flag("--num-prompts", problem, hint));
            }
            rows.truncate(count as usize);
        }
    } else {
        let wanted = options.count.map_or(have, |n| n as usize);
        let wanted = if options.oversample { wanted } else { wanted.min(have) };
        if wanted > have {
            notes.push(format!("{have} usable rows were drawn from with replacement for {wanted} prompts"));
        }
        let picked = order::sample(have, wanted, options.seed, options.compat);
        rows = picked.into_iter().map(|i| Row { ..rows[i] }).collect();
    }
    let maker = Maker::new(options)?;
    let wanted: Vec<Wanted<'_>> = rows
        .iter()
        .map(|row| Wanted { lead: Lead::Nothing, tokens: row.input.saturating_sub(maker.specials).max(1) })
        .collect();
    let made = maker.make(&[], &wanted, notes)?;
    let origin = rows.first().map_or(0.0, |row| row.at);
    let prompts = made.into_iter().zip(&rows).map(|(made, row)| Prompt {
        body: made.body,
        prompt_tokens: made.tokens.map(|n| n + maker.specials),
        output_tokens: row.output,
        at: set.times.then(|| Dur::from_secs_f64(row.at - origin)),
        row: Some(row.line),
    });
    Ok(prompts.collect())
}

/// The usable rows; what was left out, and why, goes to the notes.
fn read(set: &BurstGpt, notes: &mut Vec<String>) -> Result<Vec<Row>, PromptError> {
    let path: &Path = &set.path;
    let text = file::text(path)?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|e| file::wrong(path, Place::Line(1), e.to_string()))?.clone();
    let column = |name: &str| {
        headers.iter().position(|header| header == name).ok_or_else(|| {
            let seen: Vec<&str> = headers.iter().collect();
            file::wrong(path, Place::Line(1), format!("no column {name:?}; the columns are {}", seen.join(", ")))
                .hint("a BurstGPT file has Timestamp, Model, Request tokens, Response tokens")
        })
    };
    let (at, input, output) = (column("Timestamp")?, column("Request tokens")?, column("Response tokens")?);
    let model = match &set.model {
        Some(name) => Some((column("Model")?, name)),
        None => None,
    };
    let mut left_out = LeftOut::default();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| {
            let line = e.position().map_or(Place::Whole, |p| Place::Line(p.line()));
            file::wrong(path, line, e.to_string())
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() < headers.len() {
            left_out.add("too few columns", line);
            continue;
        }
        if model.as_ref().is_some_and(|(column, name)| &record[*column] != name.as_str()) {
            left_out.add("another model", line);
            continue;
        }
        let number = |column: usize| record[column].parse::<f64>().ok().filter(|n| n.is_finite());
        let (Some(at), Some(input), Some(output)) = (number(at), number(input), number(output)) else {
            left_out.add("not a number", line);
            continue;
        };
        if input < 0.0 || output < 0.0 || at < 0.0 {
            left_out.add("a negative number", line);
        } else if output < 1.0 {
            left_out.add("failed (no response tokens)", line);
        } else if input < 1.0 {
            left_out.add("no request tokens", line);
        } else if input > f64::from(u32::MAX) || output > f64::from(u32::MAX) {
            left_out.add("a length out of range", line);
        } else {
            rows.push(Row { line, at, input: input as u32, output: output as u32 });
        }
    }
    left_out.note(path, notes);
    if rows.is_empty() {
        let seen = left_out.reasons.iter().map(|r| format!("{} × {}", r.count, r.why)).collect::<Vec<_>>().join(", ");
        let problem = if seen.is_empty() { "no rows".into() } else { format!("no usable rows ({seen})") };
        return Err(file::wrong(path, Place::Whole, problem));
    }
    Ok(rows)
}

/// Rows left out, by reason, in the order in which the reasons came up.
#[derive(Default)]
pub(crate) struct LeftOut {
    reasons: Vec<Reason>,
}

struct Reason {
    why: &'static str,
    count: u64,
    first: u64,
}

impl LeftOut {
    pub(crate) fn add(&mut self, why: &'static str, row: u64) {
        match self.reasons.iter_mut().find(|reason| reason.why == why) {
            Some(reason) => reason.count += 1,
            None => self.reasons.push(Reason { why, count: 1, first: row }),
        }
    }

    pub(crate) fn note(&self, path: &Path, notes: &mut Vec<String>) {
        notes.extend(self.reasons.iter().map(|reason| {
            format!("{}: left out {} rows: {} (first: row {})", path.display(), reason.count, reason.why, reason.first)
        }));
    }
}
