//! The compiled-in coefficients and the rule for mixed steps against the files they come from.

use tailbound_engine::{Batch, PROFILES, Profile, Source};

use tailbound_testdata as data;

#[test]
fn the_table_is_the_file() {
    let Some(text) = data::read("systems/profiles/aic_fit_coefficients.json") else { return };
    let file: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let fits = || PROFILES.iter().filter(|p| p.source == Source::Kernels);
    assert_eq!(file.len(), fits().count());
    for profile in fits() {
        let fit = &file[&format!("{}|{}|{}", profile.model, profile.system, profile.tp)];
        let three = |phase: &str| ["a", "b", "c"].map(|k| fit[phase][k].as_f64().unwrap());
        assert_eq!(three("decode"), profile.law.decode, "{}", profile.name);
        assert_eq!(three("prefill"), profile.law.prefill, "{}", profile.name);
        assert_eq!(fit["prefill"]["knee"].as_f64(), Some(profile.law.knee), "{}", profile.name);
    }
}

fn by_origin(model: &str, system: &str, tp: u32) -> Option<&'static Profile> {
    PROFILES.iter().find(|p| (p.model, p.system, p.tp, p.source) == (model, system, tp, Source::Kernels))
}

/// 144 steps of 8 to 128 decodes at 1,024 tokens of context with a chunk of a prompt beside them.
#[test]
fn mixed_steps_are_as_composed_from_kernels() {
    let Some(text) = data::read("systems/profiles/aic_step_times_vllm.csv") else { return };
    let mut errors = Vec::new();
    for line in text.lines().filter(|l| l.contains(",mixed_ctx")) {
        let field: Vec<&str> = line.split(',').collect();
        let n: f64 = field[4].trim_start_matches("mixed_ctx").parse().unwrap();
        let decodes: u32 = field[5].parse().unwrap();
        let context: u64 = field[6].parse().unwrap();
        let batch = Batch {
            decodes,
            decode_tokens: decodes,
            decode_context: context * u64::from(decodes),
            prefills: 1,
            prefill_tokens: n as u32,
            prefill_attention: n * n / 2.0,
            ..Batch::default()
        };
        let profile = by_origin(field[0], field[1], field[3].parse().unwrap()).unwrap();
        errors.push((profile.law.ms(&batch) / field[8].parse::<f64>().unwrap() - 1.0).abs());
    }
    errors.sort_by(f64::total_cmp);
    assert_eq!(errors.len(), 144);
    let (p50, p90) = (errors[72], errors[129]);
    println!("mixed steps: p50 |error| {:.1} %, p90 {:.1} %", 100.0 * p50, 100.0 * p90);
    assert!(p50 < 0.06 && p90 < 0.12, "p50 {p50}, p90 {p90}");
}
