use std::collections::HashMap;

use serde_json::Value;
use tailbound_clock::{Dur, Time};
use tailbound_stats::loadgen::accuracy;
use tailbound_stats::loadgen::detail::Identity;
use tailbound_stats::loadgen::log;
use tailbound_stats::loadgen::peak::{self, Criterion};
use tailbound_stats::loadgen::round::Stop;
use tailbound_stats::loadgen::samples::Sample;
use tailbound_stats::loadgen::scenario::{Effect, Event, Options, Test};
use tailbound_stats::loadgen::{Impossible, Library, Mode, Scenario, Settings};

use super::data;
use super::drive::{drive, fifo};
use super::runs::captured;

const LIBRARY: Library = Library { total: 256, performance: 64 };

fn short(scenario: Scenario) -> Settings {
    Settings { scenario, min_duration_ms: 500, server_target_latency_ns: 30_000_000, ..Settings::default() }
}

fn run(settings: &Settings, options: Options, service: Dur) -> Test {
    let mut test = Test::new(settings, LIBRARY, options).unwrap();
    drive(&mut test, fifo(service), |t| t);
    test
}

/// The machine, fed with what the official program's system did, decides and writes as the official program.
#[test]
fn replaying_captured_server_and_offline_runs_ends_in_the_official_logs() {
    let mut replayed = 0;
    for dir in data::runs() {
        let c = captured(&dir);
        let r = &c.effective.requested;
        let streams = matches!(r.scenario, Scenario::SingleStream | Scenario::MultiStream);
        // The streams issue when they are told that a query is done; LoadGen's own overhead there is not in the trace.
        // Run 09 counts what was outstanding after a call into Python returned, at a moment the trace doesn't have.
        let unknown = c.name.starts_with("09_");
        if streams || unknown || r.mode == Mode::FindPeakPerformance {
            continue;
        }
        let mut of: HashMap<u64, Sample> = c.samples.iter().map(|s| (s.seq, s.clone())).collect();
        for answer in accuracy::parse(&data::read(&dir, "mlperf_log_accuracy.json")).unwrap() {
            let s = of.get_mut(&answer.seq).unwrap();
            s.tokens = s.tokens.or(answer.tokens); // the trace of an accuracy run has no token counts
        }
        let identity = Identity { sut_name: "PySUT".into(), qsl_name: "PyQSL".into(), ..Identity::default() };
        let mut test = Test::new(r, c.library, Options { identity, ..Options::default() }).unwrap();
        let offline = r.scenario == Scenario::Offline;
        let answered = drive_recorded(&mut test, &of, offline && r.use_token_latencies);
        assert_eq!(answered, c.samples.len(), "{}", c.name);

        let summary = data::read(&dir, "mlperf_log_summary.txt");
        assert_eq!(test.summary(), summary, "{}", c.name);
        let official = log::parse(&data::read(&dir, "mlperf_log_detail.txt")).unwrap();
        let skip =
            |key: &str| key.starts_with("loadgen_") || key.starts_with("power_") || key.contains("sut_name_duration");
        let theirs = official.iter().filter(|e| !skip(&e.key));
        let ours = test.journal().entries().iter().filter(|e| !skip(&e.key));
        for (a, b) in ours.zip(theirs) {
            assert_eq!(a.key, b.key, "{}", c.name);
            if a.key != "test_datetime" {
                assert_eq!(a.value, b.value, "{}: {}", c.name, a.key);
            }
        }
        let lines =
            |entries: &[tailbound_stats::loadgen::detail::Entry]| entries.iter().filter(|e| !skip(&e.key)).count();
        assert_eq!(lines(test.journal().entries()), lines(&official), "{}", c.name);
        replayed += 1;
    }
    assert!(replayed == 0 || replayed >= 16, "only {replayed} runs replayed");
}

/// Every query is issued as late as it was, and answered when it was.
fn drive_recorded(test: &mut Test, of: &HashMap<u64, Sample>, hide_first: bool) -> usize {
    let mut out = Vec::new();
    let mut answers: Vec<(Time, u8, u64, Option<i64>)> = Vec::new();
    let mut now = Time(1_000_000_000);
    let mut issued = std::collections::HashSet::new();
    test.on(now, Event::Start, &mut out);
    loop {
        for effect in std::mem::take(&mut out) {
            match effect {
                Effect::Load(_) => {
                    now += Dur(1_000_000);
                    test.on(now, Event::Loaded, &mut out);
                }
                Effect::Issue(batch) => {
                    for i in &batch {
                        let at = i.due.offset(of[&i.first_sample].issue_delay_ns);
                        test.on(now, Event::Issued { query: i.query, at }, &mut out);
                        for sample in (i.first_sample..).take(i.samples.len()) {
                            let s = &of[&sample];
                            assert!(issued.insert(sample), "sample {sample} issued twice");
                            if let Some(ttft) = s.ttft_ns.filter(|_| !hide_first) {
                                answers.push((i.due.offset(ttft), 1, sample, None));
                            }
                            answers.push((i.due.offset(s.latency_ns), 2, sample, s.tokens));
                        }
                    }
                    answers.sort_by_key(|a| std::cmp::Reverse((a.0, a.1, a.2)));
                }
                Effect::Flush => {}
                Effect::Finished => return issued.len(),
            }
        }
        if !out.is_empty() {
            continue;
        }
        // When the next query was issued: its due time and the delay of that day.
        let next = issued.len() as u64;
        let wake = test.next_wake().map(|due| due.offset(of.get(&next).map_or(0, |s| s.issue_delay_ns)));
        if wake.is_some_and(|w| answers.last().is_none_or(|a| w < a.0)) {
            now = wake.unwrap();
            test.on(now, Event::Wake, &mut out);
        } else {
            let (at, kind, sample, tokens) = answers.pop().expect("the machine waits for nothing");
            now = at;
            let event = if kind == 1 { Event::FirstToken { sample } } else { Event::Completed { sample, tokens } };
            test.on(now, event, &mut out);
        }
    }
}

#[test]
fn loadgens_peak_search_finds_the_simulated_peaks() {
    let Some(vectors) = data::vectors("findpeak_sim.json") else { return };
    for v in vectors.as_array().unwrap() {
        let (mut test, name) = peak_test(v, Criterion::Constraints);
        drive(&mut test, fifo(Dur::from_ms(2)), |t| t);
        let tried: Vec<(f64, bool, bool, u64)> =
            test.tried().iter().map(|t| (t.qps, t.passed, t.stopping, t.queries)).collect();
        let want: Vec<(f64, bool, bool, u64)> = v["tested_qps_pass_es_n"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| {
                let at = |i: usize| t[i].as_bool().unwrap();
                (t[0].as_f64().unwrap(), at(1), at(2), t[3].as_u64().unwrap())
            })
            .collect();
        assert_eq!(tried, want, "{name}");
        let found = test.result().unwrap().score.as_ref().unwrap().effective.target_qps;
        assert_eq!(found, v["found_qps"].as_f64().unwrap(), "{name}");
    }
}

fn peak_test(v: &Value, criterion: Criterion) -> (Test, String) {
    let u = |key: &str| v[key].as_u64().unwrap();
    let settings = Settings {
        scenario: Scenario::Server,
        mode: Mode::FindPeakPerformance,
        server_target_qps: v["start_qps"].as_f64().unwrap(),
        server_target_latency_ns: u("target_latency_ms") * 1_000_000,
        server_target_latency_percentile: v["percentile"].as_f64().unwrap(),
        server_find_peak_qps_decimals_of_precision: u("decimals_of_precision") as i64,
        server_find_peak_qps_boundary_step_size: v["boundary_step"].as_f64().unwrap(),
        schedule_rng_seed: u("schedule_rng_seed"),
        min_query_count: if criterion == Criterion::Certified {
            u("min_query_count").max(700)
        } else {
            u("min_query_count")
        },
        min_duration_ms: u("min_duration_ms"),
        ..Settings::default()
    };
    let name = format!("{} queries, {} ms", settings.min_query_count, u("target_latency_ms"));
    (Test::new(&settings, LIBRARY, Options { criterion, ..Options::default() }).unwrap(), name)
}

#[test]
fn a_certified_peak_never_exceeds_what_the_server_can_do() {
    let Some(vectors) = data::vectors("findpeak_sim.json") else { return };
    for v in vectors.as_array().unwrap() {
        let (mut test, name) = peak_test(v, Criterion::Certified);
        drive(&mut test, fifo(Dur::from_ms(2)), |t| t);
        let score = test.result().unwrap().score.as_ref().unwrap();
        assert!(peak::shown(score) <= 500.0, "{name}: {}", peak::shown(score));
        assert!(score.decision.valid(), "{name}");
    }
}

#[test]
fn the_captured_peak_search_is_logged_with_the_same_messages_in_the_same_places() {
    let Some(folder) = data::folder() else { return };
    let c = captured(&folder.join("runs/25_server_find_peak"));
    let of: HashMap<u64, Sample> = c.samples.iter().map(|s| (s.seq, s.clone())).collect();
    let identity = Identity { sut_name: "PySUT".into(), qsl_name: "PyQSL".into(), ..Identity::default() };
    let mut test = Test::new(&c.effective.requested, c.library, Options { identity, ..Options::default() }).unwrap();
    drive_recorded(&mut test, &of, false);
    assert_eq!(test.summary(), data::read(&folder.join("runs/25_server_find_peak"), "mlperf_log_summary.txt"));
    let official = log::parse(&data::read(&folder.join("runs/25_server_find_peak"), "mlperf_log_detail.txt")).unwrap();
    let told = |entries: &[tailbound_stats::loadgen::detail::Entry]| -> Vec<(String, String)> {
        let skip = |k: &str| {
            k.starts_with("loadgen_") || k.starts_with("power") || k == "test_datetime" || k.contains("_duration_ns")
        };
        entries.iter().filter(|e| !skip(&e.key)).map(|e| (e.key.clone(), e.value.clone())).collect()
    };
    assert_eq!(told(test.journal().entries()), told(&official));
}

#[test]
fn streams_keep_one_query_outstanding_and_end_naturally() {
    for scenario in [Scenario::SingleStream, Scenario::MultiStream] {
        let mut settings = short(scenario);
        settings.single_stream_expected_latency_ns = 1e6;
        settings.multi_stream_expected_latency_ns = 1e6;
        settings.min_query_count = if scenario == Scenario::MultiStream { 700 } else { 100 };
        let test = run(&settings, Options::default(), Dur::from_us(700));
        let result = test.result().unwrap();
        assert_eq!(result.outcome.stop, Stop::Naturally);
        assert!(result.score.as_ref().unwrap().decision.valid(), "{}", test.summary());
        let mut ends: Vec<(u64, i64)> = result.outcome.samples.iter().map(|s| (s.due_ns, s.latency_ns)).collect();
        ends.dedup_by_key(|e| e.0);
        assert!(ends.windows(2).all(|w| w[1].0 as i64 >= w[0].0 as i64 + w[0].1), "a query was issued too early");
    }
}

#[test]
fn every_way_of_stopping_early_is_reported() {
    let mut s = short(Scenario::SingleStream);
    s.single_stream_expected_latency_ns = 1e8;
    assert_eq!(run(&s, Options::default(), Dur::from_us(10)).result().unwrap().outcome.stop, Stop::RanOut);
    s.max_query_count = 5;
    assert_eq!(run(&s, Options::default(), Dur::from_us(10)).result().unwrap().outcome.stop, Stop::MaxQueries(5));
    let mut s = short(Scenario::Server);
    s.server_target_qps = 1000.0;
    s.server_max_async_queries = 3;
    let stop = run(&s, Options::default(), Dur::from_ms(5)).result().unwrap().outcome.stop;
    assert!(matches!(stop, Stop::TooManyOutstanding { outstanding: 4, .. }), "{stop:?}");
    s.server_max_async_queries = 0;
    s.max_duration_ms = 100;
    let stop = run(&s, Options::default(), Dur::from_us(5)).result().unwrap().outcome.stop;
    assert!(matches!(stop, Stop::MaxDuration(ns) if ns > 100_000_000), "{stop:?}");
}

#[test]
fn a_lost_answer_ends_the_run_instead_of_hanging_it() {
    for scenario in Scenario::ALL {
        let mut settings = short(scenario);
        settings.server_target_qps = 400.0;
        settings.offline_expected_qps = 400.0;
        settings.multi_stream_samples_per_query = 2;
        let options = Options { lost_after: Some(Dur::from_ms(200)), ..Options::default() };
        let mut test = Test::new(&settings, LIBRARY, options).unwrap();
        let mut served = fifo(Dur::from_us(300));
        drive(&mut test, |now, i, s| if s % 50 == 7 { None } else { served(now, i, s) }, |t| t);
        let outcome = &test.result().unwrap().outcome;
        assert!(!outcome.lost.is_empty(), "{scenario:?}");
        assert!(outcome.lost.iter().all(|s| s % 50 == 7), "{scenario:?}: {:?}", outcome.lost);
        assert!(test.journal().errors() > 0);
    }
}

#[test]
fn a_pacer_gets_queries_ahead_of_their_time_and_latency_counts_from_the_due_moment() {
    let mut settings = short(Scenario::Server);
    settings.server_target_qps = 500.0;
    let plain = run(&settings, Options::default(), Dur::from_us(100));
    let mut ahead = Test::new(&settings, LIBRARY, Options { ahead: Dur::from_ms(1), ..Options::default() }).unwrap();
    let mut free = Time::ZERO;
    drive(
        &mut ahead,
        |now, i, _| {
            assert!(now <= i.due && i.due <= now + Dur::from_ms(1));
            free = free.max(i.due) + Dur::from_us(100);
            Some((None, free, None))
        },
        |t| t,
    );
    let samples = |t: &Test| t.result().unwrap().outcome.samples.clone();
    assert_eq!(samples(&plain), samples(&ahead));
}

#[test]
fn stopping_from_outside_scores_what_there_is() {
    let mut settings = short(Scenario::Server);
    settings.server_target_qps = 500.0;
    let mut test = Test::new(&settings, LIBRARY, Options::default()).unwrap();
    let mut out = Vec::new();
    test.on(Time(0), Event::Start, &mut out);
    test.on(Time(1), Event::Loaded, &mut out);
    test.on(Time(2), Event::Completed { sample: 0, tokens: None }, &mut out);
    test.on(Time(3), Event::Stop, &mut out);
    assert_eq!(out.last(), Some(&Effect::Finished));
    assert!(test.finished() && test.result().unwrap().outcome.stop == Stop::Interrupted);
}

#[test]
fn impossible_settings_are_refused_with_a_reason_each() {
    let refused = |change: fn(&mut Settings)| {
        let mut s = short(Scenario::Server);
        change(&mut s);
        Test::new(&s, LIBRARY, Options::default()).unwrap_err()
    };
    assert!(matches!(refused(|s| s.server_target_qps = 0.0)[..], [Impossible::Rate { .. }]));
    assert!(matches!(refused(|s| s.server_target_qps = f64::NAN)[..], [Impossible::Rate { .. }]));
    assert!(matches!(refused(|s| s.server_target_latency_percentile = 1.0)[..], [Impossible::Percentile { .. }]));
    let both = refused(|s| {
        s.performance_issue_unique = true;
        s.performance_issue_same = true;
        s.performance_issue_same_index = 64;
    });
    assert!(matches!(both[..], [Impossible::SameIndex { .. }, Impossible::UniqueAndSame]));
    assert!(matches!(refused(|s| s.min_query_count = u64::MAX)[..], [Impossible::TooMany { .. }]));
    assert!(matches!(
        refused(|s| {
            s.scenario = Scenario::Offline;
            s.mode = Mode::FindPeakPerformance
        })[..],
        [Impossible::PeakScenario]
    ));
    let empty = Test::new(&short(Scenario::Server), Library { total: 0, performance: 0 }, Options::default());
    assert_eq!(empty.unwrap_err().len(), 2);
}
