use super::make::{at, facts, failed, never_sent, row, summary};
use tailbound_clock::Dur;
use tailbound_record::{Cause, Moment, Row};
use tailbound_stats::{RunFacts, summarize};

/// Sixteen-token answers of `life` ms, one token every `life / 16`.
fn answer(id: u64, from: u64, life: u64) -> Row {
    let events: Vec<(u64, u16)> = (1..=16).map(|i| (from + life * i / 16, 1)).collect();
    row(id, from, &events)
}

#[test]
fn requests_one_after_the_other_are_one_in_flight() {
    let rows: Vec<_> = (0..50).map(|i| answer(i, i * 20, 20)).collect();
    let s = summary(&rows, 1000);
    assert_eq!((s.concurrency.peak, s.concurrency.mean), (1, Some(1.0)));
    // vLLM's second-wide count takes them all for concurrent.
    assert_eq!(s.vllm.max_concurrent_requests, 50);
}

#[test]
fn a_failed_request_is_in_flight_too() {
    let s = summary(&[answer(0, 0, 100), failed(1, 50, 100, Cause::Reset)], 100);
    assert_eq!((s.concurrency.peak, s.concurrency.mean), (2, Some(1.5)));
    assert_eq!(s.vllm.max_concurrent_requests, 1);
}

#[test]
fn time_at_the_cap_is_shared_out_exactly() {
    let mut f = facts(100);
    f.max_concurrency = Some(2);
    let s = summarize(&[answer(0, 0, 100), answer(1, 25, 50)], &f);
    assert_eq!(s.concurrency.at_cap, Some(0.5));
}

#[test]
fn the_peak_second_may_begin_anywhere_and_counts_tokens() {
    // 10 tokens at 0.9 s and 10 at 1.1 s: one second holds both, no calendar second does.
    let s = summary(&[row(0, 0, &[(900, 10), (1100, 10), (3000, 1)])], 3000);
    assert_eq!(s.throughput.peak_output_tokens_per_s, Some(20.0));
    assert_eq!(s.vllm.max_output_tokens_per_s, 1.0);
    // Half-open: events a whole second apart are not in one.
    let s = summary(&[row(0, 0, &[(1000, 4), (2000, 5)])], 3000);
    assert_eq!(s.throughput.peak_output_tokens_per_s, Some(5.0));
}

#[test]
fn events_without_a_count_share_the_usage() {
    let mut r = row(0, 0, &[(100, 0), (200, 0), (300, 0)]);
    r.tokens.output_server = Some(10);
    let s = summary(&[r], 1000);
    assert_eq!(s.throughput.peak_output_tokens_per_s, Some(10.0));
}

#[test]
fn lock_step_cohorts_keep_their_rate() {
    // Ten cohorts of 8, each 2 s long, 10 ms apart: the window holds them all, and the rate is 8 / 2.01 s.
    let rows: Vec<_> = (0..80).map(|i| answer(i, (i / 8) * 2010, 2000)).collect();
    let mut f = facts(20_100);
    f.max_concurrency = Some(8);
    let s = summarize(&rows, &f);
    let w = s.steady.expect("there is a plateau");
    assert_eq!((w.from, w.until), (at(0), at(9 * 2010 + 2000)));
    assert!((w.requests_per_s - 80.0 / 20.09).abs() < 1e-9, "{}", w.requests_per_s);
    // The last tokens of the last cohort come at the window's end, which is not part of it.
    assert!((w.output_tokens_per_s - (80.0 * 16.0 - 8.0) / 20.09).abs() < 1e-9);
    assert!(!w.short && w.concurrency > 7.9);
    let (low, high) = w.output_interval.expect("twenty full batches");
    assert!(low < w.output_tokens_per_s && w.output_tokens_per_s < high);
}

#[test]
fn the_window_leaves_out_ramp_up_and_drain() {
    // Places fill one a second for 4 s, are kept full until 24 s, and drain until 27 s.
    let mut rows = Vec::new();
    for lane in 0..4u64 {
        let mut t = lane * 1000;
        while t < 24_000 + lane * 1000 {
            rows.push(answer(rows.len() as u64, t, 1000));
            t += 1000;
        }
    }
    let mut f = facts(27_000);
    f.max_concurrency = Some(4);
    let w = summarize(&rows, &f).steady.expect("there is a plateau");
    assert_eq!((w.from, w.until), (at(3000), at(24_000)));
    assert_eq!((w.concurrency, w.requests_per_s), (4.0, 4.0));
    assert_eq!(w.length(), Dur::from_secs(21));
    assert_eq!(w.input_tokens_per_s, Some(40.0));
}

#[test]
fn an_open_loop_is_steady_while_arrivals_last() {
    let rows: Vec<_> = (0..100).map(|i| answer(i, i * 200, 1000)).collect();
    let f = RunFacts { request_rate: Some(5.0), ..facts(20_800) };
    let w = summarize(&rows, &f).steady.expect("arrivals last long enough");
    assert_eq!((w.from, w.until, w.target), (at(1000), at(19_800), None));
    assert!((w.requests_per_s - 5.0).abs() < 1e-9 && (w.concurrency - 5.0).abs() < 1e-9);
}

#[test]
fn arrivals_that_a_stopped_run_never_sent_are_no_part_of_its_window() {
    let mut rows: Vec<_> = (0..50).map(|i| answer(i, i * 200, 1000)).collect();
    rows.extend((50..100).map(|i| never_sent(i, i * 200)));
    let f = RunFacts { request_rate: Some(5.0), interrupted: true, ..facts(10_800) };
    let w = summarize(&rows, &f).steady.expect("arrivals last long enough");
    assert_eq!((w.from, w.until), (at(1000), at(9_800)));
    assert!((w.requests_per_s - 5.0).abs() < 1e-9, "{w:?}");
}

#[test]
fn a_row_without_a_stream_end_lasts_until_the_last_that_is_known() {
    let mut r = answer(0, 0, 100);
    r.at.clear(Moment::StreamEnd);
    assert_eq!(summary(&[r], 200).concurrency.mean, Some(0.5));
}
