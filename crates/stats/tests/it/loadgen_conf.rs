use serde_json::Value;
use tailbound_stats::loadgen::benchmarks::benchmark;
use tailbound_stats::loadgen::conf::{self, MLPERF_CONF};
use tailbound_stats::loadgen::{Mode, Scenario, Settings, Source, accuracy};

use super::data;

fn user(text: &str, model: &str, scenario: Scenario) -> (Settings, Vec<String>) {
    let mut settings = Settings::official(model, scenario);
    let parsed = conf::parse(text);
    let remarks = settings.apply(&parsed, model, Source::User);
    (settings, remarks.iter().map(ToString::to_string).collect())
}

#[test]
fn the_settings_of_the_captured_user_conf_are_loadgens() {
    let Some(folder) = data::folder() else { return };
    let dir = folder.join("runs/30_userconf_llama2_70b_interactive");
    let case: Value = serde_json::from_str(&data::read(&dir, "case.json")).unwrap();
    let want: Value = serde_json::from_str(&data::read(&dir, "requested_settings.json")).unwrap();
    let (mut got, remarks) =
        user(case["user_conf"].as_str().unwrap(), case["model"].as_str().unwrap(), Scenario::Server);
    got.max_query_count = 5; // set by the harness after the file
    let want: Settings = serde_json::from_value(want).unwrap();
    // Not in a Server run's log, from which the harness took them.
    let unlogged = Settings {
        single_stream_expected_latency_ns: got.single_stream_expected_latency_ns,
        multi_stream_expected_latency_ns: got.multi_stream_expected_latency_ns,
        test05_qsl_rng_seed: got.test05_qsl_rng_seed,
        test05_sample_index_rng_seed: got.test05_sample_index_rng_seed,
        test05_schedule_rng_seed: got.test05_schedule_rng_seed,
        ..want
    };
    assert_eq!(got, unlogged);
    assert!(remarks.is_empty(), "{remarks:?}");
}

/// Expectations from the official binding's `FromConfig` (6.0.17).
#[test]
fn values_are_read_as_c_reads_them() {
    let (s, remarks) = user(
        "*.SingleStream.target_latency = 1.5\n*.MultiStream.target_latency = 2.5\n*.*.min_duration = 0x10\n\
         *.*.max_duration = 010\n*.*.min_query_count = 08\n*.*.max_query_count = -1\n\
         *.*.accuracy_log_probability = 50\n*.*.qsl_rng_seed = 5\n*.*.sample_concatenate_permutation = 2\n\
         *.*.mode = 1\n*.*.print_timestamps = 3\n*.Server.coalesce_queries = 1\n*.Server.target_qps = 1e2\n",
        "foo",
        Scenario::Server,
    );
    assert_eq!((s.single_stream_expected_latency_ns, s.multi_stream_expected_latency_ns), (1.5e6, 2.5e6));
    assert_eq!((s.min_duration_ms, s.max_duration_ms), (16, 8));
    assert_eq!((s.min_query_count, s.max_query_count), (0, u64::MAX));
    assert_eq!((s.accuracy_log_probability, s.qsl_rng_seed), (0.0, 2_085_463_073_848_966_840));
    assert!(!s.sample_concatenate_permutation && s.print_timestamps && s.server_coalesce_queries);
    assert_eq!((s.mode, s.server_target_qps), (Mode::AccuracyOnly, 100.0));
    assert_eq!(remarks.len(), 3, "{remarks:?}"); // 08, and two keys a user may not set
}

#[test]
fn lines_that_loadgen_drops_in_silence_are_quoted() {
    let text = "*.Server.target_qps=50\n\
                *.*.min_duration = 2.9\n\
                *.Server.target_duration = 5\n\
                *.Interactive.min_query_count = 7\n\
                *.*.max_duration = 5 6\n\
                min_query_count = 9\n\
                *.Server.samples_per_query = 3\n\
                *.*.max_query_count =\n";
    let (s, remarks) = user(text, "foo", Scenario::Server);
    assert_eq!((s.server_target_qps, s.min_duration_ms, s.max_duration_ms), (1.0, 2, 6));
    assert_eq!(remarks.len(), 8, "{remarks:#?}");
    for (remark, line) in remarks.iter().zip(text.lines()) {
        assert!(remark.contains(&format!("{line:?}")), "{remark} does not quote {line:?}");
    }
    assert!(remarks[0].contains("write `*.Server.target_qps = 50`"), "{}", remarks[0]);
}

#[test]
fn a_file_with_one_bad_line_changes_nothing() {
    for bad in ["*.*.min_query_count = 4 # why", "*.*.min_query_count 7 8", "*.*.min_query_count = five"] {
        let parsed = conf::parse(&format!("*.*.min_duration = 5\n{bad}\n"));
        assert_eq!(parsed.errors.len(), 1, "{bad}");
        assert_eq!((parsed.errors[0].line, parsed.errors[0].text.as_str()), (2, bad));
        let mut s = Settings::official("foo", Scenario::Server);
        s.apply(&parsed, "foo", Source::User);
        assert_eq!(s, Settings::official("foo", Scenario::Server), "{bad}");
    }
}

#[test]
fn a_scenario_beats_a_model_and_an_audit_file_has_no_model() {
    let (s, _) = user("foo.*.min_query_count = 1\n*.Server.min_query_count = 2\n", "foo", Scenario::Server);
    assert_eq!(s.min_query_count, 2);
    let mut s = Settings::official("foo", Scenario::Server);
    let audit = conf::parse("*.*.mode = 2\n*.*.accuracy_log_sampling_target = 100\nfoo.*.min_query_count = 7\n");
    let remarks = s.apply(&audit, "foo", Source::Audit);
    assert_eq!((s.accuracy_log_sampling_target, s.min_query_count), (100, 100));
    assert_eq!(remarks.len(), 1);
}

#[test]
fn the_built_in_defaults_are_read_without_an_error() {
    let parsed = conf::parse(MLPERF_CONF);
    assert!(parsed.errors.is_empty() && parsed.ignored.is_empty(), "{parsed:?}");
}

#[test]
fn llm_limits_are_those_of_the_rules() {
    let limits = |name: &str| {
        let b = benchmark(name).unwrap();
        (b.ttft_ns.map(|v| v / 1_000_000), b.tpot_ns.map(|v| v / 1_000_000), b.samples)
    };
    assert_eq!(limits("llama2-70b"), (Some(2000), Some(200), 24_576));
    assert_eq!(limits("llama2-70b-interactive"), (Some(450), Some(40), 24_576));
    assert_eq!(limits("llama3_1-8b-interactive"), (Some(500), Some(30), 13_368));
    assert_eq!(limits("llama3_1-405b"), (Some(6000), Some(175), 8313));
    assert_eq!(limits("deepseek-r1-interactive"), (Some(1500), Some(15), 4388));
    assert_eq!(limits("gpt-oss-120b"), (Some(3000), Some(80), 6396));
    assert_eq!(limits("qwen3-vl-235b-a22b"), (None, None, 48_289));
    assert_eq!(benchmark("qwen3-vl-235b-a22b").unwrap().latency_ns, Some(12_000_000_000));
    assert!(benchmark("gpt-5").is_none());
}

#[test]
fn accuracy_logs_come_back_byte_for_byte() {
    for dir in data::runs() {
        let text = data::read(&dir, "mlperf_log_accuracy.json");
        let answers = accuracy::parse(&text).unwrap();
        assert_eq!(accuracy::write(&answers), text, "{}", dir.display());
    }
    assert!(accuracy::parse("[{\"seq_id\": 1, \"qsl_idx\": 1, \"data\": \"0G\"}]").is_err());
}
