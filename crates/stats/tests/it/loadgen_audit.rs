use tailbound_stats::loadgen::accuracy::{self, Answer};
use tailbound_stats::loadgen::audit::{EOS, TEST06_CONFIG, test06, test09};
use tailbound_stats::loadgen::{Scenario, Settings, Source, conf};

use super::data;

fn answer(seq: u64, tokens: &[u32], first: u32, count: i64) -> Answer {
    let bytes = |ids: &[u32]| ids.iter().flat_map(|t| t.to_le_bytes()).collect();
    Answer { seq, index: 0, data: bytes(tokens), first_token: Some(bytes(&[first])), tokens: Some(count) }
}

#[test]
fn test06_finds_each_inconsistency() {
    assert!(test06(&[answer(0, &[5, 6, 2], 5, 3)], false, EOS).passes());
    assert_eq!(test06(&[answer(1, &[5, 6, 2], 6, 3)], false, EOS).first_token, [1]);
    assert!(test06(&[answer(1, &[5, 6, 2], 6, 3)], true, EOS).passes());
    assert_eq!(test06(&[answer(2, &[5, 2, 2], 5, 3)], false, EOS).eos, [2]);
    assert_eq!(test06(&[answer(3, &[5, 6], 5, 3)], false, EOS).length, [3]);
    assert!(!test06(&[], false, EOS).passes());
}

#[test]
fn captured_token_logs_are_read_as_tokens() {
    let Some(folder) = data::folder() else { return };
    let log = data::read(&folder.join("runs/35_server_token_accuracy"), "mlperf_log_accuracy.json");
    let answers = accuracy::parse(&log).unwrap();
    // The harness answered with one id and claimed two or five.
    let found = test06(&answers, false, EOS);
    assert!(found.first_token.is_empty() && found.length.len() == answers.len());
    assert_eq!(test09(&answers, 3.5).map(|r| r.1), Some(true));
    assert_eq!(test09(&answers, 6.0).map(|r| r.1), Some(false));
}

#[test]
fn the_audit_configuration_applies_over_a_user_configuration() {
    let mut s = Settings::official("llama2-70b", Scenario::Server);
    let remarks = s.apply(&conf::parse(TEST06_CONFIG), "llama2-70b", Source::Audit);
    assert!(remarks.is_empty(), "{remarks:?}");
    assert_eq!((s.accuracy_log_sampling_target, s.min_query_count, s.min_duration_ms), (100, 100, 0));
    assert!(!s.sample_concatenate_permutation && s.use_token_latencies);
}
