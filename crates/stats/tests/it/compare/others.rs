//! The vectors of `tests/compare_vectors.py`: scipy's bootstrap, statsmodels' Holm, arch's block lengths.

use super::{facts, rows};
use serde_json::Value;
use tailbound_stats::compare::{Design, Pairing, Run, Side, block_length, compare, holm};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../fixtures/compare.json")).unwrap()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[test]
fn intervals_are_scipys() {
    let vectors = vectors();
    let cases = vectors["bootstrap"].as_array().unwrap();
    assert!(cases.len() >= 6);
    for case in cases {
        let name = format!("{}_ttft", case["measure"].as_str().unwrap());
        let paired = case["paired"].as_bool().unwrap();
        let side = |key: &str| rows(floats(&case[key]).into_iter().map(|v| v as u64));
        let (a, b) = (side("a"), side("b"));
        let (fa, fb) = (facts(&a), facts(&b));
        let of = |rows, facts| Side { name: "", runs: vec![Run { rows, facts, valid: true }] };
        let pairing = if paired { Pairing::Requests } else { Pairing::None };
        let design =
            Design { secondary: Vec::new(), replicates: 10_000, ..Design::new(name.parse().unwrap(), pairing) };
        let comparison = compare(&[of(&a, &fa), of(&b, &fb)], &design);
        let finding = comparison.contrasts[0].primary();
        let ours = finding.within.unwrap();
        let theirs = |key: &str| case[key].as_f64().unwrap();
        assert!(
            (ours.value.ln() - theirs("value")).abs() < 1e-9,
            "{name}: {} against {}",
            ours.value.ln(),
            theirs("value")
        );
        // 20,000 and 10,000 resamplings leave about 2 % of the width to chance; ours reach out by Student's t for 199 degrees of freedom, 0.6 %,
        // and stretches that correlations of the sample asked for may be longer than a request.
        let width = theirs("high") - theirs("low");
        for (ours, theirs) in [(ours.low.ln(), theirs("low")), (ours.high.ln(), theirs("high"))] {
            let off = (ours - theirs).abs() / width;
            assert!(
                off < 0.05 + 0.05 * (finding.block - 1.0),
                "{name} paired {paired}, blocks {}: off by {off} of the width",
                finding.block
            );
        }
    }
}

#[test]
fn block_lengths_are_archs() {
    for (i, case) in vectors()["blocks"].as_array().unwrap().iter().enumerate() {
        let (ours, theirs) = (block_length(&floats(&case["series"])), case["circular"].as_f64().unwrap());
        // Theirs may fall below one request; ours doesn't.
        assert!((ours - theirs.max(1.0)).abs() < 1e-6 * theirs.max(1.0), "series {i}: {ours} against {theirs}");
    }
}

#[test]
fn adjusted_p_values_are_statsmodels() {
    for case in vectors()["holm"].as_array().unwrap() {
        for (ours, theirs) in holm(&floats(&case["p"])).iter().zip(floats(&case["adjusted"])) {
            assert!((ours - theirs).abs() < 1e-12, "{ours} against {theirs}");
        }
    }
}
