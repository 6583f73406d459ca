//! Where the official program writes each key: its log names file and line, and so does ours, so that a comparison of logs
//! finds no difference there (LoadGen 6.0.17).

/// File and line for a key; messages share keys, so the value decides among them.
/// The one key written in two places tells them apart by the key `before` it.
pub(super) fn origin(key: &str, value: &str, before: &str) -> (&'static str, u32) {
    let message = |table: &[(&str, &'static str, u32)]| {
        table
            .iter()
            .find(|(start, ..)| value.trim_start_matches('"').starts_with(start))
            .map(|&(_, file, line)| (file, line))
    };
    match key {
        "generic_message" => message(&MESSAGES).unwrap_or(("loadgen.cc", 0)),
        "error_runtime" => message(&ERRORS).unwrap_or(("loadgen.cc", 0)),
        "early_stopping_latency_ms" if before == "early_stopping_latency_ss" => ("results.cc", 739),
        "early_stopping_latency_ms" => ("results.cc", 745),
        _ => table(key),
    }
}

fn table(key: &str) -> (&'static str, u32) {
    if key.ends_with("_percentile_per_query_latency_ns") {
        return ("results.cc", 724);
    }
    if key.starts_with("result_first_token_") && key.ends_with("_percentile_latency_ns") {
        return ("results.cc", 793);
    }
    if key.ends_with("_percentile_latency_ns") && !key.starts_with("effective") {
        return ("results.cc", 778);
    }
    if key.starts_with("result_time_per_output_token_") {
        return ("results.cc", 805);
    }
    let found = KEYS.iter().find(|(name, ..)| *name == key);
    found.map_or(("loadgen.cc", 0), |&(_, file, line)| (file, line))
}

const MESSAGES: [(&str, &str, u32); 9] = [
    ("Starting performance mode", "loadgen.cc", 848),
    ("Starting accuracy mode", "loadgen.cc", 1101),
    ("Starting FindPeakPerformance mode", "loadgen.cc", 954),
    ("FindPeakPerformance: Check", "loadgen.cc", 976),
    ("FindBoundaries: ", "loadgen.cc", 758),
    ("FindPeakPerformance: Found boundaries", "loadgen.cc", 1050),
    ("FindPeakPerformance: Found peak", "loadgen.cc", 1075),
    ("FindPeakPerformanceBinarySearch", "loadgen.cc", 814),
    ("Ending naturally", "issue_query_controller.cc", 482),
];

const ERRORS: [(&str, &str, u32); 7] = [
    ("Ending early: Ran out", "loadgen.cc", 513),
    ("IssueQueryThread 0 Ending early: Too many", "issue_query_controller.cc", 465),
    ("IssueQueryThread 0 Ending early: Max query", "issue_query_controller.cc", 504),
    ("IssueQueryThread 0 Ending early: Max test", "issue_query_controller.cc", 524),
    ("n_tokens argument missing", "logging.cc", 443),
    ("Attempted to record a negative", "logging.cc", 447),
    ("Number of tokens need", "logging.cc", 451),
];

const KEYS: [(&str, &str, u32); 121] = [
    ("generated_query_count", "loadgen.cc", 427),
    ("generated_samples_per_query", "loadgen.cc", 428),
    ("generated_query_duration", "loadgen.cc", 429),
    ("power_begin", "loadgen.cc", 562),
    ("power_end", "loadgen.cc", 564),
    ("loaded_qsl_set", "loadgen.cc", 608),
    ("test_datetime", "loadgen.cc", 1211),
    ("sut_name", "loadgen.cc", 1212),
    ("get_sut_name_duration_ns", "loadgen.cc", 1213),
    ("qsl_name", "loadgen.cc", 1214),
    ("qsl_reported_total_count", "loadgen.cc", 1215),
    ("qsl_reported_performance_count", "loadgen.cc", 1216),
    ("logger_swap_request_slots_retry_count", "logging.cc", 902),
    ("logger_swap_request_slots_retry_retry_count", "logging.cc", 904),
    ("logger_swap_request_slots_retry_reencounter_count", "logging.cc", 906),
    ("logger_start_reading_entries_retry_count", "logging.cc", 908),
    ("logger_tls_total_log_cas_fail_count", "logging.cc", 910),
    ("logger_tls_total_swap_buffers_slot_retry_count", "logging.cc", 912),
    ("result_validity", "results.cc", 674),
    ("result_perf_constraints_met", "results.cc", 677),
    ("result_min_duration_met", "results.cc", 679),
    ("result_min_queries_met", "results.cc", 680),
    ("early_stopping_met", "results.cc", 681),
    ("result_invalid_reason", "results.cc", 695),
    ("early_stopping_result", "results.cc", 700),
    ("early_stopping_ttft_result", "results.cc", 706),
    ("early_stopping_tpot_result", "results.cc", 708),
    ("result_query_count", "results.cc", 712),
    ("result_overlatency_query_count", "results.cc", 714),
    ("result_min_query_latency_ns", "results.cc", 719),
    ("result_max_query_latency_ns", "results.cc", 720),
    ("result_mean_query_latency_ns", "results.cc", 721),
    ("result_qps_with_loadgen_overhead", "results.cc", 735),
    ("result_qps_without_loadgen_overhead", "results.cc", 736),
    ("early_stopping_latency_ss", "results.cc", 737),
    ("result_scheduled_samples_per_sec", "results.cc", 760),
    ("result_completed_samples_per_sec", "results.cc", 763),
    ("result_samples_per_second", "results.cc", 768),
    ("result_min_latency_ns", "results.cc", 774),
    ("result_max_latency_ns", "results.cc", 775),
    ("result_mean_latency_ns", "results.cc", 776),
    ("result_first_token_min_latency_ns", "results.cc", 786),
    ("result_first_token_max_latency_ns", "results.cc", 788),
    ("result_first_token_mean_latency_ns", "results.cc", 790),
    ("result_token_throughput_with_loadgen_overhead", "results.cc", 801),
    ("result_token_throughput", "results.cc", 803),
    ("result_time_to_output_token_min", "results.cc", 810),
    ("result_time_to_output_token_max", "results.cc", 812),
    ("result_time_to_output_token_mean", "results.cc", 814),
    ("result_completed_tokens_per_second", "results.cc", 818),
    ("result_tokens_per_second", "results.cc", 822),
    ("num_errors", "results.cc", 852),
    ("requested_scenario", "test_settings_internal.cc", 278),
    ("requested_test_mode", "test_settings_internal.cc", 279),
    ("requested_single_stream_expected_latency_ns", "test_settings_internal.cc", 284),
    ("requested_single_stream_target_latency_percentile", "test_settings_internal.cc", 286),
    ("requested_multi_stream_expected_latency_ns", "test_settings_internal.cc", 290),
    ("requested_multi_stream_target_latency_percentile", "test_settings_internal.cc", 292),
    ("requested_multi_stream_samples_per_query", "test_settings_internal.cc", 294),
    ("requested_server_target_qps", "test_settings_internal.cc", 298),
    ("requested_server_target_latency_ns", "test_settings_internal.cc", 299),
    ("requested_server_target_latency_percentile", "test_settings_internal.cc", 301),
    ("requested_server_coalesce_queries", "test_settings_internal.cc", 303),
    ("requested_server_find_peak_qps_decimals_of_precision", "test_settings_internal.cc", 305),
    ("requested_server_find_peak_qps_boundary_step_size", "test_settings_internal.cc", 308),
    ("requested_server_max_async_queries", "test_settings_internal.cc", 310),
    ("requested_server_num_issue_query_threads", "test_settings_internal.cc", 312),
    ("requested_offline_expected_qps", "test_settings_internal.cc", 316),
    ("requested_min_duration_ms", "test_settings_internal.cc", 322),
    ("requested_max_duration_ms", "test_settings_internal.cc", 323),
    ("requested_min_query_count", "test_settings_internal.cc", 324),
    ("requested_max_query_count", "test_settings_internal.cc", 325),
    ("requested_qsl_rng_seed", "test_settings_internal.cc", 326),
    ("requested_sample_index_rng_seed", "test_settings_internal.cc", 327),
    ("requested_schedule_rng_seed", "test_settings_internal.cc", 329),
    ("requested_accuracy_log_rng_seed", "test_settings_internal.cc", 330),
    ("requested_accuracy_log_probability", "test_settings_internal.cc", 332),
    ("requested_accuracy_log_sampling_target", "test_settings_internal.cc", 334),
    ("requested_print_timestamps", "test_settings_internal.cc", 336),
    ("requested_performance_issue_unique", "test_settings_internal.cc", 337),
    ("requested_performance_issue_same", "test_settings_internal.cc", 339),
    ("requested_performance_issue_same_index", "test_settings_internal.cc", 341),
    ("requested_performance_sample_count_override", "test_settings_internal.cc", 343),
    ("requested_accuracy_sample_count_override", "test_settings_internal.cc", 345),
    ("requested_sample_concatenate_permutation", "test_settings_internal.cc", 347),
    ("requested_use_token_latencies", "test_settings_internal.cc", 351),
    ("requested_server_ttft_latency", "test_settings_internal.cc", 354),
    ("requested_server_tpot_latency", "test_settings_internal.cc", 356),
    ("effective_scenario", "test_settings_internal.cc", 428),
    ("effective_test_mode", "test_settings_internal.cc", 429),
    ("effective_samples_per_query", "test_settings_internal.cc", 431),
    ("effective_target_qps", "test_settings_internal.cc", 432),
    ("effective_target_latency_ns", "test_settings_internal.cc", 433),
    ("effective_target_latency_percentile", "test_settings_internal.cc", 434),
    ("effective_max_async_queries", "test_settings_internal.cc", 436),
    ("effective_target_duration_ms", "test_settings_internal.cc", 437),
    ("effective_min_duration_ms", "test_settings_internal.cc", 439),
    ("effective_max_duration_ms", "test_settings_internal.cc", 440),
    ("effective_min_query_count", "test_settings_internal.cc", 441),
    ("effective_max_query_count", "test_settings_internal.cc", 442),
    ("effective_min_sample_count", "test_settings_internal.cc", 443),
    ("effective_qsl_rng_seed", "test_settings_internal.cc", 444),
    ("effective_sample_index_rng_seed", "test_settings_internal.cc", 445),
    ("effective_schedule_rng_seed", "test_settings_internal.cc", 447),
    ("effective_accuracy_log_rng_seed", "test_settings_internal.cc", 448),
    ("effective_accuracy_log_probability", "test_settings_internal.cc", 450),
    ("effective_accuracy_log_sampling_target", "test_settings_internal.cc", 452),
    ("effective_print_timestamps", "test_settings_internal.cc", 454),
    ("effective_performance_issue_unique", "test_settings_internal.cc", 455),
    ("effective_performance_issue_same", "test_settings_internal.cc", 457),
    ("effective_performance_issue_same_index", "test_settings_internal.cc", 459),
    ("effective_performance_sample_count", "test_settings_internal.cc", 461),
    ("effective_accuracy_sample_count", "test_settings_internal.cc", 463),
    ("effective_sample_concatenate_permutation", "test_settings_internal.cc", 465),
    ("loadgen_version", "version.cc", 53),
    ("loadgen_build_date_local", "version.cc", 55),
    ("loadgen_build_date_utc", "version.cc", 56),
    ("loadgen_git_commit_date", "version.cc", 57),
    ("loadgen_git_log_message", "version.cc", 58),
    ("loadgen_git_status_message", "version.cc", 60),
    ("loadgen_file_sha1", "version.cc", 67),
];
