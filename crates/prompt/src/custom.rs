use crate::{Body, Form, Options, Place, Prompt, PromptError, file, order};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The data set `custom`: JSON lines with `prompt` and, by choice, `output_tokens`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Custom {
    /// `--dataset-path`.
    pub path: PathBuf,
    /// `--custom-output-len`; −1 takes each row's `output_tokens`.
    pub output_len: i64,
}

impl Custom {
    /// With the flag's default of 256 output tokens.
    pub fn new(path: impl Into<PathBuf>) -> Custom {
        Custom { path: path.into(), output_len: 256 }
    }
}

struct Row {
    line: u64,
    body: Body,
    output_tokens: u32,
}

pub(crate) fn build(set: &Custom, options: &Options<'_>, notes: &mut Vec<String>) -> Result<Vec<Prompt>, PromptError> {
    if set.output_len == 0 || set.output_len < -1 || set.output_len > i64::from(u32::MAX) {
        let problem = format!("{}: must be at least 1, or -1", set.output_len);
        return Err(PromptError::flag("--custom-output-len", problem, "-1 takes each row's output_tokens"));
    }
    let mut rows = read(set)?;
    if options.shuffle {
        order::shuffle(&mut rows, options.seed, options.compat);
    }
    if let Some(count) = options.count {
        rows.truncate(count as usize);
    }
    let counts = count(&rows, options)?;
    if !options.counting.knows() {
        notes.push("prompt lengths are unknown here: without a tokenizer only the server counts them".into());
    }
    rows.into_iter().zip(counts).map(|(row, prompt_tokens)| finish(row, prompt_tokens, options)).collect()
}

fn finish(row: Row, prompt_tokens: Option<u32>, options: &Options<'_>) -> Result<Prompt, PromptError> {
    let body = match (row.body, options.form) {
        (Body::Text(text), Form::Ids) => {
            let Some(tokenizer) = options.counting.tokenizer() else { return Err(Options::ids_need_tokenizer()) };
            Body::Ids(tokenizer.encode(&text, true)?.into())
        }
        (body, _) => body,
    };
    Ok(Prompt { body, prompt_tokens, output_tokens: row.output_tokens, at: None, row: Some(row.line) })
}

/// The tokens of every text and id prompt; of messages only the server knows (its chat template counts).
fn count(rows: &[Row], options: &Options<'_>) -> Result<Vec<Option<u32>>, PromptError> {
    let mut counts: Vec<Option<u32>> = rows
        .iter()
        .map(|row| match &row.body {
            Body::Ids(ids) => Some(ids.len() as u32),
            Body::Text(_) | Body::Messages(_) => None,
        })
        .collect();
    if options.counting.knows() {
        let texts: Vec<(usize, &str)> = rows
            .iter()
            .enumerate()
            .filter_map(|(i, row)| match &row.body {
                Body::Text(text) => Some((i, &**text)),
                Body::Ids(_) | Body::Messages(_) => None,
            })
            .collect();
        let only: Vec<&str> = texts.iter().map(|(_, text)| *text).collect();
        for ((i, _), n) in texts.iter().zip(options.counting.count(&only, true, options.threads)?) {
            counts[*i] = Some(n);
        }
    }
    Ok(counts)
}

fn read(set: &Custom) -> Result<Vec<Row>, PromptError> {
    let path: &Path = &set.path;
    let text = file::text(path)?;
    let mut rows = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() {
            continue;
        }
        let row: Value = serde_json::from_str(text).map_err(|e| {
            file::wrong(path, Place::Line(line), format!("not JSON ({e})"))
                .hint("a custom data set has one JSON object per line")
        })?;
        let wrong = |problem: String| file::wrong(path, Place::Line(line), problem);
        let body = body(&row).map_err(wrong)?;
        let output_tokens = match set.output_len {
            -1 => output_tokens(&row).map_err(|problem| wrong(problem).hint("or give --custom-output-len"))?,
            n => n as u32,
        };
        rows.push(Row { line, body, output_tokens });
    }
    if rows.is_empty() {
        return Err(file::wrong(path, Place::Whole, "no prompts"));
    }
    Ok(rows)
}

/// `prompt`: a text, token ids, or messages; or `messages`.
fn body(row: &Value) -> Result<Body, String> {
    let Some(object) = row.as_object() else { return Err("not a JSON object".into()) };
    let Some(prompt) = object.get("prompt").or_else(|| object.get("messages")) else {
        return Err("no field \"prompt\"".into());
    };
    match prompt {
        Value::String(text) if text.is_empty() => Err("an empty prompt".into()),
        Value::String(text) => Ok(Body::Text(text.as_str().into())),
        Value::Array(items) if items.is_empty() => Err("an empty prompt".into()),
        Value::Array(items) if items.iter().all(|m| m.get("role").is_some_and(Value::is_string)) => {
            Ok(Body::Messages(prompt.clone().into()))
        }
        Value::Array(items) => {
            let ids: Option<Vec<u32>> =
                items.iter().map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok())).collect();
            let ids = ids.ok_or("\"prompt\" is neither a list of token ids nor of messages with a role")?;
            Ok(Body::Ids(ids.into()))
        }
        _ => Err("\"prompt\" is neither a text nor a list of token ids or messages".into()),
    }
}

fn output_tokens(row: &Value) -> Result<u32, String> {
    let Some(value) = row.get("output_tokens") else {
        return Err("no field \"output_tokens\", which --custom-output-len -1 asks for".into());
    };
    let number = match value {
        Value::Number(n) => n.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    match number {
        Some(n) if n.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&n) => Ok(n as u32),
        _ => Err(format!("\"output_tokens\" is {value}, not a whole number of at least 1")),
    }
}
