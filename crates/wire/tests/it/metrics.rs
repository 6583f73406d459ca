//! Pages of metrics: captured from real servers, written by hand for those that aren't here, and nonsense.

use proptest::prelude::*;
use tailbound_record::server::{Measure, Reading, System};
use tailbound_wire::metrics::{NotMetrics, Sample, reading, samples};

fn all(page: &str) -> Vec<(String, Vec<(String, String)>, f64)> {
    let mut found = Vec::new();
    let own = |s: &Sample<'_>| s.labels.pairs().map(|(n, v)| (n.to_owned(), v.into_owned())).collect();
    samples(page.as_bytes(), |s| found.push((s.name.to_owned(), own(&s), s.value))).unwrap();
    found
}

fn labels(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn lines_of_both_formats() {
    // The first is the format's own example of hard cases.
    let page = "# HELP http_requests_total The total.\n# TYPE http_requests_total counter\n\
        http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000\n\
        msdos_file_access_time_seconds{path=\"C:\\\\DIR\\\\FILE.TXT\",error=\"Cannot find file:\\n\\\"FILE.TXT\\\"\"} 1.458255915e9\n\
        metric_without_timestamp_and_labels 12.47\n\
        something_weird{problem=\"division by zero\"} +Inf -3982045\n\
        \n\
        spaced { a = \"1\" , b=\"}, x=\\\"\" , } NaN\r\n\
        foo_bucket{le=\"0.1\"} 8 # {} 0.054\n\
        foo_bucket{le=\"1\"} 11 1520879607.789 # {trace_id=\"KOO5S4vxi0o\"} 0.67\n\
        {\"my.dotted.metric\", \"error\\u\"=\"x\"} 3\n";
    let page = page.replace("\"error\\u\"", "\"a.b\"");
    let found = all(&(page + "# EOF\n"));
    let expected = [
        ("http_requests_total", labels(&[("method", "post"), ("code", "200")]), 1027.0),
        (
            "msdos_file_access_time_seconds",
            labels(&[("path", "C:\\DIR\\FILE.TXT"), ("error", "Cannot find file:\n\"FILE.TXT\"")]),
            1.458255915e9,
        ),
        ("metric_without_timestamp_and_labels", vec![], 12.47),
        ("something_weird", labels(&[("problem", "division by zero")]), f64::INFINITY),
        ("spaced", labels(&[("a", "1"), ("b", "}, x=\"")]), f64::NAN),
        ("foo_bucket", labels(&[("le", "0.1")]), 8.0),
        ("foo_bucket", labels(&[("le", "1")]), 11.0),
        ("my.dotted.metric", labels(&[("a.b", "x")]), 3.0),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((name, labels, value), (n, l, v)) in found.iter().zip(&expected) {
        assert_eq!((name.as_str(), labels), (*n, l));
        assert!(value == v || (value.is_nan() && v.is_nan()), "{name}: {value}");
    }
}

#[test]
fn what_is_no_page_of_metrics_is_refused_with_line_and_reason() {
    for (page, says) in [
        ("<!doctype html><html><body>404</body></html>", "line 1 is not in Prometheus' format: it begins with no name"),
        ("{\"error\": \"not found\"}", "line 1"),
        ("up 1\n0up 1", "line 2"),
        ("up", "it has no value"),
        ("up one", "its value is no number"),
        ("up 1 soon", "what follows its value is no time"),
        ("up{a=\"1\" 1", "comma"),
        ("up{a=\"1} 1", "doesn't end"),
        ("up{a=1} 1", "quotes"),
        ("up{a} 1", "without a value"),
        ("up{\"b\"} 1", "without a name"),
        ("# EOF\nup 1", "behind # EOF"),
    ] {
        let said = samples(page.as_bytes(), |_| {}).unwrap_err().to_string();
        assert!(said.contains(says), "{page}: {said}");
    }
    assert_eq!(samples(b"\x1f\x8b\x08\x00\xff", |_| {}), Err(NotMetrics::NotText { gzip: true }));
    assert_eq!(samples(b"up \xff", |_| {}), Err(NotMetrics::NotText { gzip: false }));
    assert_eq!(reading(b""), Err(NotMetrics::Unknown));
    assert_eq!(reading(b"up 1\n"), Err(NotMetrics::Unknown));
}

fn values(reading: &Reading) -> Vec<(&'static str, f64)> {
    reading.values.iter().map(|(m, v)| (m.name(), *v)).collect()
}

#[test]
fn what_vllm_said() {
    let Some(page) = tailbound_testdata::read("engines/vllm/metrics.txt") else { return };
    let read = reading(page.as_bytes()).unwrap();
    assert_eq!((read.system, read.started), (Some(System::Vllm), Some(1.79604786269e9)));
    let expected = [
        ("running", 0.0),
        ("waiting", 0.0),
        ("kv_use", 0.0),
        ("prompt_tokens", 467.0),
        ("generated_tokens", 88.0),
        ("prefix_query_tokens", 467.0),
        ("prefix_hit_tokens", 128.0),
        ("preemptions", 0.0),
        ("finished_requests", 8.0),
        ("process_cpu_s", 11.58),
    ];
    assert_eq!(values(&read), expected);
    let ttft = read.ttft.unwrap();
    assert_eq!((ttft.count, ttft.sum, ttft.bounds.len()), (8.0, 61.85664749145508, 22));
    assert!(ttft.bounds.is_sorted() && ttft.counts.is_sorted(), "{ttft:?}");
    assert_eq!(ttft.counts.last(), Some(&8.0));
    // As many figures as there are lines that are neither empty nor comments.
    let lines = page.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).count();
    assert_eq!(samples(page.as_bytes(), |_| {}), Ok(lines));
}

#[test]
fn what_llama_cpp_said() {
    let Some(page) = tailbound_testdata::read("engines/llamacpp/metrics_after_load.txt") else { return };
    let stated = |name: &str| -> f64 {
        let line = page.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}")).parse().unwrap()
    };
    let read = reading(page.as_bytes()).unwrap();
    assert_eq!((read.system, &read.ttft), (Some(System::LlamaCpp), &None));
    let cached = stated("llamacpp:prompt_tokens_cached_total");
    let expected = [
        (Measure::PrefixHits, cached),
        (Measure::PromptTokens, stated("llamacpp:prompt_tokens_total") + cached),
        (Measure::GeneratedTokens, stated("llamacpp:tokens_predicted_total")),
        (Measure::Running, stated("llamacpp:requests_processing")),
        (Measure::Waiting, stated("llamacpp:requests_deferred")),
    ];
    for (measure, value) in expected {
        assert_eq!(read.values.get(&measure), Some(&value), "{measure:?}");
    }
    assert!(read.values[&Measure::GeneratedTokens] > 0.0);
    assert_eq!(read.values.get(&Measure::KvUse), None);
}

#[test]
fn engines_are_taken_together_ranks_of_one_are_not_and_old_names_count_once() {
    let page = "vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} 4\n\
        vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.7\n\
        vllm:gpu_cache_usage_perc{engine=\"0\"} 0.9\n\
        vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",position=\"1\"} 15\n\
        vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",position=\"0\"} 20\n\
        vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"1\",position=\"0\"} 5\n\
        vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\"} 3\n\
        vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.5\"} 2\n\
        vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.1\"} 1\n\
        vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"0.1\"} 4\n\
        vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"0.5\"} 4\n\
        vllm:time_to_first_token_seconds_count{engine=\"0\"} 3\nvllm:time_to_first_token_seconds_count{engine=\"1\"} 4\n\
        vllm:time_to_first_token_seconds_sum{engine=\"0\"} 1.5\nvllm:time_to_first_token_seconds_sum{engine=\"1\"} 0.25\n";
    let read = reading(page.as_bytes()).unwrap();
    assert_eq!(values(&read), [("running", 7.0), ("kv_use", 0.6)]);
    assert_eq!(read.accepted_at, [25.0, 15.0]);
    let ttft = read.ttft.unwrap();
    assert_eq!((ttft.bounds, ttft.counts, ttft.count, ttft.sum), (vec![0.1, 0.5], vec![5.0, 6.0], 7.0, 1.75));

    let page = "sglang:num_running_reqs{tp_rank=\"0\"} 3\nsglang:num_running_reqs{tp_rank=\"1\"} 3\n\
        sglang:prompt_tokens_total{tp_rank=\"0\"} 100\nsglang:cached_tokens_total{cache_source=\"device\"} 30\n";
    let read = reading(page.as_bytes()).unwrap();
    assert_eq!(read.system, Some(System::Sglang));
    assert_eq!(
        values(&read),
        [("running", 3.0), ("prompt_tokens", 100.0), ("prefix_query_tokens", 100.0), ("prefix_hit_tokens", 30.0)]
    );
}

#[test]
fn names_of_systems_that_have_no_capture() {
    let cases: [(&str, System, &[(&str, f64)]); 5] = [
        (
            "tgi_queue_size 4\ntgi_batch_current_size 16\ntgi_request_generated_tokens_sum 900\n",
            System::Tgi,
            &[("running", 16.0), ("waiting", 4.0), ("generated_tokens", 900.0)],
        ),
        (
            "nv_trt_llm_request_metrics{request_type=\"waiting\"} 2\nnv_trt_llm_request_metrics{request_type=\"scheduled\"} 5\n\
             nv_trt_llm_request_metrics{request_type=\"max\"} 64\nnv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\"} 0.25\n\
             nv_inference_pending_request_count{model=\"m\"} 9\nnv_gpu_utilization{gpu_uuid=\"a\"} 0.5\n",
            System::Triton,
            &[("running", 5.0), ("waiting", 2.0), ("kv_use", 0.25), ("gpu_use", 0.5)],
        ),
        (
            "trtllm_num_requests_running 1\ntrtllm_num_requests_waiting 0\ntrtllm_kv_cache_utilization 0.125\n",
            System::TrtLlm,
            &[("running", 1.0), ("waiting", 0.0), ("kv_use", 0.125)],
        ),
        (
            "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 100\nDCGM_FI_DEV_GPU_UTIL{gpu=\"1\"} 50\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 600\n\
             DCGM_FI_DEV_POWER_USAGE{gpu=\"1\"} 300.5\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 61\nDCGM_FI_DEV_GPU_TEMP{gpu=\"1\"} 55\n\
             DCGM_FI_DEV_FB_USED{gpu=\"0\"} 2\n",
            System::Dcgm,
            &[
                ("gpu_use", 0.75),
                ("gpu_power_w", 900.5),
                ("gpu_temperature_c", 61.0),
                ("gpu_memory_bytes", 2_097_152.0),
            ],
        ),
        (
            "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 90\nnode_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 10\n\
             node_memory_MemTotal_bytes 1000\nnode_memory_MemAvailable_bytes 400\n",
            System::Node,
            &[
                ("memory_total_bytes", 1000.0),
                ("memory_available_bytes", 400.0),
                ("cpu_time_s", 100.0),
                ("cpu_idle_s", 90.0),
            ],
        ),
    ];
    for (page, system, expected) in cases {
        let read = reading(page.as_bytes()).unwrap();
        assert_eq!((read.system, values(&read).as_slice()), (Some(system), expected));
    }
}

fn page() -> impl Strategy<Value = Vec<(String, Vec<(String, String)>, f64)>> {
    let label = ("[a-zA-Z_][a-zA-Z0-9_]{0,8}", any::<String>());
    let labels = proptest::collection::btree_map(label.0, label.1, 0..4).prop_map(|all| all.into_iter().collect());
    let value = prop_oneof![any::<f64>(), Just(f64::INFINITY), Just(f64::NAN), (0u32..1000).prop_map(f64::from)];
    proptest::collection::vec(("[a-zA-Z_:][a-zA-Z0-9_:]{0,20}", labels, value), 0..20)
}

proptest! {
    /// Whatever is written by the format's rules is read back, label for label.
    #[test]
    fn what_is_written_is_read_back(page in page(), stamp in any::<bool>()) {
        let mut text = String::new();
        for (name, labels, value) in &page {
            let escaped = |v: &str| v.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let labels: Vec<String> = labels.iter().map(|(n, v)| format!("{n}=\"{}\"", escaped(v))).collect();
            text += &format!("{name}{{{}}} {value:?}{}\n", labels.join(","), if stamp { " 17" } else { "" });
        }
        let mut found = Vec::new();
        samples(text.as_bytes(), |s| {
            let labels: Vec<_> = s.labels.pairs().map(|(n, v)| (n.to_owned(), v.into_owned())).collect();
            found.push((s.name.to_owned(), labels, s.value));
        }).unwrap();
        prop_assert_eq!(found.len(), page.len());
        for (found, written) in found.iter().zip(&page) {
            prop_assert_eq!((&found.0, &found.1), (&written.0, &written.1));
            prop_assert!(found.2 == written.2 || (found.2.is_nan() && written.2.is_nan()));
        }
    }

    /// Bytes of any kind, and pages of known names with anything in them, end in a reading or a refusal.
    #[test]
    fn nonsense_is_read_or_refused(bytes in any::<Vec<u8>>(), text in "(vllm:|tgi_|[ {}\"=,#\\\\\n]|le|0|1|-|inf|position|[^ ]){0,60}") {
        let _ = reading(&bytes);
        let _ = reading(text.as_bytes());
        let _ = reading(format!("vllm:num_requests_running{{{text}}} 1").as_bytes());
        let _ = reading(format!("vllm:spec_decode_num_accepted_tokens_per_pos_total{{position=\"{text}\"}} 1").as_bytes());
    }
}
