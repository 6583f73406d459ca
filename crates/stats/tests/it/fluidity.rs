//! etalon's metrics, against figures made with etalon's own code.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use proptest::prelude::*;
use serde_json::Value;
use tailbound_stats::fluidity::{Deadlines, Fluidity, PrefillProfile, TokenRates, least_tbt};

fn vectors() -> Option<Value> {
    tailbound_testdata::read("systems/etalon_vectors.json").map(|text| serde_json::from_str(&text).unwrap())
}

fn gaps(case: &Value) -> Vec<f64> {
    case["inter_token_times"].as_array().unwrap().iter().map(|t| t.as_f64().unwrap()).collect()
}

fn due(case: &Value) -> Deadlines {
    let judged = !case["should_ignore_first_token"].as_bool().unwrap();
    let ttft = case["ttft_deadline"].as_f64().filter(|_| judged);
    Deadlines { ttft, tbt: case["tbt_deadline"].as_f64().unwrap() }
}

#[test]
fn etalons_request_figures_are_met_exactly() {
    let Some(vectors) = vectors() else { return };
    for case in vectors["cases"].as_array().unwrap() {
        let (name, gaps, due) = (&case["name"], gaps(case), due(case));
        let f = Fluidity::of(&gaps, due);
        assert_eq!(f.missed as f64, case["missed_deadlines"].as_f64().unwrap(), "{name}");
        assert_eq!(f.deadlines as f64, case["total_deadlines"].as_f64().unwrap(), "{name}");
        assert_eq!(f.miss_rate(), case["deadline_miss_rate"].as_f64().unwrap(), "{name}");
        assert_eq!(f.index(), case["fluidity_index_code"].as_f64().unwrap(), "{name}");
        if let Some(by_tokens) = case["fluidity_index_docs_token_based"].as_f64() {
            assert_eq!(f.index_by_tokens(), Some(by_tokens), "{name}");
        }
        if let Some(least) = case["min_tbt_deadline_for_10pct_miss"].as_f64() {
            assert_eq!(least_tbt(&gaps, due.ttft, 0.1), least, "{name}");
        }
    }
}

#[test]
fn etalons_service_level_and_throughputs_are_met_exactly() {
    let Some(vectors) = vectors() else { return };
    let named = |case: &&Value| case["name"].as_str().unwrap().starts_with("random_");
    let requests: Vec<Vec<f64>> = vectors["cases"].as_array().unwrap().iter().filter(named).map(gaps).collect();
    let level = &vectors["service_level"];
    let due = Deadlines { ttft: level["ttft_deadline"].as_f64(), tbt: level["tbt_deadline"].as_f64().unwrap() };
    let all = requests.iter().map(|r| Fluidity::of(r, due)).fold(Fluidity::default(), Fluidity::and);
    assert_eq!(
        (all.missed as f64, all.deadlines as f64),
        (level["missed"].as_f64().unwrap(), level["total"].as_f64().unwrap())
    );
    assert_eq!(all.miss_rate(), level["miss_rate"].as_f64().unwrap());

    let after: Vec<Vec<f64>> = requests.iter().map(|r| r[1..].to_vec()).collect();
    let rates = TokenRates::of(&after).unwrap();
    let want = |key: &str| vectors["throughput"][key].as_f64().unwrap();
    // Sums in another order than numpy's pairwise one differ in the last bits.
    let same = |a: f64, b: f64| assert!((a - b).abs() <= 4.0 * f64::EPSILON * b, "{a} {b}");
    same(rates.by_tpot, want("tpot_based"));
    same(rates.by_tbt, want("tbt_p99_based"));
    same(rates.fluid, want("fluid_token_generation_rate"));

    for (tbt, rate) in vectors["p99_request_miss_rate_at_tbt"].as_object().unwrap() {
        let due = Deadlines { ttft: None, tbt: tbt.parse().unwrap() };
        let rates = requests.iter().map(|r| Fluidity::of(r, due).miss_rate()).collect();
        same(tailbound_stats::Dist::new(rates).percentile(99.0).unwrap(), rate.as_f64().unwrap());
    }
}

#[test]
fn a_prefill_profile_finds_the_law_it_was_measured_from() {
    let law = |n: f64| 0.007 + 1.8e-5 * n + 5e-10 * n * n;
    let measured: Vec<(f64, f64)> = (8..=14).map(|i| f64::from(1 << i)).map(|n| (n, law(n))).collect();
    let profile = PrefillProfile::fit(&measured).unwrap();
    for n in [100.0, 3000.0, 16_000.0] {
        assert!((profile.seconds(n) / law(n) - 1.0).abs() < 1e-6, "{n}");
    }
    assert_eq!(PrefillProfile::fit(&measured[..2]), None);
}

proptest! {
    #[test]
    fn the_index_never_rises_when_a_token_is_later(
        gaps in prop::collection::vec(0.0..0.2f64, 1..40), which in 0usize..40, by in 0.0..1.0f64,
    ) {
        let due = Deadlines { ttft: Some(0.1), tbt: 0.05 };
        let at = which % gaps.len();
        let mut later = gaps.clone();
        later[at] += by;
        let (a, b) = (Fluidity::of(&gaps, due), Fluidity::of(&later, due));
        prop_assert!(a.late <= a.missed.max(a.late) && a.tokens == gaps.len() as u64);
        // A later token leaves less slack to all that follow.
        prop_assert!(b.late >= a.late);
        prop_assert!(a.index() >= 0.0 && a.index() <= 1.0);
    }
}
