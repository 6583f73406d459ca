//! The flags that choose and shape the requests' content, parsed and dumb.

use crate::units;
use clap::Args;
use std::path::PathBuf;

/// What the prompts are.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Data set")]
pub struct DataArgs {
    /// random, sharegpt, custom, prefix_repetition, burstgpt, or sample (a few conversations that come with the program)
    #[arg(long, default_value = "random")]
    pub dataset_name: String,
    /// The data set's file
    #[arg(long, value_name = "FILE")]
    pub dataset_path: Option<PathBuf>,
    /// Prompt length in tokens, for data sets that make their prompts
    #[arg(long, value_name = "TOKENS", value_parser = units::count32)]
    pub input_len: Option<u32>,
    /// Output length in tokens, for every data set but burstgpt
    #[arg(long, value_name = "TOKENS", value_parser = units::count32)]
    pub output_len: Option<u32>,
    /// Refuse prompts (with their output) longer than this
    #[arg(long, value_name = "TOKENS", value_parser = units::count32)]
    pub max_model_len: Option<u32>,
    /// Send prompts as token ids where the API takes them (completions)
    #[arg(long)]
    pub prompt_token_ids: bool,
    /// Don't repeat prompts when the data set has too few
    #[arg(long)]
    pub no_oversample: bool,
    /// Keep the data set's order
    #[arg(long)]
    pub disable_shuffle: bool,
    /// Draw and shuffle as this program does for the same seed
    #[arg(long, value_enum, default_value_t = SeedCompat::None)]
    pub seed_compat: SeedCompat,

    /// random: prompt length in tokens [default: 1024]
    #[arg(long, value_name = "TOKENS", value_parser = units::count32)]
    pub random_input_len: Option<u32>,
    /// random: output length in tokens [default: 128]
    #[arg(long, value_name = "TOKENS", value_parser = units::count32)]
    pub random_output_len: Option<u32>,
    /// random: lengths are uniform within this share of the length: a number in [0,1), or JSON {"input":…,"output":…}
    #[arg(long, value_name = "RATIO", default_value = "0.0")]
    pub random_range_ratio: String,
    /// random: tokens of a prefix all prompts share
    #[arg(long, value_name = "TOKENS", default_value = "0", value_parser = units::count32)]
    pub random_prefix_len: u32,

    /// sharegpt: output length instead of the recorded answer's
    #[arg(long, value_name = "TOKENS", value_parser = units::count32)]
    pub sharegpt_output_len: Option<u32>,

    /// custom: output length; -1 takes it from the file [default: 256]
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true)]
    pub custom_output_len: Option<i64>,
    /// custom, with chat: send the prompt as it is (it always is: templates are the server's)
    #[arg(long)]
    pub skip_chat_template: bool,

    /// prefix_repetition: tokens of each prefix
    #[arg(long, value_name = "TOKENS", default_value = "256", value_parser = units::count32)]
    pub prefix_repetition_prefix_len: u32,
    /// prefix_repetition: tokens after the prefix
    #[arg(long, value_name = "TOKENS", default_value = "256", value_parser = units::count32)]
    pub prefix_repetition_suffix_len: u32,
    /// prefix_repetition: number of prefixes
    #[arg(long, value_name = "N", default_value = "10", value_parser = units::count32)]
    pub prefix_repetition_num_prefixes: u32,
    /// prefix_repetition: output length in tokens [default: 128]
    #[arg(long, value_name = "TOKENS", value_parser = units::count32)]
    pub prefix_repetition_output_len: Option<u32>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedCompat {
    /// Our own generator.
    None,
    /// Python's generator, in vLLM's order of use.
    Vllm,
}
