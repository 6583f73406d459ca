//! Flags of `vllm bench serve` that are known here and not supported yet: each is refused by name, none is ignored.

use super::args::ServeArgs;
use crate::failure::{Failure, Outcome};
use clap::Args;

macro_rules! refused {
    ($($field:ident $flag:literal: $why:literal;)*) => {
        /// Known flags that are refused.
        #[derive(Args, Debug, Clone, Default)]
        pub struct RefusedArgs {
            $(#[arg(long = $flag, num_args = 0.., hide = true, allow_hyphen_values = false)]
            $field: Option<Vec<String>>,)*
        }

        /// `(flag, why it is refused)`.
        #[cfg(test)]
        pub const REFUSED: &[(&str, &str)] = &[$(($flag, $why)),*];

        impl RefusedArgs {
            fn given(&self) -> Vec<(&'static str, &'static str)> {
                let mut given = Vec::new();
                $(if self.$field.is_some() { given.push(($flag, $why)); })*
                given
            }
        }
    };
}

refused! {
    use_beam_search "use-beam-search": "vLLM parses it and does nothing with it";
    chat_template_kwargs "chat-template-kwargs": "chat templates are rendered by the server; put it into --extra-body '{\"chat_template_kwargs\":{…}}'";
    plot_timeline "plot-timeline": "plots are not supported yet; --save-detailed has the figures";
    timeline_itl_thresholds "timeline-itl-thresholds": "plots are not supported yet";
    plot_dataset_stats "plot-dataset-stats": "plots are not supported yet";
    enable_multimodal_chat "enable-multimodal-chat": "multimodal requests are not supported yet";
    random_batch_size "random-batch-size": "it belongs to embeddings, which are not supported yet";
    no_reranker "no-reranker": "reranking is not supported yet";
    custom_ensure_client_side_data "custom-ensure-client-side-data": "multimodal requests are not supported yet";
    random_mm_base "random-mm-base-items-per-request": "multimodal requests are not supported yet";
    random_mm_range "random-mm-num-mm-items-range-ratio": "multimodal requests are not supported yet";
    random_mm_limit "random-mm-limit-mm-per-prompt": "multimodal requests are not supported yet";
    random_mm_bucket "random-mm-bucket-config": "multimodal requests are not supported yet";
    asr_max "asr-max-audio-len-sec": "audio is not supported yet";
    asr_min "asr-min-audio-len-sec": "audio is not supported yet";
    hf_name "hf-name": "data sets from the hub are not supported yet; save it as JSONL and use --dataset-name custom";
    hf_subset "hf-subset": "data sets from the hub are not supported yet; save it as JSONL and use --dataset-name custom";
    hf_split "hf-split": "data sets from the hub are not supported yet; save it as JSONL and use --dataset-name custom";
    hf_output_len "hf-output-len": "data sets from the hub are not supported yet; save it as JSONL and use --dataset-name custom";
    bfcl "bfcl-categories": "the BFCL data set is not supported yet";
    blazedit_max "blazedit-max-distance": "the Blazedit data set is not supported yet";
    blazedit_min "blazedit-min-distance": "the Blazedit data set is not supported yet";
    spec_bench_output_len "spec-bench-output-len": "the Spec-Bench data set is not supported yet";
    spec_bench_category "spec-bench-category": "the Spec-Bench data set is not supported yet";
    speed_bench_category "speed-bench-category": "the SPEED-Bench data set is not supported yet";
    speed_bench_subset "speed-bench-dataset-subset": "the SPEED-Bench data set is not supported yet";
    speed_bench_output_len "speed-bench-output-len": "the SPEED-Bench data set is not supported yet";
    tt_hash "timed-trace-label-hash-ids": "timed traces are read by the usual field names; other names: --dataset-name custom --columns";
    tt_in "timed-trace-label-input-length": "timed traces are read by the usual field names; other names: --dataset-name custom --columns";
    tt_out "timed-trace-label-output-length": "timed traces are read by the usual field names; other names: --dataset-name custom --columns";
    tt_ts "timed-trace-label-timestamp": "timed traces are read by the usual field names; other names: --dataset-name custom --columns";
    config "config": "put the flags on the command line";
}

/// Data sets of `vllm bench serve` that are refused.
pub const REFUSED_DATASETS: &[(&str, &str)] = &[
    ("random-mm", "multimodal requests are not supported yet"),
    ("random-rerank", "reranking is not supported yet"),
    ("custom_image", "multimodal requests are not supported yet"),
    ("custom_audio", "audio is not supported yet"),
    ("hf", "data sets from the hub are not supported yet; save it as JSONL and use --dataset-name custom"),
    ("spec_bench", "it is not supported yet; --dataset-name questions reads the same file, all turns"),
    ("speed_bench", "it is not supported yet"),
    ("sonnet", "vLLM 0.33 removed it, and it is not supported yet"),
];

/// Backends of `vllm bench serve` that are refused.
pub const REFUSED_BACKENDS: &[(&str, &str)] = &[
    ("openai-audio", "audio is not supported yet"),
    ("openai-embeddings", "embeddings are not supported yet"),
    ("openai-embeddings-chat", "embeddings are not supported yet"),
    ("openai-embeddings-clip", "embeddings are not supported yet"),
    ("openai-embeddings-vlm2vec", "embeddings are not supported yet"),
    ("infinity-embeddings", "embeddings are not supported yet"),
    ("infinity-embeddings-clip", "embeddings are not supported yet"),
    ("vllm-pooling", "pooling models are not supported yet"),
    ("vllm-rerank", "reranking is not supported yet"),
];

/// One line for all refused flags that were given.
pub fn check(args: &ServeArgs) -> Outcome<()> {
    let (backend, dataset, mode) = (&args.target.backend, &args.data.dataset_name, &args.target.tokenizer_mode);
    let mut refused: Vec<String> =
        args.refused.given().iter().map(|(flag, why)| format!("--{flag} is refused: {why}")).collect();
    if !["auto", "hf"].contains(&mode.as_str()) {
        refused.push(format!("--tokenizer-mode {mode} is refused: only tokenizer.json files are read (auto or hf)"));
    }
    if args.target.trust_remote_code {
        eprintln!("note: --trust-remote-code changes nothing: no remote code is ever run");
    }
    let named = |list: &[(&str, &'static str)], name: &str| list.iter().find(|(n, _)| *n == name).map(|(_, why)| *why);
    if let Some(why) = named(REFUSED_BACKENDS, backend) {
        refused.push(format!("--backend {backend} is refused: {why}"));
    }
    if let Some(why) = named(REFUSED_DATASETS, dataset) {
        refused.push(format!("--dataset-name {dataset} is refused: {why}"));
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage(refused.join("; "))),
    }
}
