use crate::build::Fit;
use crate::burstgpt::LeftOut;
use crate::{Body, Form, Options, Place, Prompt, PromptError, file, order};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};

/// The data set `sharegpt`: the first turn of each conversation is the prompt, the length of the second is the output length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGpt {
    /// `--dataset-path`: a JSON array (or JSON lines) of `{"conversations": [{"from", "value"}, …]}`.
    pub path: PathBuf,
    /// `--sharegpt-output-len`: this many output tokens instead of the second turn's length.
    pub output_len: Option<u32>,
}

/// A few conversations written for this program, in the same format.
const SAMPLE: &str = include_str!("../data/conversations.json");

/// vLLM's pruning: shorter prompts or outputs, longer prompts, longer sums are left out.
const MIN_LEN: u32 = 4;
const MAX_PROMPT_LEN: u32 = 1024;
const MAX_TOTAL_LEN: u32 = 2048;

/// A conversation not looked into yet.
#[derive(Clone, Copy)]
struct Entry<'a> {
    number: u64,
    turns: &'a RawValue,
    media: bool,
}

/// Its first two turns.
struct Pair {
    number: u64,
    prompt: String,
    answer: String,
    human: bool,
}

#[derive(Deserialize)]
struct RawEntry<'a> {
    #[serde(borrow)]
    conversations: Option<&'a RawValue>,
    image: Option<IgnoredAny>,
    video: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Turn {
    from: Option<serde_json::Value>,
    value: String,
}

pub(crate) fn build(
    set: &ShareGpt,
    options: &Options<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Prompt>, PromptError> {
    let text = file::text(&set.path)?;
    select(&text, &set.path, set.output_len, options, notes)
}

pub(crate) fn sample(
    output_len: Option<u32>,
    options: &Options<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Prompt>, PromptError> {
    select(SAMPLE, Path::new("the bundled sample"), output_len, options, notes)
}

fn select(
    text: &str,
    path: &Path,
    output_len: Option<u32>,
    options: &Options<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Prompt>, PromptError> {
    if output_len == Some(0) {
        return Err(PromptError::flag("--sharegpt-output-len", "0: must be at least 1", ""));
    }
    let mut left_out = LeftOut::default();
    let mut entries = entries(text, path, &mut left_out)?;
    if options.shuffle {
        order::shuffle(&mut entries, options.seed, options.compat);
    }
    let mut chosen = Chosen { prompts: Vec::new(), pruned: 0, not_human: 0, fit: Fit::new(options) };
    let limit = options.count.map_or(usize::MAX, |n| n as usize);
    let mut rest = entries.as_slice();
    while chosen.prompts.len() < limit && !rest.is_empty() {
        // A little more than is still missing, since some will be pruned.
        let missing = limit - chosen.prompts.len();
        let (batch, after) = rest.split_at(missing.saturating_add(missing / 4).clamp(64, 4096).min(rest.len()));
        rest = after;
        choose(batch, path, output_len, options, limit, &mut left_out, &mut chosen)?;
    }
    left_out.note(path, notes);
    chosen.note(path, &entries, options, notes);
    if chosen.prompts.is_empty() {
        let problem = format!("no usable conversation among {} with two turns", entries.len());
        let hint = format!(
            "kept are prompts of {MIN_LEN} to {MAX_PROMPT_LEN} tokens with answers of at least {MIN_LEN}, together at most {MAX_TOTAL_LEN}"
        );
        return Err(file::wrong(path, Place::Whole, problem).hint(hint));
    }
    Ok(chosen.prompts)
}

struct Chosen {
    prompts: Vec<Prompt>,
    pruned: u64,
    not_human: u64,
    fit: Fit,
}

impl Chosen {
    fn note(&self, path: &Path, entries: &[Entry<'_>], options: &Options<'_>, notes: &mut Vec<String>) {
        let path = path.display();
        if self.pruned > 0 {
            notes.push(format!("{path}: {} conversations pruned by vLLM's length limits", self.pruned));
        }
        if self.not_human > 0 {
            let all = self.prompts.len();
            notes.push(format!(
                "{path}: in {} of {all} prompts the first turn is not a person's; it is sent all the same, as vLLM does",
                self.not_human
            ));
        }
        let media = entries.iter().filter(|entry| entry.media).count();
        if media > 0 {
            notes.push(format!("{path}: {media} conversations have an image or a video; only their text is sent"));
        }
        if !options.counting.knows() {
            notes.push("lengths are estimates of four characters a token, since there is no tokenizer; the server counts the prompts".into());
        }
        self.fit.note(notes);
    }
}

/// Every conversation with at least two turns, in the file's order.
fn entries<'a>(text: &'a str, path: &Path, left_out: &mut LeftOut) -> Result<Vec<Entry<'a>>, PromptError> {
    let raw: Vec<&RawValue> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text)
            .map_err(|e| file::wrong(path, Place::Line(e.line() as u64), format!("not JSON ({e})")))?
    } else {
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(n, line)| {
                serde_json::from_str(line).map_err(|e| file::wrong(path, Place::Line(n), format!("not JSON ({e})")))
            })
            .collect::<Result<_, _>>()?
    };
    if raw.is_empty() {
        return Err(file::wrong(path, Place::Whole, "no conversations"));
    }
    let mut entries = Vec::with_capacity(raw.len());
    for (number, raw) in (1..).zip(raw) {
        let entry: RawEntry<'a> = serde_json::from_str(raw.get())
            .map_err(|_| file::wrong(path, Place::Entry(number), "not a JSON object"))?;
        let media = entry.image.is_some() || entry.video.is_some();
        let Some(turns) = entry.conversations else {
            left_out.add("no conversations", number);
            continue;
        };
        match serde_json::from_str::<Vec<IgnoredAny>>(turns.get()) {
            Ok(all) if all.len() >= 2 => entries.push(Entry { number, turns, media }),
            Ok(_) => left_out.add("fewer than two turns", number),
            Err(_) => left_out.add("conversations is not a list", number),
        }
    }
    Ok(entries)
}

/// Appends to `chosen` what of the batch vLLM's rules keep.
fn choose(
    batch: &[Entry<'_>],
    path: &Path,
    output_len: Option<u32>,
    options: &Options<'_>,
    limit: usize,
    left_out: &mut LeftOut,
    chosen: &mut Chosen,
) -> Result<(), PromptError> {
    let pairs: Vec<Option<Pair>> = batch.iter().map(pair).collect();
    let known: Vec<&Pair> = pairs.iter().flatten().collect();
    let prompts: Vec<&str> = known.iter().map(|pair| pair.prompt.as_str()).collect();
    let prompt_lens = options.counting.count(&prompts, true, options.threads)?;
    let output_lens = match output_len {
        Some(n) => vec![n; known.len()],
        None => {
            let answers: Vec<&str> = known.iter().map(|pair| pair.answer.as_str()).collect();
            options.counting.count(&answers, true, options.threads)?
        }
    };
    let mut lens = prompt_lens.into_iter().zip(output_lens);
    for (entry, pair) in batch.iter().zip(&pairs) {
        if chosen.prompts.len() == limit {
            return Ok(());
        }
        let Some(pair) = pair else {
            left_out.add("a turn without text", entry.number);
            continue;
        };
        let (prompt_len, output_len_here) = lens.next().unwrap_or_default();
        if !keeps(prompt_len, output_len_here, output_len.is_some()) {
            chosen.pruned += 1;
            continue;
        }
        let prompt = Prompt {
            body: body(&pair.prompt, options)?,
            prompt_tokens: options.counting.knows().then_some(prompt_len),
            output_tokens: output_len_here.max(1),
            at: None,
            row: Some(pair.number),
        };
        if chosen.fit.takes(&prompt, || (path, Place::Entry(pair.number)))? {
            chosen.not_human += u64::from(!pair.human);
            chosen.prompts.push(prompt);
        }
    }
    Ok(())
}

fn keeps(prompt_len: u32, output_len: u32, output_len_given: bool) -> bool {
    prompt_len >= MIN_LEN
        && (output_len_given || output_len >= MIN_LEN)
        && prompt_len <= MAX_PROMPT_LEN
        && u64::from(prompt_len) + u64::from(output_len) <= u64::from(MAX_TOTAL_LEN)
}

fn pair(entry: &Entry<'_>) -> Option<Pair> {
    let turns: Vec<&RawValue> = serde_json::from_str(entry.turns.get()).ok()?;
    let turn = |i: usize| serde_json::from_str::<Turn>(turns.get(i)?.get()).ok();
    let (first, second) = (turn(0)?, turn(1)?);
    let human = matches!(first.from.as_ref().and_then(serde_json::Value::as_str), None | Some("human" | "user"));
    Some(Pair { number: entry.number, prompt: first.value, answer: second.value, human })
}

fn body(text: &str, options: &Options<'_>) -> Result<Body, PromptError> {
    match options.form {
        Form::Text => Ok(Body::Text(text.into())),
        Form::Ids => match options.counting.tokenizer() {
            Some(tokenizer) => Ok(Body::Ids(tokenizer.encode(text, true)?.into())),
            None => Err(Options::ids_need_tokenizer()),
        },
    }
}
