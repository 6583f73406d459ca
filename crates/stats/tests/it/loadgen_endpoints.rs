use serde_json::Value;
use tailbound_stats::loadgen::endpoints::client;
use tailbound_stats::loadgen::endpoints::regions::{NoRegions, Region, Regions};
use tailbound_stats::loadgen::endpoints::trend;

use super::data;

#[test]
fn client_gaps_and_orders_are_the_reference_clients() {
    let Some(vectors) = data::vectors("endpoints_client_vectors.json") else { return };
    for v in vectors["poisson_delay_ns"].as_array().unwrap() {
        let want = data::u64s(&v["delay_ns"]);
        let seed = v["seed"].as_u64().unwrap();
        let got: Vec<u64> = client::poisson_gaps(seed, v["target_qps"].as_f64().unwrap()).take(want.len()).collect();
        assert_eq!(got, want, "seed {seed} at {}", v["target_qps"]);
    }
    for v in vectors["sample_order"].as_array().unwrap() {
        let (seed, n) = (v["seed"].as_u64().unwrap(), v["n_samples_in_dataset"].as_u64().unwrap() as u32);
        let want = data::u64s(&v["without_replacement"]);
        let got: Vec<u64> = client::order_without_replacement(seed, n).take(want.len()).map(u64::from).collect();
        assert_eq!(got, want, "without replacement, seed {seed} of {n}");
        let want = data::u64s(&v["with_replacement"]);
        let got: Vec<u64> = client::order_with_replacement(seed, n).take(want.len()).map(u64::from).collect();
        assert_eq!(got, want, "with replacement, seed {seed} of {n}");
    }
}

#[test]
fn percentiles_and_early_stopping_estimates_are_the_reference_clients() {
    let Some(vectors) = data::vectors("endpoints_client_vectors.json") else { return };
    let mut compared = 0;
    for v in vectors["es_and_percentiles"].as_array().unwrap() {
        let n = v["n"].as_u64().unwrap();
        for (p, t) in v["t"].as_object().unwrap() {
            let p: f64 = p.parse().unwrap();
            assert_eq!(
                tailbound_stats::loadgen::early_stopping::estimate_rank(n, p / 100.0),
                t.as_u64(),
                "rank of P{p} of {n}"
            );
        }
        let Some(values) = v["values"].as_array() else { continue };
        let mut sorted: Vec<i64> = values.iter().map(|v| v.as_i64().unwrap()).collect();
        sorted.sort_unstable();
        for p in client::GRID {
            let key = format!("{p:.1}");
            assert_eq!(client::percentile(&sorted, p), v["percentiles"][&key].as_i64(), "P{p} of {n}");
            let estimate = client::early_stopping_estimate(&sorted, p);
            assert_eq!(estimate, v["early_stopping"][&key].as_i64(), "estimate of P{p} of {n}");
            compared += 1;
        }
    }
    assert!(compared >= 80);
}

#[test]
fn region_tables_are_the_official_ones() {
    let Some(vectors) = data::vectors("endpoints_client_vectors.json") else { return };
    let tables = vectors["regions"].as_array().unwrap();
    assert_eq!(tables.len(), 105);
    for v in tables {
        let ours = Regions::of(v["c_max"].as_u64().unwrap(), v["c_min"].as_u64().unwrap()).unwrap();
        assert_eq!(&serde_json::to_value(&ours).unwrap(), v);
    }
    assert_eq!(Regions::of(32, 4), Err(NoRegions::MaxTooLow(32)));
    assert_eq!(Regions::of(64, 33), Err(NoRegions::MinOutOfRange { c_min: 33 }));
    let r = Regions::of(256, 4).unwrap();
    assert_eq!(
        (r.place(4), r.place(48), r.place(282), r.place(283)),
        (Some(Region::LowLatency), Some(Region::HighConcurrency), Some(Region::Margin), None)
    );
}

#[test]
fn trend_statistics_are_the_reference_detectors() {
    let Some(vectors) = data::vectors("steady_state_trend_vectors.json") else { return };
    let vectors = vectors.as_array().unwrap();
    assert_eq!(vectors.len(), 42);
    for v in vectors {
        let f = |key: &str| v[key].as_f64().unwrap();
        let near = |got: f64, want: f64, what: &str| {
            assert!((got - want).abs() <= 1e-12 * want.abs().max(1.0), "{} {what}: {got} {want}", v["kind"]);
        };
        let series: Vec<f64> = v["values"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        let mk = trend::mann_kendall(&series).unwrap();
        assert_eq!(mk.s, v["mk_s"].as_i64().unwrap());
        near(mk.variance, f("mk_var"), "variance");
        near(mk.p, f("mk_p"), "p");
        near(mk.hamed_rao_variance, f("hr_var"), "Hamed–Rao variance");
        near(mk.hamed_rao_p, f("hr_p"), "Hamed–Rao p");
        near(trend::relative_drift(&series).unwrap(), f("rel_drift"), "drift");
        near(trend::variation(&series).unwrap(), f("cov"), "variation");
        let pettitt = trend::pettitt(&series).unwrap();
        assert_eq!(pettitt.change as u64, v["pettitt_cp"].as_u64().unwrap());
        near(pettitt.k, f("pettitt_k"), "K");
        near(pettitt.p, f("pettitt_p"), "Pettitt p");
        assert_eq!(v["cov_ok_008"], Value::from(f("cov") <= 0.08));
    }
}
