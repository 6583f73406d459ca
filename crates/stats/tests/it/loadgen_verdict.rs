use tailbound_stats::loadgen::log::{BadLog, Log};
use tailbound_stats::loadgen::verdict::{self, CannotJudge};
use tailbound_stats::loadgen::{Mode, trace};

use super::data;
use super::runs::captured;

#[test]
fn a_detail_log_alone_gives_back_the_official_summary_byte_for_byte() {
    for dir in data::runs() {
        let log = Log::parse(&data::read(&dir, "mlperf_log_detail.txt")).unwrap();
        let v = verdict::of_detail(&log).unwrap();
        assert_eq!(v.summary, data::read(&dir, "mlperf_log_summary.txt"), "{}", dir.display());
        assert!(v.contradictions.is_empty(), "{}: {:?}", dir.display(), v.contradictions);
        // A rate logged to a tie is told of even where the guess was right.
        assert!(v.rounded.len() <= 2, "{}: {:?}", dir.display(), v.rounded);
    }
}

#[test]
fn samples_confirm_the_log_they_belong_to_and_contradict_an_edited_one() {
    for dir in data::runs() {
        let c = captured(&dir);
        if c.effective.requested.mode != Mode::PerformanceOnly {
            continue;
        }
        let text = data::read(&dir, "mlperf_log_detail.txt");
        let v = verdict::of_samples(&Log::parse(&text).unwrap(), &c.samples, None).unwrap();
        assert!(v.contradictions.is_empty(), "{}: {:?}", c.name, v.contradictions);
        let flipped = if text.contains("\"value\": \"INVALID\"") {
            text.replace("\"value\": \"INVALID\"", "\"value\": \"VALID\"")
        } else {
            text.replace("\"value\": \"VALID\"", "\"value\": \"INVALID\"")
        };
        let log = Log::parse(&flipped).unwrap();
        assert_eq!(verdict::of_samples(&log, &c.samples, None).unwrap().contradictions.len(), 1, "{}", c.name);
        assert_eq!(verdict::of_detail(&log).unwrap().contradictions.len(), 1, "{}", c.name);
    }
}

#[test]
fn an_edited_latency_is_found_by_the_bound_it_stands_against() {
    let Some(folder) = data::folder() else { return };
    let dir = folder.join("runs/07_server_invalid_perf_constraint");
    let text = data::read(&dir, "mlperf_log_detail.txt").replace(
        "\"key\": \"result_perf_constraints_met\", \"value\": false",
        "\"key\": \"result_perf_constraints_met\", \"value\": true",
    );
    let v = verdict::of_detail(&Log::parse(&text).unwrap()).unwrap();
    assert!(v.contradictions.iter().any(|c| c.contains("constraints met: true")), "{:?}", v.contradictions);
}

#[test]
fn garbled_logs_are_refused_with_the_line_or_key_at_fault() {
    let Some(folder) = data::folder() else { return };
    let text = data::read(&folder.join("runs/06_server_valid"), "mlperf_log_detail.txt");
    assert_eq!(Log::parse("\n\n").unwrap_err(), BadLog::Empty);
    let cut = &text[..text.len() - 40];
    let lines = text.lines().count();
    assert!(matches!(Log::parse(cut).unwrap_err(), BadLog::Line { line, .. } if line == lines));
    let half: String = text.lines().take(lines / 2).map(|l| format!("{l}\n")).collect();
    let missing = verdict::of_detail(&Log::parse(&half).unwrap()).unwrap_err();
    assert!(matches!(missing, CannotJudge::Log(BadLog::Missing { .. })), "{missing}");
    let nonsense = text.replace(
        "\"key\": \"effective_target_qps\", \"value\": 500",
        "\"key\": \"effective_target_qps\", \"value\": fast",
    );
    let bad = verdict::of_detail(&Log::parse(&nonsense).unwrap()).unwrap_err().to_string();
    assert!(bad.contains("effective_target_qps") && bad.contains("fast"), "{bad}");
    assert!(trace::parse("{\"name\":\"Sample\",\"ph\":\"b\",\"ts\":1.000,\"args\":{\"sample_seq\":0").is_err());
}
