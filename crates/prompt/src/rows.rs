use crate::make::{Lead, Maker, Wanted};
use crate::{Body, Form, Options, Place, Prompt, PromptError, file};
use std::path::PathBuf;
use std::sync::Arc;

/// The requests of a trace: what each asked, as far as the trace tells. What it doesn't tell is made up, at the lengths it states.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Where they come from, for messages.
    pub path: PathBuf,
    /// The requests, in the order in which they are sent.
    pub asked: Vec<Asked>,
    /// Tokens per block of [`Content::Blocks`]; at least 1.
    pub block_tokens: u32,
    /// Output length of rows that state none (`--output-len`).
    pub output_len: Option<u32>,
}

/// One request of a trace.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What it says.
    pub content: Content,
    /// Output tokens to ask for.
    pub output_tokens: Option<u32>,
    /// The recorded answer: its length is asked for where no number says otherwise.
    pub answer: Option<Arc<str>>,
    /// Its place in the trace, from 1.
    pub row: u64,
}

/// What a request of a trace says.
#[derive(Clone, Debug)]
pub enum Content {
    /// So many tokens, special tokens included; nothing else is known.
    Length(u32),
    /// So many tokens, of which the leading blocks are shared with every other prompt that has the same ids there.
    Blocks {
        /// Tokens of the whole prompt, special tokens included.
        tokens: u32,
        /// Equal ids: equal content. What they don't cover is the prompt's own.
        ids: Box<[u64]>,
    },
    /// A text.
    Text(Arc<str>),
    /// Chat messages, a JSON array.
    Messages(Arc<serde_json::Value>),
}

/// In blocks this short, two of different ids may well come out alike.
const TELLING: u32 = 8;

pub(crate) fn build(set: &Rows, options: &Options<'_>, notes: &mut Vec<String>) -> Result<Vec<Prompt>, PromptError> {
    let wanted = options.count.map_or(set.asked.len(), |n| (n as usize).min(set.asked.len()));
    let asked = &set.asked[..wanted];
    let outputs = outputs(set, asked, options, notes)?;
    let mut prompts = synthetic(set, asked, options, notes)?;
    let texts: Vec<&str> = asked.iter().filter_map(|a| text(&a.content)).collect();
    let mut counts = options.counting.count(&texts, true, options.threads)?.into_iter();
    if !texts.is_empty() && !options.counting.knows() {
        notes.push("prompt lengths are unknown here: without a tokenizer only the server counts them".into());
    }
    for ((place, asked), output_tokens) in prompts.iter_mut().zip(asked).zip(outputs) {
        let (body, tokens) = match (&asked.content, place.take()) {
            (Content::Text(text), _) => {
                let tokens = counts.next().filter(|_| options.counting.knows());
                (literal(text, options)?, tokens)
            }
            (Content::Messages(list), _) => (Body::Messages(list.clone()), None),
            (_, Some(made)) => (made.body, made.prompt_tokens),
            (_, None) => return Err(lacking(set, asked.row, "no prompt")),
        };
        *place = Some(Prompt { body, prompt_tokens: tokens, output_tokens, at: None, row: Some(asked.row) });
    }
    Ok(prompts.into_iter().flatten().collect())
}

fn text(content: &Content) -> Option<&str> {
    match content {
        Content::Text(text) => Some(text),
        _ => None,
    }
}

fn literal(text: &Arc<str>, options: &Options<'_>) -> Result<Body, PromptError> {
    match (options.form, options.counting.tokenizer()) {
        (Form::Text, _) => Ok(Body::Text(text.clone())),
        (Form::Ids, Some(tokenizer)) => Ok(Body::Ids(tokenizer.encode(text, true)?.into())),
        (Form::Ids, None) => Err(Options::ids_need_tokenizer()),
    }
}

/// The prompts that have to be made up, each in its place.
fn synthetic(
    set: &Rows,
    asked: &[Asked],
    options: &Options<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Option<Prompt>>, PromptError> {
    let mut prompts: Vec<Option<Prompt>> = vec![None; asked.len()];
    let made_up = |a: &Asked| matches!(a.content, Content::Length(_) | Content::Blocks { .. });
    let places: Vec<usize> = (0..asked.len()).filter(|&i| made_up(&asked[i])).collect();
    if places.is_empty() {
        return Ok(prompts);
    }
    let maker = Maker::new(options)?;
    let each = set.block_tokens.max(1);
    let own = |tokens: u32| tokens.saturating_sub(maker.specials).max(1);
    let wanted: Vec<Wanted<'_>> = places
        .iter()
        .map(|&i| match &asked[i].content {
            Content::Blocks { tokens, ids } => Wanted { lead: Lead::Blocks { ids, each }, tokens: own(*tokens) },
            Content::Length(tokens) => Wanted { lead: Lead::Nothing, tokens: own(*tokens) },
            Content::Text(_) | Content::Messages(_) => Wanted { lead: Lead::Nothing, tokens: 1 },
        })
        .collect();
    if each < TELLING && wanted.iter().any(|w| matches!(w.lead, Lead::Blocks { .. })) {
        notes.push(format!("blocks of {each} tokens are so short that different ones may come out alike"));
    }
    let made = maker.make(&[], &wanted, notes)?;
    for (i, made) in places.into_iter().zip(made) {
        let prompt_tokens = made.tokens.map(|n| n + maker.specials);
        let row = Some(asked[i].row);
        prompts[i] = Some(Prompt { body: made.body, prompt_tokens, output_tokens: 1, at: None, row });
    }
    Ok(prompts)
}

/// What each row asks for: the length it states, else its recorded answer's, else the flag's.
fn outputs(
    set: &Rows,
    asked: &[Asked],
    options: &Options<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<u32>, PromptError> {
    let unstated = |a: &&Asked| a.output_tokens.is_none();
    let answers: Vec<&str> = asked.iter().filter(unstated).filter_map(|a| a.answer.as_deref()).collect();
    let mut counts = options.counting.count(&answers, false, options.threads)?.into_iter();
    if !answers.is_empty() && !options.counting.knows() {
        notes.push("output lengths are estimates of four characters a token, since there is no tokenizer".into());
    }
    let mut empty = 0;
    let lengths = asked.iter().map(|a| {
        let length = match (a.output_tokens, &a.answer) {
            (Some(n), _) => Some(n),
            (None, Some(_)) => counts.next(),
            (None, None) => set.output_len,
        };
        let length = length.ok_or_else(|| lacking(set, a.row, "no output length").hint("give --output-len"))?;
        empty += u32::from(length == 0);
        Ok(length.max(1))
    });
    let lengths = lengths.collect::<Result<Vec<u32>, PromptError>>()?;
    if empty > 0 {
        notes.push(format!("{empty} rows state an output of 0 tokens; one token is asked for"));
    }
    Ok(lengths)
}

fn lacking(set: &Rows, row: u64, what: &str) -> PromptError {
    file::wrong(&set.path, Place::Entry(row), what)
}
