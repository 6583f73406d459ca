use crate::{DataSet, Options, Place, Prompt, PromptError, PromptSet, TooLong};
use crate::{burstgpt, custom, drawn, order, prefix_repetition, random, rows, sharegpt};
use std::path::{Path, PathBuf};

/// Prepares the prompts of a data set.
///
/// # Errors
/// With the file and row, or the flag, at fault.
pub fn build(set: &DataSet, options: &Options<'_>) -> Result<PromptSet, PromptError> {
    let mut notes = Vec::new();
    let prompts = match set {
        DataSet::Random(set) => {
            fitting(random::build(set, options, &mut notes)?, Path::new("random"), options, &mut notes)?
        }
        DataSet::PrefixRepetition(set) => fitting(
            prefix_repetition::build(set, options, &mut notes)?,
            Path::new("prefix_repetition"),
            options,
            &mut notes,
        )?,
        DataSet::ShareGpt(set) => sharegpt::build(set, options, &mut notes)?,
        DataSet::Sample(output_len) => sharegpt::sample(*output_len, options, &mut notes)?,
        DataSet::Custom(set) => fitting(custom::build(set, options, &mut notes)?, &set.path, options, &mut notes)?,
        DataSet::Drawn(set) => {
            fitting(drawn::build(set, options, &mut notes)?, Path::new("preset"), options, &mut notes)?
        }
        DataSet::Rows(set) => fitting(rows::build(set, options, &mut notes)?, &set.path, options, &mut notes)?,
        DataSet::BurstGpt(set) => fitting(burstgpt::build(set, options, &mut notes)?, &set.path, options, &mut notes)?,
    };
    let prompts = match set {
        DataSet::ShareGpt(_) | DataSet::Sample(_) | DataSet::Custom(_) => oversample(prompts, options, &mut notes),
        DataSet::Random(_)
        | DataSet::PrefixRepetition(_)
        | DataSet::Drawn(_)
        | DataSet::Rows(_)
        | DataSet::BurstGpt(_) => prompts,
    };
    Ok(PromptSet { prompts, notes })
}

impl Options<'_> {
    /// The number of prompts, for data sets that have no number of their own.
    pub(crate) fn wanted(&self, flag: &'static str) -> Result<u32, PromptError> {
        match self.count {
            Some(0) => Err(PromptError::flag(flag, "0: must be at least 1", "")),
            Some(n) => Ok(n),
            None => Err(PromptError::flag(flag, "missing: a synthetic data set has no end", "say how many prompts")),
        }
    }

    pub(crate) fn ids_need_tokenizer() -> PromptError {
        PromptError::flag(
            "--prompt-token-ids",
            "token ids need the model's tokenizer",
            "give --tokenizer a tokenizer.json",
        )
    }
}

/// Drops or refuses prompts the model has no room for.
fn fitting(
    prompts: Vec<Prompt>,
    path: &Path,
    options: &Options<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Prompt>, PromptError> {
    if options.max_model_len.is_none() {
        return Ok(prompts);
    }
    let mut fit = Fit::new(options);
    let mut kept = Vec::with_capacity(prompts.len());
    for (number, prompt) in (1..).zip(prompts) {
        let place = prompt.row.map_or(Place::Entry(number), Place::Line);
        if fit.takes(&prompt, || (path, place))? {
            kept.push(prompt);
        }
    }
    fit.note(notes);
    if kept.is_empty() {
        return Err(PromptError::flag("--max-model-len", "no prompt fits", "give shorter prompts or outputs"));
    }
    Ok(kept)
}

/// Repeats prompts at random until there are as many as asked for.
fn oversample(mut prompts: Vec<Prompt>, options: &Options<'_>, notes: &mut Vec<String>) -> Vec<Prompt> {
    let (have, want) = (prompts.len(), options.count.map_or(0, |n| n as usize));
    if have >= want {
        return prompts;
    }
    if !options.oversample {
        notes.push(format!("the data set has only {have} of the {want} prompts asked for; none is repeated"));
        return prompts;
    }
    notes.push(format!("the data set has {have} prompts; {} were repeated at random to reach {want}", want - have));
    let repeated = order::repeats(have, want - have, options.seed, options.compat);
    prompts.extend(repeated.into_iter().map(|i| prompts[i].clone()).collect::<Vec<_>>());
    prompts
}

/// Whether prompts fit the model's context.
pub(crate) struct Fit {
    limit: Option<u32>,
    policy: TooLong,
    dropped: u64,
    first: Option<(PathBuf, Place)>,
}

impl Fit {
    pub(crate) fn new(options: &Options<'_>) -> Fit {
        Fit { limit: options.max_model_len, policy: options.too_long, dropped: 0, first: None }
    }

    /// Whether to keep the prompt; an error if it doesn't fit and is to be refused. Prompts of unknown length are kept.
    pub(crate) fn takes<'p>(
        &mut self,
        prompt: &Prompt,
        place: impl FnOnce() -> (&'p Path, Place),
    ) -> Result<bool, PromptError> {
        let (Some(limit), Some(tokens)) = (self.limit, prompt.prompt_tokens) else { return Ok(true) };
        let output = prompt.output_tokens;
        if u64::from(tokens) + u64::from(output) <= u64::from(limit) {
            return Ok(true);
        }
        let (path, place) = place();
        if self.policy == TooLong::Refuse {
            return Err(PromptError::File {
                path: path.to_owned(),
                place,
                problem: format!(
                    "a prompt of {tokens} tokens and {output} output tokens don't fit the model's {limit}"
                ),
                hint: "shorten it, ask for fewer output tokens, or drop such prompts".into(),
                missing: false,
            });
        }
        self.dropped += 1;
        self.first.get_or_insert_with(|| (path.to_owned(), place));
        Ok(false)
    }

    pub(crate) fn note(&self, notes: &mut Vec<String>) {
        if let Some((path, place)) = &self.first {
            let limit = self.limit.unwrap_or(0);
            notes.push(format!(
                "left out {} prompts that don't fit the model's {limit} tokens with their output (first: {}{place})",
                self.dropped,
                path.display()
            ));
        }
    }
}
