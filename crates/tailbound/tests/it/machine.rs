//! What this machine's noise may do to a test, and what it may not.

use serde_json::Value;

/// Reasons that a busy machine can give a good run.
const NOISE: [&str; 7] =
    ["sends_late", "client_saturated", "reads_shared", "reader_late", "noisy_machine", "rate_short", "too_few_samples"];

/// The codes of a verdict's reasons.
pub fn codes(result: &Value) -> Vec<String> {
    let verdict = &result["tailbound"]["verdict"];
    let reasons = verdict["reasons"].as_array().unwrap_or_else(|| panic!("no reasons in {verdict}"));
    reasons.iter().map(|r| r["code"].as_str().unwrap().to_owned()).collect()
}

/// Asserts that nothing but noise is held against a run.
pub fn only_noise(result: &Value) {
    for code in codes(result) {
        assert!(NOISE.contains(&code.as_str()), "{code} in {}", result["tailbound"]["verdict"]);
    }
}

/// Where data for tests is, if it is there. In a complete check it must be.
pub fn data(path: &str) -> Option<String> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let root = std::env::var("TAILBOUND_DATA").unwrap_or_else(|_| default.to_owned());
    let file = format!("{root}/{path}");
    if std::path::Path::new(&file).exists() {
        return Some(file);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{file} is missing");
    eprintln!("skipped: {file} is missing");
    None
}
