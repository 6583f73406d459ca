//! The Prometheus text format, in the order and with the labels of vLLM.

use std::fmt::Write;

use tailbound_engine::{Config, Counters};

use super::Histograms;
use super::histogram::Histogram;
use super::samples::{escape, head};

/// One replica's part of the page.
pub(crate) struct Rank<'a> {
    pub counters: &'a Counters,
    pub histograms: &'a Histograms,
    /// Requests that ended in an error made on purpose.
    pub errors: u64,
}

/// All that stands on the page.
pub(crate) struct Page<'a> {
    pub model: &'a str,
    pub engine: &'a Config,
    pub ranks: &'a [Rank<'a>],
    /// When counting began, in seconds since 1970.
    pub created: f64,
    pub cpu_seconds: f64,
    pub resident_bytes: Option<u64>,
}

impl Page<'_> {
    pub(crate) fn write(&self) -> String {
        let mut out = String::with_capacity(64 << 10);
        self.process(&mut out);
        self.zero_counters(
            &mut out,
            &[
                ("estimated_flops_per_gpu", "Floating-point operations per GPU; the emulator computes nothing."),
                ("estimated_read_bytes_per_gpu", "Bytes read from GPU memory; the emulator has none."),
                ("estimated_write_bytes_per_gpu", "Bytes written to GPU memory; the emulator has none."),
            ],
        );
        self.gauges(&mut out);
        self.cache_counters(&mut out);
        self.request_counters(&mut out);
        self.histograms(&mut out);
        self.cache_config(&mut out);
        out
    }

    fn process(&self, out: &mut String) {
        head(out, "process_cpu_seconds_total", "CPU time of this process in seconds.", "counter");
        let _ = writeln!(out, "process_cpu_seconds_total {:?}", self.cpu_seconds);
        if let Some(bytes) = self.resident_bytes {
            head(out, "process_resident_memory_bytes", "Resident memory of this process in bytes.", "gauge");
            let _ = writeln!(out, "process_resident_memory_bytes {:?}", bytes as f64);
        }
        head(out, "process_start_time_seconds", "When this process began to count, in seconds since 1970.", "gauge");
        let _ = writeln!(out, "process_start_time_seconds {:?}", self.created);
    }

    fn gauges(&self, out: &mut String) {
        self.each(out, "num_requests_running", "Requests in the batch.", "gauge", |r| f64::from(r.counters.running));
        self.each(out, "num_requests_waiting", "Requests that wait for the batch.", "gauge", |r| {
            f64::from(r.counters.waiting)
        });
        self.labelled(
            out,
            "num_requests_waiting_by_reason",
            "Requests that wait, by what for: room in the batch, or something else that will pass.",
            "gauge",
            "reason",
            &["capacity", "deferred"],
            |r, reason| if reason == 0 { f64::from(r.counters.waiting) } else { 0.0 },
        );
        self.labelled(
            out,
            "engine_sleep_state",
            "1 for the state the engine is in; the emulator does not sleep.",
            "gauge",
            "sleep_state",
            &["awake", "weights_offloaded", "discard_all"],
            |_, state| if state == 0 { 1.0 } else { 0.0 },
        );
        self.each(out, "kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1.", "gauge", |r| {
            r.counters.kv_usage()
        });
    }

    fn cache_counters(&self, out: &mut String) {
        self.counter(out, "prefix_cache_queries", "Tokens looked up in the prefix cache.", |r| {
            r.counters.prefix_queries
        });
        self.counter(out, "prefix_cache_hits", "Tokens found in the prefix cache.", |r| r.counters.prefix_hits);
        self.zero_counters(
            out,
            &[
                ("external_prefix_cache_queries", "Tokens looked up in other replicas' caches; there is no such link."),
                ("external_prefix_cache_hits", "Tokens found in other replicas' caches; there is no such link."),
                (
                    "mm_cache_queries",
                    "Items looked up in the cache of images and sounds; the emulator takes text only.",
                ),
                ("mm_cache_hits", "Items found in the cache of images and sounds; the emulator takes text only."),
            ],
        );
    }

    fn request_counters(&self, out: &mut String) {
        self.counter(out, "num_preemptions", "Times a request lost its blocks and went back to the queue.", |r| {
            r.counters.preemptions
        });
        self.counter(out, "prompt_tokens", "Prompt tokens taken in.", |r| r.counters.prompt_tokens());
        self.counters(
            out,
            "prompt_tokens_by_source",
            "Prompt tokens, by where their keys and values came from.",
            "source",
            &[
                ("local_compute", |r| r.counters.prompt_computed),
                ("local_cache_hit", |r| r.counters.prompt_cached),
                ("external_kv_transfer", |_| 0),
            ],
        );
        self.counter(out, "prompt_tokens_cached", "Prompt tokens that were not computed.", |r| {
            r.counters.prompt_cached
        });
        self.counters(
            out,
            "prompt_tokens_cached_by_source",
            "Prompt tokens that were not computed, by the tier that had them.",
            "source",
            &[
                ("device", |r| r.counters.prompt_cached),
                ("host", |_| 0),
                ("p2p", |_| 0),
                ("disk", |_| 0),
                ("external_unspecified", |_| 0),
            ],
        );
        self.counter(out, "generation_tokens", "Tokens generated.", |r| r.counters.generated);
        self.counters(
            out,
            "request_success",
            "Requests that ended, by why.",
            "finished_reason",
            &[
                ("stop", |r| r.counters.finished_stop),
                ("length", |r| r.counters.finished_length),
                ("abort", |r| r.counters.finished_abort),
                ("error", |r| r.errors),
                ("repetition", |_| 0),
            ],
        );
        self.admission_rejections(out);
        if self.engine.speculation.is_some() {
            self.counter(out, "spec_decode_num_drafts", "Drafts made.", |r| r.counters.drafts);
            self.counter(out, "spec_decode_num_draft_tokens", "Tokens drafted.", |r| r.counters.draft_tokens);
            self.counter(out, "spec_decode_num_accepted_tokens", "Drafted tokens that were right.", |r| {
                r.counters.accepted_tokens
            });
        }
    }

    /// vLLM counts these in its front end, so they carry no engine label.
    fn admission_rejections(&self, out: &mut String) {
        const HELP: &str = "Requests turned away because a queue was full, by which limit.";
        let rejected: u64 = self.ranks.iter().map(|r| r.counters.rejected_queue_full).sum();
        let model = escape(self.model);
        let reasons = [("max_num_queued_reqs", rejected as f64), ("max_num_queued_tokens", 0.0)];
        head(out, "vllm:admission_rejections_total", HELP, "counter");
        for (reason, value) in reasons {
            let _ = writeln!(
                out,
                "vllm:admission_rejections_total{{model_name=\"{model}\",reason=\"{reason}\"}} {value:?}"
            );
        }
        head(out, "vllm:admission_rejections_created", HELP, "gauge");
        for (reason, _) in reasons {
            let _ = writeln!(
                out,
                "vllm:admission_rejections_created{{model_name=\"{model}\",reason=\"{reason}\"}} {:?}",
                self.created
            );
        }
    }

    fn histograms(&self, out: &mut String) {
        type Pick = fn(&Histograms) -> &Histogram;
        let all: [(&str, &str, Pick); 16] = [
            ("request_prompt_tokens", "Prompt tokens per request.", |h| &h.prompt),
            ("request_generation_tokens", "Generated tokens per request.", |h| &h.generation),
            ("iteration_tokens_total", "Tokens per step, prompt and generated.", |h| &h.step),
            ("request_max_num_generation_tokens", "Generated tokens of a request's longest answer.", |h| {
                &h.max_generation
            }),
            ("request_params_n", "Answers asked for per request.", |h| &h.answers),
            ("request_params_max_tokens", "Token limit per request.", |h| &h.max_tokens),
            ("time_to_first_token_seconds", "From a request's arrival to its first token.", |h| &h.ttft),
            ("inter_token_latency_seconds", "From one output of a request to its next.", |h| &h.itl),
            ("request_time_per_output_token_seconds", "Mean time per token after the first, per request.", |h| &h.tpot),
            ("e2e_request_latency_seconds", "From a request's arrival to its last token.", |h| &h.e2e),
            ("request_queue_time_seconds", "Time a request waited for the batch.", |h| &h.queue),
            ("request_inference_time_seconds", "Time a request was in the batch.", |h| &h.inference),
            ("request_prefill_time_seconds", "From joining the batch to the first token.", |h| &h.prefill),
            ("request_decode_time_seconds", "From the first token to the last.", |h| &h.decode),
            ("request_num_preemptions", "Preemptions per request.", |h| &h.preemptions),
            ("request_prefill_kv_computed_tokens", "Prompt tokens computed per request, cached ones left out.", |h| {
                &h.computed
            }),
        ];
        for (name, help, pick) in all {
            head(out, &format!("vllm:{name}"), help, "histogram");
            for (i, rank) in self.ranks.iter().enumerate() {
                self.histogram(out, name, i, pick(rank.histograms));
            }
            self.created_gauge(out, name, help);
        }
    }

    fn cache_config(&self, out: &mut String) {
        let c = self.engine;
        let tokens = u64::from(c.num_blocks) * u64::from(c.block_size);
        let concurrency = tokens as f64 / f64::from(c.max_model_len);
        let python = |b: bool| if b { "True" } else { "False" };
        let block = c.block_size.to_string();
        head(out, "vllm:cache_config_info", "The settings of the KV cache, as labels.", "gauge");
        for i in 0..self.ranks.len() {
            let labels: [(&str, &str); 37] = [
                ("_block_size_resolved", "True"),
                ("block_size", &block),
                ("cache_dtype", "auto"),
                ("cache_hit_alignment_tokens", "None"),
                ("effective_attention_block_size", &block),
                ("enable_mamba_shared_prefix_checkpoint", "False"),
                ("enable_prefix_caching", python(c.prefix_caching)),
                ("engine", &i.to_string()),
                ("gpu_memory_utilization", "0.92"),
                ("hash_block_size", "None"),
                ("is_attention_free", "False"),
                ("kv_cache_dtype_skip_layers", "[]"),
                ("kv_cache_layout", "None"),
                ("kv_cache_max_concurrency", &format!("{concurrency:.2}")),
                ("kv_cache_memory_bytes", "None"),
                ("kv_cache_size_tokens", &tokens.to_string()),
                ("kv_offloading_backend", "native"),
                ("kv_offloading_size", "None"),
                ("kv_sharing_fast_prefill", "False"),
                ("mamba_block_size", "None"),
                ("mamba_cache_dtype", "auto"),
                ("mamba_cache_mode", "none"),
                ("mamba_page_size_padded", "None"),
                ("mamba_ssm_cache_dtype", "float32"),
                ("num_cpu_blocks", "None"),
                ("num_gpu_blocks", &c.num_blocks.to_string()),
                ("num_gpu_blocks_override", "None"),
                ("prefix_cache_retention_interval", "0"),
                ("prefix_caching_hash_algo", "sha256"),
                ("prefix_match_unit", "None"),
                ("replayssm_buffer_len", "16"),
                ("skip_page_size_padded", "None"),
                ("sliding_window", "None"),
                ("swa_bounded_replay", "True"),
                ("use_kda_recoverssm", "False"),
                ("use_replayssm", "False"),
                ("user_specified_block_size", "True"),
            ];
            let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
            let _ = writeln!(out, "vllm:cache_config_info{{{}}} 1.0", labels.join(","));
        }
    }
}
