use std::path::Path;

use serde_json::Value;
use tailbound_stats::loadgen::detail::{Entry, Identity, Journal};
use tailbound_stats::loadgen::log;
use tailbound_stats::loadgen::samples::{self, Ending, Sample};
use tailbound_stats::loadgen::schedule::{self, Phase, Sequence, SetChoice};
use tailbound_stats::loadgen::score::{self, Score};
use tailbound_stats::loadgen::summary::{self, Frame};
use tailbound_stats::loadgen::{Effective, Library, Mode, Settings};

use super::data;

pub struct Captured {
    pub name: String,
    pub effective: Effective,
    pub library: Library,
    pub samples: Vec<Sample>,
    pub run: Option<Value>,
}

pub fn captured(dir: &Path) -> Captured {
    let requested: Value = serde_json::from_str(&data::read(dir, "requested_settings.json")).unwrap();
    let settings: Settings = serde_json::from_value(requested.clone()).unwrap();
    let library = Library {
        total: requested["qsl_total"].as_u64().unwrap(),
        performance: requested["qsl_perf"].as_u64().unwrap(),
    };
    Captured {
        name: dir.file_name().unwrap().to_string_lossy().into_owned(),
        effective: Effective::of(&settings, library),
        library,
        samples: samples::from_csv(&data::read(dir, "samples.csv")).unwrap(),
        run: std::fs::read_to_string(dir.join("run.json")).ok().map(|t| serde_json::from_str(&t).unwrap()),
    }
}

/// The score of a captured performance run.
pub fn score(c: &Captured) -> Option<Score> {
    let run = c.run.as_ref()?;
    let f = |name: &str| run[name].as_f64().unwrap();
    let of_samples = Ending::of(&c.samples).unwrap();
    let ending = Ending {
        queries_issued: run["queries_issued"].as_u64().unwrap(),
        // The traces of the streams do not say when the run started; run.json does.
        scheduled_s: f("final_query_scheduled_s"),
        issued_s: f("final_query_issued_s"),
        done_s: f("final_query_done_s"),
    };
    assert_eq!(of_samples.queries_issued, ending.queries_issued, "{}", c.name);
    Some(score::measure(&c.effective, &c.samples, ending).unwrap())
}

#[test]
fn every_summary_is_the_official_one_byte_for_byte() {
    let mut compared = 0;
    for dir in data::runs() {
        let c = captured(&dir);
        if matches!(c.effective.requested.mode, Mode::SubmissionRun | Mode::FindPeakPerformance) {
            continue; // several runs in one log: see the verdict tests
        }
        let score = score(&c);
        let run = c.run.clone().unwrap_or(Value::Null);
        let frame = Frame {
            sut_name: "PySUT".into(),
            errors: run["num_errors"].as_u64().unwrap_or(0),
            warnings: run["num_warnings"].as_u64().unwrap_or(0),
        };
        let ours = summary::write(score.as_ref(), &frame);
        let official = data::read(&dir, "mlperf_log_summary.txt");
        for (a, b) in ours.lines().zip(official.lines()) {
            if a != b && c.name.starts_with("02_") && a.starts_with("QPS w/ loadgen overhead") {
                continue; // the start of this run is known to 100 ns, which moves its last digit
            }
            assert_eq!(a, b, "{}", c.name);
        }
        assert_eq!(ours.len(), official.len(), "{}", c.name);
        compared += 1;
    }
    assert!(compared == 0 || compared >= 27, "only {compared} summaries compared");
}

#[test]
fn every_captured_run_issued_the_samples_we_generate() {
    for dir in data::runs() {
        let c = captured(&dir);
        let phases: &[Phase] = match c.effective.requested.mode {
            Mode::AccuracyOnly => &[Phase::Accuracy],
            Mode::PerformanceOnly => &[Phase::Performance],
            Mode::SubmissionRun => &[Phase::Accuracy, Phase::Performance],
            Mode::FindPeakPerformance => continue,
        };
        let mut sequence = Sequence::default();
        let mut logged = Vec::new();
        let mut planned = Vec::new();
        for &phase in phases {
            for set in schedule::loadable_sets(&c.effective, c.library, phase, SetChoice::FirstN) {
                let made = schedule::generate(&c.effective, &set, phase, &mut sequence);
                logged.extend(made.logged.iter().copied());
                planned.extend(made.queries.iter().flat_map(|q| {
                    q.samples.iter().zip(q.first_sample..).map(|(&index, seq)| (seq, q.seq, index, q.due_ns))
                }));
            }
        }
        // A trace counts from the first query of the whole test; the sets of an accuracy run start one after another.
        let mut started = 0;
        for s in &c.samples {
            let (seq, query, index, due) = planned[s.seq as usize];
            if due == 0 {
                started = s.due_ns;
            }
            assert_eq!((seq, query, index), (s.seq, s.query, s.index), "{} sample {}", c.name, s.seq);
            if c.effective.requested.scenario == tailbound_stats::loadgen::Scenario::Server {
                assert_eq!(due, s.due_ns - started, "{} sample {}", c.name, s.seq);
            }
        }
        let log: Value = serde_json::from_str(&data::read(&dir, "mlperf_log_accuracy.json")).unwrap();
        let mut seqs: Vec<u64> = log.as_array().unwrap().iter().map(|e| e["seq_id"].as_u64().unwrap()).collect();
        seqs.sort_unstable();
        let issued = c.samples.iter().map(|s| s.seq).max().unwrap_or(0);
        let ours: Vec<u64> = (0..=issued).filter(|&s| logged[s as usize]).collect();
        assert_eq!(ours, seqs, "{}: which answers are logged", c.name);
    }
}

/// The log of a run as we write it, with what only the machine of the day could know taken from the official one.
fn rewrite(c: &Captured, official: &[Entry]) -> Journal {
    let value = |key: &str| official.iter().find(|e| e.key == key).map(|e| e.value.clone()).unwrap_or_default();
    let text = |key: &str| value(key).trim_matches('"').to_owned();
    let mut ours = Journal::default();
    ours.identity(&Identity {
        version: official
            .iter()
            .filter(|e| e.key.starts_with("loadgen_"))
            .map(|e| (e.key.clone(), e.value.clone()))
            .collect(),
        datetime: text("test_datetime"),
        sut_name: text("sut_name"),
        sut_name_duration_ns: text("get_sut_name_duration_ns").parse().unwrap(),
        qsl_name: text("qsl_name"),
        qsl_total: c.library.total,
        qsl_performance: c.library.performance,
    });
    ours.settings(&c.effective);
    // What happened while running: endings and errors, in order; power windows by set.
    let mut happened = official.iter().filter(|e| e.value.contains("Ending ") || e.error).peekable();
    let mut windows = official.iter().filter(|e| e.key.starts_with("power_")).map(|e| e.value.trim_matches('"'));
    let phases: &[Phase] = match c.effective.requested.mode {
        Mode::AccuracyOnly => &[Phase::Accuracy],
        Mode::SubmissionRun => &[Phase::Accuracy, Phase::Performance],
        _ => &[Phase::Performance],
    };
    let mut sequence = Sequence::default();
    for &phase in phases {
        ours.message(if phase == Phase::Accuracy { "Starting accuracy mode" } else { "Starting performance mode" });
        for set in schedule::loadable_sets(&c.effective, c.library, phase, SetChoice::FirstN) {
            ours.loaded(&set);
            ours.generated(&schedule::generate(&c.effective, &set, phase, &mut sequence));
            while phase == Phase::Performance && happened.peek().is_some() {
                let e = happened.next().unwrap();
                match e.error {
                    true => ours.error(&e.key, e.value.trim_matches('"')),
                    false => ours.message(e.value.trim_matches('"')),
                }
            }
            ours.done(windows.next().unwrap(), windows.next().unwrap());
        }
    }
    ours
}

#[test]
fn every_detail_log_has_the_official_keys_order_values_and_places() {
    for dir in data::runs() {
        let mut c = captured(&dir);
        if c.effective.requested.mode == Mode::FindPeakPerformance {
            continue; // the search writes its own messages: see the peak tests
        }
        let text = data::read(&dir, "mlperf_log_detail.txt");
        let official = log::parse(&text).unwrap();
        let mut ours = rewrite(&c, &official);
        if c.effective.requested.mode == Mode::SubmissionRun {
            let first = c.samples.iter().position(|s| s.seq == 100).unwrap();
            c.samples.drain(..first);
            let ending = Ending::of(&c.samples).unwrap();
            ours.result(&score::measure(&c.effective, &c.samples, ending).unwrap());
        } else if let Some(score) = score(&c) {
            ours.result(&score);
        }
        for (a, b) in ours.entries().iter().zip(&official) {
            assert_eq!((&a.key, a.error, a.warning), (&b.key, b.error, b.warning), "{}", c.name);
            if c.name.starts_with("02_") && a.key == "result_qps_with_loadgen_overhead" {
                continue; // as in the summary
            }
            assert_eq!(a.value, b.value, "{}: {}", c.name, a.key);
        }
        assert_eq!(ours.entries().len(), official.len(), "{}", c.name);
        let place = |line: &str| line[line.find("\"file\"").unwrap()..line.find(", \"pid\"").unwrap()].to_owned();
        for (a, b) in ours.write(1, 1).lines().zip(text.lines()) {
            assert_eq!(place(a), place(b), "{}: {a}", c.name);
        }
    }
}
