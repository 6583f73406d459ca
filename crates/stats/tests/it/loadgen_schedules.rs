use tailbound_stats::loadgen::early_stopping;
use tailbound_stats::loadgen::schedule::{self, Phase, Sequence, SetChoice};
use tailbound_stats::loadgen::{Effective, Library, Scenario, Settings};

use super::data;

#[test]
fn poisson_schedules_are_loadgens_to_the_nanosecond() {
    let Some(vectors) = data::vectors("poisson_schedule.json") else { return };
    let vectors = vectors.as_array().unwrap();
    assert_eq!(vectors.len(), 25);
    for v in vectors {
        let want = data::u64s(&v["scheduled_ns"]);
        let settings = Settings {
            scenario: Scenario::Server,
            server_target_qps: v["target_qps"].as_f64().unwrap(),
            schedule_rng_seed: v["schedule_rng_seed"].as_u64().unwrap(),
            min_query_count: want.len() as u64,
            min_duration_ms: 0,
            ..Settings::default()
        };
        let library = Library { total: 64, performance: 64 };
        let e = Effective::of(&settings, library);
        let set = &schedule::loadable_sets(&e, library, Phase::Performance, SetChoice::FirstN)[0];
        let made = schedule::generate(&e, set, Phase::Performance, &mut Sequence::default());
        let got: Vec<u64> = made.queries.iter().map(|q| q.due_ns).collect();
        assert_eq!(got, want, "seed {} at {}", v["seed_name"], v["target_qps"]);
    }
}

#[test]
fn sample_indices_are_loadgens() {
    let Some(vectors) = data::vectors("sample_indices.json") else { return };
    for v in vectors.as_array().unwrap() {
        let mut settings: Settings = serde_json::from_value(v["settings"].clone()).unwrap();
        settings.scenario = Scenario::named(v["scenario"].as_str().unwrap()).unwrap();
        let library =
            Library { total: v["qsl_total"].as_u64().unwrap(), performance: v["qsl_performance"].as_u64().unwrap() };
        let e = Effective::of(&settings, library);
        let set = &schedule::loadable_sets(&e, library, Phase::Performance, SetChoice::FirstN)[0];
        let made = schedule::generate(&e, set, Phase::Performance, &mut Sequence::default());
        let loaded: Vec<u64> = set.samples.iter().map(|&s| u64::from(s)).collect();
        let issued: Vec<u64> = made.queries.iter().flat_map(|q| &q.samples).map(|&s| u64::from(s)).collect();
        let want_loaded = data::u64s(&v["loaded_set_first"]);
        let want_issued = data::u64s(&v["issued_first"]);
        assert_eq!(loaded.len() as u64, v["loaded_set_len"].as_u64().unwrap(), "{}", v["name"]);
        assert_eq!(loaded[..want_loaded.len()], want_loaded, "{}", v["name"]);
        assert_eq!(issued[..want_issued.len()], want_issued, "{}", v["name"]);
    }
}

#[test]
fn early_stopping_tables_are_loadgens() {
    let Some(vectors) = data::vectors("early_stopping.json") else { return };
    for table in vectors["tables"].as_array().unwrap() {
        let p = table["percentile"].as_f64().unwrap();
        for (t, want) in data::u64s(&table["h_min_for_t_0_to_200"]).into_iter().enumerate() {
            assert_eq!(early_stopping::under_needed(t as u64, p), want, "h({t}) at {p}");
        }
        for (t, want) in table["h_min_for_larger_t"].as_object().unwrap() {
            let t: u64 = t.parse().unwrap();
            assert_eq!(early_stopping::under_needed(t, p), want.as_u64().unwrap(), "h({t}) at {p}");
        }
    }
    for (p, allowed) in vectors["max_overlatency_allowed"].as_object().unwrap() {
        for (n, want) in allowed.as_object().unwrap() {
            let got = early_stopping::over_allowed(n.parse().unwrap(), p.parse().unwrap());
            assert_eq!(got, want.as_u64(), "{n} queries at {p}");
        }
    }
}
