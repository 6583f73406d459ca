use tailbound_clock::{Dur, Time};
use tailbound_stats::loadgen::isca2020::{Search, TASKS, Task, judge};
use tailbound_stats::loadgen::round::Stop;
use tailbound_stats::loadgen::scenario::{Event, Options, Run, Test};
use tailbound_stats::loadgen::{Library, Scenario, Settings};

use super::drive::{drive, fifo};

const TICK: Dur = Dur::from_ms(10);

fn multi_stream(queries: u64, streams: u64) -> Settings {
    Settings {
        scenario: Scenario::MultiStream,
        multi_stream_expected_latency_ns: TICK.ns() as f64,
        multi_stream_samples_per_query: streams,
        min_query_count: queries,
        min_duration_ms: 0,
        ..Settings::default()
    }
}

fn run(settings: &Settings, late: impl FnMut(Time) -> Time, took: impl Fn(u64) -> Dur) -> Run {
    let library = Library { total: 64, performance: 64 };
    let options = Options { interval: Some(TICK), ..Options::default() };
    let mut test = Test::new(settings, library, options).unwrap();
    drive(&mut test, |_, issue, _| Some((None, issue.due + took(issue.query), None)), late);
    test.result().unwrap().clone()
}

fn due_ticks(run: &Run) -> Vec<u64> {
    let mut due: Vec<u64> = run.outcome.samples.iter().map(|s| s.due_ns).collect();
    due.sort_unstable();
    due.dedup();
    assert!(due.iter().all(|ns| ns % TICK.ns() == 0), "{due:?}");
    due.iter().map(|ns| ns / TICK.ns()).collect()
}

#[test]
fn queries_come_at_every_tick_and_a_late_one_puts_the_next_off_by_whole_intervals() {
    let took = |query| if query == 3 { Dur::from_ms(25) } else { Dur::from_ms(9) };
    let run = run(&multi_stream(7, 2), |t| t, took);
    assert_eq!(due_ticks(&run), [0, 1, 2, 3, 6, 7, 8]);
    let skips: Vec<(u64, u32)> = run.outcome.skips.iter().map(|s| (s.query, s.intervals)).collect();
    assert_eq!(skips, [(3, 2)]);
    assert_eq!(run.outcome.stop, Stop::Naturally);
}

#[test]
fn an_answer_within_its_interval_is_in_time_however_late_the_driver_looks() {
    // The driver wakes 4 ms after each tick; answers take 9 ms, or once 12, which is late though it is there when the driver looks.
    let took = |query| if query == 2 { Dur::from_ms(12) } else { Dur::from_ms(9) };
    let run = run(&multi_stream(6, 1), |t| t + Dur::from_ms(4), took);
    let skips: Vec<(u64, u32)> = run.outcome.skips.iter().map(|s| (s.query, s.intervals)).collect();
    assert_eq!(skips, [(2, 1)]);
    assert_eq!(due_ticks(&run), [0, 1, 2, 4, 5, 6]);
}

#[test]
fn so_many_late_queries_are_allowed_and_no_more() {
    let task = Task::named("gnmt").unwrap();
    let late_until = |n: u64| move |query: u64| if query < n { Dur::from_ms(11) } else { Dur::from_ms(1) };
    let judged = |n| judge(&task, 2, &run(&multi_stream(100, 2), |t| t, late_until(n)).outcome, true);
    assert_eq!((judged(3).late, judged(3).allowed, judged(3).sustained), (3, 3, true));
    assert_eq!((judged(4).late, judged(4).sustained), (4, false));
    let vision = judge(&TASKS[0], 2, &run(&multi_stream(100, 2), |t| t, late_until(2)).outcome, true);
    assert!(!vision.sustained, "vision allows 1 %: {vision:?}");
}

#[test]
fn a_lost_sample_makes_its_query_late() {
    let library = Library { total: 64, performance: 64 };
    let options = Options { interval: Some(TICK), lost_after: Some(Dur::from_ms(35)), ..Options::default() };
    let mut test = Test::new(&multi_stream(50, 4), library, options).unwrap();
    let answer = |_, issue: &tailbound_stats::loadgen::round::Issue, sample| {
        (sample != 4 * 49 + 1).then(|| (None, issue.due + Dur::from_ms(2), None))
    };
    drive(&mut test, answer, |t| t);
    let judged = judge(&TASKS[0], 4, &test.result().unwrap().outcome, true);
    assert_eq!((judged.late, judged.queries, judged.sustained), (1, 50, false));
}

#[test]
fn the_streams_of_a_server_of_known_speed_are_found() {
    // 1.2 ms a sample, one after another: eight fit into 10 ms.
    let mut search = Search::new(64);
    while let Some(streams) = search.next() {
        let library = Library { total: 64, performance: 64 };
        let options = Options { interval: Some(TICK), ..Options::default() };
        let mut test = Test::new(&multi_stream(40, streams), library, options).unwrap();
        drive(&mut test, fifo(Dur::from_us(1200)), |t| t);
        search.tried(streams, judge(&TASKS[0], streams, &test.result().unwrap().outcome, true).sustained);
    }
    assert_eq!(search.sustained(), 8);
}

#[test]
fn the_papers_rules_are_laid_over_the_settings() {
    let mut s = Settings { scenario: Scenario::Server, use_token_latencies: true, ..Settings::default() };
    Task::named("gnmt").unwrap().apply(&mut s, 1);
    assert_eq!((s.server_target_latency_ns, s.min_query_count, s.min_duration_ms), (250_000_000, 90_112, 60_000));
    assert_eq!((s.server_target_latency_percentile, s.use_token_latencies), (0.97, false));
    s.scenario = Scenario::MultiStream;
    Task::named("resnet50").unwrap().apply(&mut s, 10);
    assert_eq!((s.multi_stream_samples_per_query, s.min_query_count), (10, 27_034));
}

#[test]
fn moments_heard_of_late_count_when_they_were() {
    let settings = Settings {
        scenario: Scenario::SingleStream,
        use_token_latencies: true,
        min_query_count: 1,
        min_duration_ms: 0,
        ..Settings::default()
    };
    let mut test = Test::new(&settings, Library { total: 4, performance: 4 }, Options::default()).unwrap();
    let mut out = Vec::new();
    test.on(Time(1_000), Event::Start, &mut out);
    test.on(Time(1_000), Event::Loaded, &mut out);
    let answered = Event::Answered {
        sample: 0,
        issued: Some(Time(1_100)),
        first_token: Some(Time(3_000)),
        at: Time(9_000),
        tokens: Some(5),
    };
    test.on(Time(50_000), answered, &mut out);
    let sample = &test.result().unwrap().outcome.samples[0];
    assert_eq!((sample.issue_delay_ns, sample.ttft_ns, sample.latency_ns), (100, Some(2_000), 8_000));
}
