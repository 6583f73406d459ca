use crate::{BurstGpt, Counting, Custom, Drawn, PrefixRepetition, Random, Rows, ShareGpt};
use std::sync::Arc;
use tailbound_clock::{Dur, Seed};

/// Which data set, with its own flags.
#[derive(Clone, Debug)]
pub enum DataSet {
    /// `random`: synthetic prompts of asked lengths.
    Random(Random),
    /// `prefix_repetition`: groups of synthetic prompts that share a prefix.
    PrefixRepetition(PrefixRepetition),
    /// `sharegpt`: the first turn of real conversations.
    ShareGpt(ShareGpt),
    /// `sample`: a few short conversations that come with the program; the value is `--sharegpt-output-len`.
    Sample(Option<u32>),
    /// `custom`: JSON lines.
    Custom(Custom),
    /// Synthetic prompts of lengths drawn from laws.
    Drawn(Drawn),
    /// A trace's requests, with what it tells of them.
    Rows(Rows),
    /// `burstgpt`: lengths (and times, if asked) of a BurstGPT trace, synthetic text.
    BurstGpt(BurstGpt),
}

/// What every data set needs to know.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// How many prompts; `None`: as many as the data set has (only those read from files).
    pub count: Option<u32>,
    /// The run's seed.
    pub seed: Seed,
    /// `--seed-compat`: whose random order.
    pub compat: Compat,
    /// Shuffle what was read (`--disable-shuffle` turns it off).
    pub shuffle: bool,
    /// Repeat prompts to reach `count` (`--no-oversample` turns it off).
    pub oversample: bool,
    /// Text or token ids (`--prompt-token-ids`).
    pub form: Form,
    /// The model's context length; prompts that don't fit with their output are dealt with by `too_long`.
    pub max_model_len: Option<u32>,
    /// What happens to a prompt that doesn't fit.
    pub too_long: TooLong,
    /// Threads to prepare with; at least 1.
    pub threads: usize,
    /// Who counts tokens.
    pub counting: Counting<'a>,
}

impl<'a> Options<'a> {
    /// `count` prompts of the given seed, everything else as the flags' defaults.
    pub fn new(count: Option<u32>, seed: Seed, counting: Counting<'a>) -> Options<'a> {
        Options {
            count,
            seed,
            compat: Compat::Own,
            shuffle: true,
            oversample: true,
            form: Form::Text,
            max_model_len: None,
            too_long: TooLong::Refuse,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            counting,
        }
    }
}

/// Whose order `--seed` gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// Ours.
    #[default]
    Own,
    /// That of vLLM's Python client for the same seed: its shuffle and its repetitions, where a data set is read from a file.
    Vllm,
}

/// How a prompt is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As text.
    #[default]
    Text,
    /// As token ids, for APIs that take them: the server adds nothing, and can't count differently.
    Ids,
}

/// What happens to a prompt that doesn't fit the model's context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TooLong {
    /// An error that names its row.
    #[default]
    Refuse,
    /// It is left out, and the number left out is noted.
    Drop,
}

/// What a request says.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A text.
    Text(Arc<str>),
    /// Token ids.
    Ids(Arc<[u32]>),
    /// A chat: the JSON array of OpenAI messages.
    Messages(Arc<serde_json::Value>),
}

/// One prompt, ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// What it says. Prompts that were repeated share it.
    pub body: Body,
    /// Tokens as the server will count them in a completions request, special tokens included. A chat template adds its own on top. `None`: unknown.
    pub prompt_tokens: Option<u32>,
    /// Output tokens to ask for, at least 1.
    pub output_tokens: u32,
    /// When it arrived in the trace, from the first arrival; `None` if the data set has no times, or they aren't wanted.
    pub at: Option<Dur>,
    /// Its row (from 1) in the file: the entry of a JSON array, else the line. `None` if it comes from no file.
    pub row: Option<u64>,
}

/// Prompts, in the order in which they are sent, and what the user should know about them.
#[derive(Clone, Debug, Default)]
pub struct PromptSet {
    /// The prompts: never empty; fewer than asked for only with `--no-oversample` or when some were dropped.
    pub prompts: Vec<Prompt>,
    /// What the user should know, one sentence each: estimates, rows left out and why, repetitions.
    pub notes: Vec<String>,
}
