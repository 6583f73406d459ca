//! The data set the flags ask for, and its prompts.

use super::args::ServeArgs;
use super::data_args::{DataArgs, SeedCompat};
use super::target::distance;
use crate::failure::{Failure, Outcome};
use std::path::PathBuf;
use tailbound_clock::Seed;
use tailbound_prompt as prompt;
use tailbound_prompt::{Counting, DataSet, PromptError, PromptSet};

const KNOWN: [&str; 11] = [
    "random",
    "sharegpt",
    "custom",
    "prefix_repetition",
    "burstgpt",
    "sample",
    "trace",
    "timed_trace",
    "mooncake",
    "azure",
    "record",
];

/// Which data set, with its own flags.
pub fn data_set(args: &DataArgs) -> Outcome<DataSet> {
    let length = |own: Option<u32>, default: u32| own.or(args.output_len).unwrap_or(default);
    Ok(match args.dataset_name.as_str() {
        "random" => DataSet::Random(prompt::Random {
            input_len: args.random_input_len.or(args.input_len).unwrap_or(1024),
            output_len: length(args.random_output_len, 128),
            range_ratio: args.random_range_ratio.parse().map_err(failure)?,
            prefix_len: args.random_prefix_len,
        }),
        "prefix_repetition" => DataSet::PrefixRepetition(prompt::PrefixRepetition {
            prefix_len: args.prefix_repetition_prefix_len,
            suffix_len: args.prefix_repetition_suffix_len,
            num_prefixes: args.prefix_repetition_num_prefixes,
            output_len: length(args.prefix_repetition_output_len, 128),
        }),
        "sharegpt" => DataSet::ShareGpt(prompt::ShareGpt {
            path: path(args)?,
            output_len: args.sharegpt_output_len.or(args.output_len),
        }),
        "sample" => DataSet::Sample(args.sharegpt_output_len.or(args.output_len)),
        "custom" => DataSet::Custom(prompt::Custom {
            output_len: args.custom_output_len.or(args.output_len.map(i64::from)).unwrap_or(256),
            ..prompt::Custom::new(path(args)?)
        }),
        "burstgpt" => {
            DataSet::BurstGpt(prompt::BurstGpt { path: path(args)?, model: Some("GPT-4".into()), times: false })
        }
        other => {
            let near = KNOWN.iter().min_by_key(|k| distance(k, other)).filter(|k| distance(k, other) <= 3);
            let failure = Failure::usage(format!("--dataset-name {other}: unknown data set"));
            return Err(match near {
                Some(near) => failure.hint(format!("did you mean {near}?")),
                None => failure.hint(format!("one of {}", KNOWN.join(", "))),
            });
        }
    })
}

/// Lengths that the data set states itself are not overridden; saying nothing would let it look as if they were.
pub fn tell_ignored(args: &ServeArgs, replayed: bool) {
    let args = &args.data;
    let name = args.dataset_name.as_str();
    if args.input_len.is_some() && name != "random" && !replayed {
        eprintln!("note: --input-len changes nothing: the data set {name} has prompt lengths of its own");
    }
    if args.output_len.is_some() && name == "burstgpt" && !replayed {
        eprintln!("note: --output-len changes nothing: the data set burstgpt states its output lengths");
    }
}

fn path(args: &DataArgs) -> Outcome<PathBuf> {
    args.dataset_path.clone().ok_or_else(|| {
        Failure::usage(format!("--dataset-name {} needs --dataset-path FILE", args.dataset_name)).hint(WITHOUT)
    })
}

const WITHOUT: &str = "without a file: --dataset-name random (synthetic), or --dataset-name sample (a few conversations that come with the program)";

/// The prompts, in the order in which they are sent.
pub fn prompts(args: &ServeArgs, set: &DataSet, count: Option<u32>, counting: Counting<'_>) -> Outcome<PromptSet> {
    let (seed, args) = (args.load.seed, &args.data);
    let options = prompt::Options {
        compat: match args.seed_compat {
            SeedCompat::Vllm => prompt::Compat::Vllm,
            SeedCompat::None => prompt::Compat::Own,
        },
        shuffle: !args.disable_shuffle,
        oversample: !args.no_oversample,
        form: if args.prompt_token_ids { prompt::Form::Ids } else { prompt::Form::Text },
        max_model_len: args.max_model_len,
        ..prompt::Options::new(count, Seed(seed), counting)
    };
    prompt::build(set, &options).map_err(|e| {
        // A made data set has no file and no row: what doesn't fit is what the flags ask for.
        if let (PromptError::File { problem, .. }, None, Some(limit)) = (&e, &args.dataset_path, args.max_model_len) {
            return Failure::usage(format!("--max-model-len {limit}: {problem}"))
                .hint("shorten the prompts or the outputs");
        }
        let sharegpt = e.is_missing_file() && args.dataset_name == "sharegpt";
        let failure = failure(e).during("preparing the prompts");
        if sharegpt { failure.hint(SHAREGPT) } else { failure }
    })
}

const SHAREGPT: &str = "ShareGPT_V3_unfiltered_cleaned_split.json is in the data set anon8231489123/ShareGPT_Vicuna_unfiltered on the Hugging Face hub; \
                        or go on without it: --dataset-name random, or --dataset-name sample";

fn failure(error: PromptError) -> Failure {
    match error {
        PromptError::Flag { flag, problem, hint } => {
            let failure = Failure::usage(format!("{flag}: {problem}"));
            if hint.is_empty() { failure } else { failure.hint(hint) }
        }
        PromptError::File { hint, path, place, problem, .. } => {
            let failure = Failure::new(format!("failed to read {}{place}: {problem}", path.display()));
            if hint.is_empty() { failure } else { failure.hint(hint) }
        }
        other => Failure::new(format!("failed to {other}")),
    }
}
