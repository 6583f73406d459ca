use super::make::{MS, at, facts, failed, ms, row, scheduled, summary};
use tailbound_record::{Cause, Moment};
use tailbound_stats::{TokenSource, summarize};

#[test]
fn bundled_tokens_make_vllms_itl_longer_than_its_tpot() {
    // Issue 2's worked example: 5 tokens as 1, then 3 bundled, then 1, at 0, 40 and 80 ms after the first.
    let s = summary(&[row(0, 0, &[(100, 1), (140, 3), (180, 1)])], 200);
    assert_eq!(ms(s.latency.icl.mean()), Some(40.0));
    assert_eq!(ms(s.latency.tpot_vllm.mean()), Some(20.0));
    assert_eq!(ms(s.latency.tpot.mean()), Some(20.0));
    // Shared out, the gaps are 40/3 three times and 40 once: their mean is the TPOT.
    assert_eq!(s.latency.itl.n(), 4);
    assert_eq!(ms(s.latency.itl.mean()), Some(20.0));
    assert_eq!(ms(s.latency.tpot_over_n.mean()), Some(16.0));
    assert_eq!(ms(s.latency.tpot_incl_ttft.mean()), Some(36.0));
    assert_eq!(s.latency.interactivity.mean(), Some(50.0));
    assert_eq!(s.tokens.per_event(), Some(5.0 / 3.0));
}

#[test]
fn tokens_of_the_first_event_are_not_decode_steps() {
    // 9 tokens, 5 of them in the first event: four steps of 10 ms.
    let s = summary(&[row(0, 0, &[(50, 5), (70, 2), (90, 2)])], 100);
    assert_eq!(ms(s.latency.tpot.mean()), Some(10.0));
    assert_eq!(ms(s.latency.tpot_vllm.mean()), Some(5.0));
}

#[test]
fn an_answer_in_one_event_has_no_tpot() {
    let s = summary(&[row(0, 0, &[(50, 7)])], 100);
    assert!(s.latency.tpot.is_empty() && s.latency.itl.is_empty() && s.latency.interactivity.is_empty());
    // vLLM divides nothing by n − 1.
    assert_eq!(s.latency.tpot_vllm.mean(), Some(0.0));
    let one = summary(&[row(0, 0, &[(50, 1)])], 100);
    assert!(one.latency.tpot_vllm.is_empty());
    assert_eq!(ms(one.latency.ttft.mean()), Some(50.0));
}

#[test]
fn both_starts_are_kept_apart() {
    let late = scheduled(row(0, 30, &[(100, 1), (110, 1)]), 0, 20);
    let s = summary(&[late], 200);
    assert_eq!(ms(s.latency.ttft.mean()), Some(70.0));
    assert_eq!(ms(s.latency.ttft_scheduled.mean()), Some(100.0));
    assert_eq!(ms(s.latency.e2e.mean()), Some(80.0));
    assert_eq!(ms(s.latency.e2e_scheduled.mean()), Some(110.0));
    assert_eq!(ms(s.latency.client_queue.mean()), Some(20.0));
    assert_eq!(ms(s.latency.lateness.mean()), Some(10.0));
    assert_eq!(s.queued_share.map(|q| (q * 110.0).round()), Some(20.0));
}

#[test]
fn connecting_is_a_departure_but_no_part_of_ttft() {
    let mut r = scheduled(row(0, 30, &[(100, 1)]), 0, 0);
    r.at.set(Moment::ConnectStart, at(1));
    r.at.set(Moment::Connected, at(20));
    r.at.set(Moment::TlsDone, at(29));
    let s = summary(&[r.clone()], 100);
    assert_eq!(ms(s.latency.lateness.mean()), Some(1.0));
    assert_eq!(ms(s.latency.connect.mean()), Some(28.0));
    assert_eq!(ms(s.latency.ttft.mean()), Some(70.0));
    // A connection opened ahead of the release says nothing about when the request left.
    r.at.set(Moment::Released, at(25));
    assert_eq!(ms(summary(&[r], 100).latency.lateness.mean()), Some(5.0));
}

#[test]
fn failures_enter_no_latency_but_stand_above_all_of_them() {
    let rows: Vec<_> = (0..9).map(|i| row(i, 0, &[(10 + i, 1)])).chain([failed(9, 0, 5, Cause::Reset)]).collect();
    let s = summary(&rows, 100);
    assert_eq!((s.requests.completed, s.requests.failed, s.latency.ttft.n()), (9, 1, 9));
    assert_eq!(ms(s.latency.ttft.nearest_rank(90.0)), Some(18.0));
    assert_eq!(s.latency.ttft.nearest_rank_with_failures(91.0, s.misses()), Some(f64::INFINITY));
    assert_eq!((s.failures.len(), s.failures[0].count, s.failures[0].sample.0), (1, 1, 9));
}

#[test]
fn what_nobody_measured_is_missing() {
    let s = summary(&[failed(0, 0, 5, Cause::Status(500))], 0);
    assert_eq!(s.latency.ttft.mean(), None);
    assert_eq!(s.throughput.requests_per_s, None);
    assert_eq!(s.tokens.input, None);
    assert_eq!(s.tokens.output_source(), None);
    assert_eq!(s.steady, None);
    assert_eq!(s.vllm.request_throughput, 0.0);
    assert!(summarize(&[], &facts(1)).latency.e2e.is_empty());
}

#[test]
fn without_usage_the_tokens_its_events_state_count() {
    let mut r = row(0, 0, &[(10, 1), (20, 2), (30, 1)]);
    r.tokens.output_server = None;
    r.tokens.output_tokenized = Some(3);
    assert_eq!(r.output_tokens(), 4);
    let s = summary(&[r.clone()], 100);
    assert_eq!((s.tokens.output, s.tokens.output_source()), (4, Some(TokenSource::Server)));
    // Where one event does not say, the sum would be short.
    r.chunks.push(at(40), 3, 0, true);
    assert_eq!(r.output_tokens(), 3);
    assert_eq!(summary(&[r], 100).tokens.output_source(), Some(TokenSource::Tokenizer));
}

#[test]
fn a_usage_of_zero_for_an_answer_with_tokens_is_not_believed() {
    let mut r = row(0, 0, &[(10, 0), (20, 0), (30, 0)]);
    assert_eq!(r.tokens.output_server, Some(0));
    let s = summary(&[r.clone()], 100);
    assert_eq!((s.tokens.output, s.tokens.output_source()), (3, Some(TokenSource::Events)));
    r.tokens.output_tokenized = Some(6);
    let s = summary(&[r], 100);
    assert_eq!((s.tokens.output, s.tokens.output_source()), (6, Some(TokenSource::Tokenizer)));
}

#[test]
fn events_that_share_a_read_are_counted_and_set_apart() {
    // Every other event shares the read of the one before it.
    let mut r = row(0, 0, &[]);
    for i in 0..10u32 {
        r.chunks.push(at(100 + 20 * u64::from(i / 2)), i / 2, 1, true);
    }
    r.at.set(Moment::FirstToken, at(100));
    r.at.set(Moment::LastToken, at(180));
    r.tokens.output_server = Some(10);
    let s = summary(&[r], 200);
    assert_eq!((s.coalesced.events, s.coalesced.shared, s.coalesced.first_tokens), (9, 5, 1));
    assert_eq!(s.coalesced.median_read_gap, Some((20 * MS) as f64));
    // Each read held two events: no gap is known exactly.
    assert_eq!(s.trusted_gaps().n(), 0);
    assert_eq!(s.latency.icl.n(), 9);

    let plain = summary(&[row(0, 0, &[(10, 1), (20, 1), (30, 1)])], 100);
    assert_eq!(plain.coalesced.share(), Some(0.0));
    assert_eq!(plain.trusted_gaps().n(), 2);
}
