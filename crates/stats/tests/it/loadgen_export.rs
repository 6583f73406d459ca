use serde_json::{Map, Value, json};
use tailbound_stats::loadgen::endpoints::check::{Folder, check};
use tailbound_stats::loadgen::endpoints::export::{CannotExport, MeasuredPoint, Submission, Warmup, export};
use tailbound_stats::loadgen::endpoints::passes::Seen;
use tailbound_stats::loadgen::endpoints::plan::Offline;
use tailbound_stats::loadgen::endpoints::point::Answered;

/// A small data set that the rules know the size of.
const DATASET: (&str, usize) = ("gpqa", 198);

/// A point whose requests take 1 s + 5 ms × concurrency, issued at a fixed concurrency for as long as the rules ask.
fn point(concurrency: u64, offline: Offline, accuracy: bool) -> MeasuredPoint {
    let request_ns = 1_000_000_000 + 5_000_000 * concurrency as i64;
    let passes = (1_300_000_000_000 / request_ns * concurrency as i64 / DATASET.1 as i64).max(5) + 1;
    let samples = (0..passes * DATASET.1 as i64)
        .map(|i| {
            let issued = i / concurrency as i64 * request_ns + (i % concurrency as i64) * 1000;
            let jitter = (i * 7919) % 1_000_000;
            let seen = Seen {
                issued_ns: issued,
                first_ns: Some(issued + request_ns / 10 + jitter),
                done_ns: Some(issued + request_ns),
                tokens_after_first: 127,
            };
            Answered { seen, output_tokens: 128 }
        })
        .collect();
    let scores = json!({ "accuracy_scores": [{
        "dataset_name": "cnn_dailymail", "unit_samples": 13368, "num_repeats": 1, "complete": true,
        "score": { "rouge1": 38.8, "rouge2": 16.0, "rougel": 24.6, "rougelsum": 35.9, "gen_len": 8_167_644 },
    }] });
    MeasuredPoint {
        concurrency,
        offline,
        samples,
        failed: 0,
        warmup: Warmup {
            duration_s: 30.0,
            requests_issued: 64,
            requests_completed: 64,
            data_source: "first samples, salted: \"quoted\"".into(),
            concurrency,
        },
        started_at_ms: 1_796_047_208_000,
        config: json!({ "type": "online", "settings": { "load_pattern": { "type": "concurrency", "target_concurrency": concurrency } } }),
        accuracy: accuracy.then_some(scores),
    }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub fn submission() -> Submission {
    let points = [(2, true), (3, false), (4, true), (8, true), (12, false), (24, false), (36, true)];
    Submission {
        organisation: "ExampleOrg".into(),
        id: "sub-1".into(),
        system: "sim_1x".into(),
        model: "llama3_1-8b".into(),
        dataset: DATASET.0.into(),
        dataset_samples: DATASET.1,
        target_cohort: "2026-11-C0".into(),
        c_max: 36,
        system_desc: object(json!({
            "system_name": "Simulated", "shortened_system_name": "Sim", "system_availability_status": "RDI",
            "system_size": "1 node", "system_node_ensemble_count": 1, "system_node_ensemble_total": 1, "division": "RDI",
            "node_types": [{
                "system_node_ensemble_id": 1, "number_of_nodes": 1, "host_processor_core_count": 2,
                "host_memory_configuration": "1x24GB", "host_network_card_count": "1", "driver": "none", "filesystem": "ext4",
            }],
        })),
        disclosure: object(json!({
            "division": "RDI", "model_precision": "bf16", "link_to_model": "https://example.org/m",
            "dataset_name": "gpqa", "dataset_type": "Performance", "dataset_link": "https://example.org/d",
        })),
        source: ("server".into(), "How to run it.\n".into()),
        docs: "Notes.\n".into(),
        version: "0.1.0".into(),
        points: points
            .map(|(c, accuracy)| point(c, if c == 36 { Offline::Elected } else { Offline::None }, accuracy))
            .into(),
    }
}

#[test]
fn an_exported_curve_passes_the_checker_without_a_finding() {
    let folder = export(&submission()).unwrap();
    let findings = check(&folder);
    assert!(findings.is_empty(), "{findings:#?}");
    // For the official checker and viewer: TAILBOUND_EXPORT names a folder to write to.
    if let Some(dir) = std::env::var_os("TAILBOUND_EXPORT") {
        for (path, content) in folder.files() {
            let path = std::path::Path::new(&dir).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }
}

#[test]
fn the_summary_counts_what_happened() {
    let mut s = submission();
    s.points[0].failed = 3;
    s.points[0].samples.truncate(500);
    let folder = export(&s).unwrap();
    let file = folder.get("ExampleOrg/sub-1/results/sim_1x/llama3_1-8b/r2/result_summary.json").unwrap();
    let v: Value = serde_json::from_slice(file).unwrap();
    assert_eq!((v["n_samples_issued"].as_u64(), v["n_samples_completed"].as_u64()), (Some(503), Some(500)));
    assert_eq!(v["output_sequence_lengths"]["total"].as_u64(), Some(64_000));
    assert_eq!(v["ttft"]["early_stopping_percentiles"]["99.9"], Value::Null);
    assert!(v["ttft"]["early_stopping_percentiles"]["90.0"].as_i64() >= v["ttft"]["percentiles"]["90.0"].as_i64());
    let counts: u64 = v["tpot"]["histogram"]["counts"].as_array().unwrap().iter().map(|c| c.as_u64().unwrap()).sum();
    assert_eq!(counts, 500);
}

#[test]
fn what_cannot_be_exported_is_refused() {
    let refused = |change: fn(&mut Submission)| -> CannotExport {
        let mut s = submission();
        change(&mut s);
        export(&s).map(|_: Folder| ()).unwrap_err()
    };
    assert!(matches!(refused(|s| s.id = "../x".into()), CannotExport::Name { .. }));
    assert_eq!(refused(|s| s.points[2].samples.clear()), CannotExport::Empty(4));
    assert_eq!(refused(|s| s.points[2].concurrency = 3), CannotExport::Twice(3));
    assert_eq!(refused(|s| s.dataset_samples = 0), CannotExport::NoDataset);
}
