//! `mlperf_log_detail.txt`: the lines of a test in LoadGen's keys, order and number formats.

use super::effective::Effective;
use super::number::general;
use super::origin::origin;
use super::schedule::{Generated, LoadedSet};
use super::settings::Scenario;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value as it stands in the line: JSON, save that LoadGen escapes nothing and may write `inf` or `-nan`.
    pub value: String,
    /// ns after the log was opened.
    pub at_ns: u64,
    /// Whether it counts as an error.
    pub error: bool,
    /// Whether it counts as a warning.
    pub warning: bool,
}

/// Who ran, with what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Version lines `(key, value)` in order: texts are quoted by the writer, other JSON is given as it is.
    pub version: Vec<(String, String)>,
    /// `YYYY-MM-DDTHH:MM:SSZ`, local time in LoadGen.
    pub datetime: String,
    /// The system's name.
    pub sut_name: String,
    /// How long asking for it took, ns.
    pub sut_name_duration_ns: u64,
    /// The library's name.
    pub qsl_name: String,
    /// Its reported size.
    pub qsl_total: u64,
    /// Its reported performance set.
    pub qsl_performance: u64,
}

/// A detail log being written.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    entries: Vec<Entry>,
    /// ns after the log was opened, given to the entries that follow.
    pub now_ns: u64,
}

impl Journal {
    /// The lines so far.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many of them are errors.
    pub fn errors(&self) -> u64 {
        self.entries.iter().filter(|e| e.error).count() as u64
    }

    /// How many of them are warnings.
    pub fn warnings(&self) -> u64 {
        self.entries.iter().filter(|e| e.warning).count() as u64
    }

    pub(super) fn raw(&mut self, key: &str, value: impl Into<String>) {
        let (value, at_ns) = (value.into(), self.now_ns);
        self.entries.push(Entry { key: key.to_owned(), value, at_ns, error: false, warning: false });
    }
    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.raw(key, quoted(value));
    }
    pub(super) fn real(&mut self, key: &str, value: f64) {
        self.raw(key, general(value));
    }
    pub(super) fn int(&mut self, key: &str, value: impl std::fmt::Display) {
        self.raw(key, value.to_string());
    }

    /// Something that happened.
    pub fn message(&mut self, text: &str) {
        self.text("generic_message", text);
    }

    /// An error while running.
    pub fn error(&mut self, key: &str, text: &str) {
        self.text(key, text);
        if let Some(last) = self.entries.last_mut() {
            last.error = true;
        }
    }

    /// A warning.
    pub fn warning(&mut self, text: &str) {
        self.text("warning_generic_message", text);
        if let Some(last) = self.entries.last_mut() {
            last.warning = true;
        }
    }

    /// The opening lines.
    pub fn identity(&mut self, id: &Identity) {
        for (key, value) in &id.version {
            self.raw(key, value.clone());
        }
        self.text("test_datetime", &id.datetime);
        self.text("sut_name", &id.sut_name);
        self.int("get_sut_name_duration_ns", id.sut_name_duration_ns);
        self.text("qsl_name", &id.qsl_name);
        self.int("qsl_reported_total_count", id.qsl_total);
        self.int("qsl_reported_performance_count", id.qsl_performance);
    }

    /// The requested and the effective settings.
    pub fn settings(&mut self, e: &Effective) {
        self.requested(e);
        self.effective(e);
    }

    fn requested(&mut self, e: &Effective) {
        let r = &e.requested;
        self.text("requested_scenario", r.scenario.name());
        self.text("requested_test_mode", r.mode.name());
        match r.scenario {
            Scenario::SingleStream => {
                self.real("requested_single_stream_expected_latency_ns", r.single_stream_expected_latency_ns);
                self.real(
                    "requested_single_stream_target_latency_percentile",
                    r.single_stream_target_latency_percentile,
                );
            }
            Scenario::MultiStream => {
                self.real("requested_multi_stream_expected_latency_ns", r.multi_stream_expected_latency_ns);
                self.real("requested_multi_stream_target_latency_percentile", r.multi_stream_target_latency_percentile);
                self.int("requested_multi_stream_samples_per_query", r.multi_stream_samples_per_query);
            }
            Scenario::Server => self.requested_server(e),
            Scenario::Offline => self.real("requested_offline_expected_qps", r.offline_expected_qps),
        }
        self.int("requested_min_duration_ms", r.min_duration_ms);
        self.int("requested_max_duration_ms", r.max_duration_ms);
        self.int("requested_min_query_count", r.min_query_count);
        self.int("requested_max_query_count", r.max_query_count);
        self.int("requested_qsl_rng_seed", r.qsl_rng_seed);
        self.int("requested_sample_index_rng_seed", r.sample_index_rng_seed);
        self.int("requested_schedule_rng_seed", r.schedule_rng_seed);
        self.int("requested_accuracy_log_rng_seed", r.accuracy_log_rng_seed);
        self.real("requested_accuracy_log_probability", r.accuracy_log_probability);
        self.int("requested_accuracy_log_sampling_target", r.accuracy_log_sampling_target);
        self.int("requested_print_timestamps", r.print_timestamps);
        self.int("requested_performance_issue_unique", r.performance_issue_unique);
        self.int("requested_performance_issue_same", r.performance_issue_same);
        self.int("requested_performance_issue_same_index", r.performance_issue_same_index);
        self.int("requested_performance_sample_count_override", r.performance_sample_count_override);
        self.int("requested_accuracy_sample_count_override", r.accuracy_sample_count_override);
        self.int("requested_sample_concatenate_permutation", r.sample_concatenate_permutation);
        if !r.use_token_latencies {
            return;
        }
        self.int("requested_use_token_latencies", true);
        if r.scenario != Scenario::Offline {
            self.int("requested_server_ttft_latency", r.ttft_latency);
            self.int("requested_server_tpot_latency", r.tpot_latency);
        }
    }

    fn requested_server(&mut self, e: &Effective) {
        let r = &e.requested;
        self.real("requested_server_target_qps", r.server_target_qps);
        self.int("requested_server_target_latency_ns", r.server_target_latency_ns);
        self.real("requested_server_target_latency_percentile", r.server_target_latency_percentile);
        self.int("requested_server_coalesce_queries", r.server_coalesce_queries);
        self.int("requested_server_find_peak_qps_decimals_of_precision", r.server_find_peak_qps_decimals_of_precision);
        self.real("requested_server_find_peak_qps_boundary_step_size", r.server_find_peak_qps_boundary_step_size);
        self.int("requested_server_max_async_queries", r.server_max_async_queries);
        self.int("requested_server_num_issue_query_threads", r.server_num_issue_query_threads);
    }

    fn effective(&mut self, e: &Effective) {
        let r = &e.requested;
        self.text("effective_scenario", r.scenario.name());
        self.text("effective_test_mode", r.mode.name());
        self.int("effective_samples_per_query", e.samples_per_query);
        self.real("effective_target_qps", e.target_qps);
        self.int("effective_target_latency_ns", e.target_latency_ns);
        self.real("effective_target_latency_percentile", e.target_latency_percentile);
        self.int("effective_max_async_queries", e.max_async_queries);
        self.int("effective_target_duration_ms", e.target_duration_ms);
        self.int("effective_min_duration_ms", e.min_duration_ms);
        self.int("effective_max_duration_ms", e.max_duration_ms);
        self.int("effective_min_query_count", e.min_query_count);
        self.int("effective_max_query_count", e.max_query_count);
        self.int("effective_min_sample_count", e.min_sample_count);
        self.int("effective_qsl_rng_seed", e.qsl_rng_seed);
        self.int("effective_sample_index_rng_seed", e.sample_index_rng_seed);
        self.int("effective_schedule_rng_seed", e.schedule_rng_seed);
        self.int("effective_accuracy_log_rng_seed", r.accuracy_log_rng_seed);
        self.real("effective_accuracy_log_probability", r.accuracy_log_probability);
        self.int("effective_accuracy_log_sampling_target", r.accuracy_log_sampling_target);
        self.int("effective_print_timestamps", r.print_timestamps);
        self.int("effective_performance_issue_unique", r.performance_issue_unique);
        self.int("effective_performance_issue_same", r.performance_issue_same);
        self.int("effective_performance_issue_same_index", r.performance_issue_same_index);
        self.int("effective_performance_sample_count", e.performance_sample_count);
        self.int("effective_accuracy_sample_count", e.accuracy_sample_count);
        self.int("effective_sample_concatenate_permutation", r.sample_concatenate_permutation);
    }

    /// A set was loaded.
    pub fn loaded(&mut self, set: &LoadedSet) {
        let list: Vec<String> = set.samples.iter().map(u32::to_string).collect();
        self.raw("loaded_qsl_set", format!("[{}]", list.join(",")));
    }

    /// Its queries were generated.
    pub fn generated(&mut self, made: &Generated) {
        self.int("generated_query_count", made.queries.len());
        self.int("generated_samples_per_query", made.samples_per_query);
        self.int("generated_query_duration", made.duration_ns);
    }

    /// The queries are done: LoadGen's contention counters (we have no such contention) and the power window,
    /// `MM-DD-YYYY HH:MM:SS.mmm` in UTC.
    pub fn done(&mut self, power_begin: &str, power_end: &str) {
        for counter in [
            "logger_swap_request_slots_retry_count",
            "logger_swap_request_slots_retry_retry_count",
            "logger_swap_request_slots_retry_reencounter_count",
            "logger_start_reading_entries_retry_count",
            "logger_tls_total_log_cas_fail_count",
            "logger_tls_total_swap_buffers_slot_retry_count",
        ] {
            self.int(counter, 0);
        }
        self.text("power_begin", power_begin);
        self.text("power_end", power_end);
    }

    /// The log's text. `pid` and `tid` are only echoed.
    pub fn write(&self, pid: u32, tid: u32) -> String {
        let mut out = String::new();
        let mut before = "";
        for e in &self.entries {
            let (file, line) = origin(&e.key, &e.value, before);
            before = &e.key;
            let (millis, nanos) = (e.at_ns / 1_000_000, e.at_ns % 1_000_000);
            out += &format!(
                ":::MLLOG {{\"key\": \"{}\", \"value\": {}, \"time_ms\": {millis}.{nanos:06}, \"namespace\": \
                 \"mlperf::logging\", \"event_type\": \"POINT_IN_TIME\", \"metadata\": {{\"is_error\": {}, \"is_warning\": \
                 {}, \"file\": \"{file}\", \"line_no\": {line}, \"pid\": {pid}, \"tid\": {tid}}}}}\n",
                e.key, e.value, e.error, e.warning
            );
        }
        out
    }
}

/// A JSON string. LoadGen escapes nothing; we escape what would otherwise break the line.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
