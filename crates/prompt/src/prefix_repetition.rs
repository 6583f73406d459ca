use crate::make::{Lead, Maker, Wanted};
use crate::{Options, Prompt, PromptError};

/// The data set `prefix_repetition`: groups of prompts that share a prefix and differ in their suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixRepetition {
    /// `--prefix-repetition-prefix-len`, in tokens.
    pub prefix_len: u32,
    /// `--prefix-repetition-suffix-len`, in tokens.
    pub suffix_len: u32,
    /// `--prefix-repetition-num-prefixes`.
    pub num_prefixes: u32,
    /// `--prefix-repetition-output-len`, in tokens.
    pub output_len: u32,
}

impl Default for PrefixRepetition {
    fn default() -> PrefixRepetition {
        PrefixRepetition { prefix_len: 256, suffix_len: 256, num_prefixes: 10, output_len: 128 }
    }
}

/// Exactly as many prompts as asked: where the number of prefixes doesn't divide it, the first groups have one more.
pub(crate) fn build(
    set: &PrefixRepetition,
    options: &Options<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Prompt>, PromptError> {
    let count = options.wanted("--num-prompts")?;
    let at_least_one = |flag: &'static str| PromptError::flag(flag, "0: must be at least 1", "");
    if set.num_prefixes == 0 {
        return Err(at_least_one("--prefix-repetition-num-prefixes"));
    }
    if set.output_len == 0 {
        return Err(at_least_one("--prefix-repetition-output-len"));
    }
    if set.prefix_len == 0 && set.suffix_len == 0 {
        return Err(at_least_one("--prefix-repetition-suffix-len"));
    }
    if count < set.num_prefixes {
        return Err(PromptError::flag(
            "--prefix-repetition-num-prefixes",
            format!("{} prefixes for {count} prompts", set.num_prefixes),
            "give at least as many --num-prompts as prefixes",
        ));
    }
    let maker = Maker::new(options)?;
    let groups = set.num_prefixes;
    let prefixes = vec![set.prefix_len; groups as usize];
    let mut wanted: Vec<Wanted<'_>> = (0..groups)
        .flat_map(|group| {
            let size = count / groups + u32::from(group < count % groups);
            (0..size).map(move |_| Wanted { lead: Lead::Prefix(group as usize), tokens: set.suffix_len })
        })
        .collect();
    if options.shuffle {
        options.seed.stream("prompt order").shuffle(&mut wanted);
    }
    let made = maker.make(&prefixes, &wanted, notes)?;
    let prompts = made.into_iter().map(|made| Prompt {
        body: made.body,
        prompt_tokens: made.tokens.map(|n| n + maker.specials),
        output_tokens: set.output_len,
        at: None,
        row: None,
    });
    Ok(prompts.collect())
}
