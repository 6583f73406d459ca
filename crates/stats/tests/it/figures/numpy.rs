//! The vectors of `tests/numpy_vectors.py`: numpy's statistics, and the figures of `vllm bench serve`'s own `calculate_metrics`.

use serde_json::Value;
use tailbound_clock::Time;
use tailbound_record::{Blame, Cause, End, Finish, Moment, Phase, Row};
use tailbound_stats::{Dist, Objectives, RunFacts, Summary, summarize};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../fixtures/numpy.json")).unwrap()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn close(what: &str, ours: f64, theirs: f64) {
    let off = (ours - theirs).abs() / theirs.abs().max(1.0);
    assert!(off <= 1e-9, "{what}: ours {ours}, numpy's {theirs}");
}

#[test]
fn samples_have_numpys_statistics() {
    let vectors = vectors();
    let percentiles = floats(&vectors["percentiles"]);
    let samples = vectors["samples"].as_array().unwrap();
    assert!(samples.len() >= 5);
    for sample in samples {
        let name = sample["name"].as_str().unwrap();
        let dist = Dist::new(floats(&sample["values"]));
        close(name, dist.mean().unwrap(), sample["mean"].as_f64().unwrap());
        close(name, dist.std().unwrap(), sample["std"].as_f64().unwrap());
        for (p, theirs) in percentiles.iter().zip(floats(&sample["linear"])) {
            close(&format!("{name} p{p}"), dist.percentile(*p).unwrap(), theirs);
        }
        for (p, theirs) in percentiles.iter().zip(floats(&sample["nearest_rank"])) {
            close(&format!("{name} rank {p}"), dist.nearest_rank(*p).unwrap(), theirs);
        }
    }
}

#[test]
fn runs_have_the_figures_of_vllms_calculate_metrics() {
    let vectors = vectors();
    let percentiles = floats(&vectors["percentiles"]);
    let runs = vectors["runs"].as_array().unwrap();
    assert!(runs.len() >= 8);
    for run in runs {
        let name = run["name"].as_str().unwrap();
        let (rows, facts) = parse(run);
        let summary = summarize(&rows, &facts);
        let expected = &run["expected"];
        for (key, ours) in totals(&summary) {
            close(&format!("{name}: {key}"), ours, expected[key].as_f64().unwrap());
        }
        let l = &summary.latency;
        for (metric, dist) in [("ttft", &l.ttft), ("tpot", &l.tpot_vllm), ("itl", &*l.icl), ("e2el", &l.e2e)] {
            let ms = |v: Option<f64>| v.unwrap_or(0.0) * 1e-6;
            for (statistic, ours) in [("mean", dist.mean()), ("median", dist.median()), ("std", dist.std())] {
                let key = format!("{statistic}_{metric}_ms");
                close(&format!("{name}: {key}"), ms(ours), expected[&key].as_f64().unwrap());
            }
            let theirs = floats(&expected[format!("percentiles_{metric}_ms")]);
            for (p, theirs) in percentiles.iter().zip(theirs) {
                close(&format!("{name}: p{p}_{metric}_ms"), ms(dist.percentile(*p)), theirs);
            }
        }
    }
}

fn totals(s: &Summary) -> [(&'static str, f64); 10] {
    let v = &s.vllm;
    [
        ("completed", s.requests.completed as f64),
        ("failed", s.requests.failed as f64),
        ("total_input", v.total_input_tokens as f64),
        ("total_output", v.total_output_tokens as f64),
        ("request_throughput", v.request_throughput),
        ("request_goodput", v.request_goodput.unwrap_or(0.0)),
        ("output_throughput", v.output_throughput),
        ("total_token_throughput", v.total_token_throughput),
        ("max_output_tokens_per_s", v.max_output_tokens_per_s),
        ("max_concurrent_requests", v.max_concurrent_requests as f64),
    ]
}

fn parse(run: &Value) -> (Vec<Row>, RunFacts) {
    let time = |v: &Value| Time(v.as_u64().unwrap());
    let rows = run["rows"].as_array().unwrap().iter().enumerate().map(|(id, r)| {
        let mut row = Row::new(id as u64);
        row.at.set(Moment::Scheduled, time(&r["scheduled"]));
        row.at.set(Moment::Released, time(&r["released"]));
        row.at.set(Moment::WriteStart, time(&r["write"]));
        for (read, event) in r["events"].as_array().unwrap().iter().enumerate() {
            let at = time(&event[0]);
            // A server that sends no usage does not state tokens event by event either: the recount is vLLM's only source then.
            let stated = if r["usage"].is_null() { 0 } else { event[1].as_u64().unwrap() as u16 };
            row.chunks.push(at, read as u32, stated, true);
            row.at.set_first(Moment::FirstToken, at);
            row.at.set(Moment::LastToken, at);
        }
        row.tokens.output_server = r["usage"].as_u64().map(|n| n as u32);
        row.tokens.output_tokenized = r["recount"].as_u64().map(|n| n as u32);
        row.tokens.prompt_server = r["prompt"].as_u64().map(|n| n as u32);
        row.end = match r["ok"].as_bool().unwrap() {
            true => End::Done(Finish::Stop),
            false => End::Failed { phase: Phase::Stream, blame: Blame::Server, cause: Cause::Reset, detail: "".into() },
        };
        row
    });
    let objectives = run["objectives"].as_object().unwrap().iter();
    let all = objectives.map(|(key, ms)| format!("{key}:{ms}").parse().unwrap()).collect();
    let facts = RunFacts {
        objectives: Objectives { all, ..Objectives::default() },
        ..RunFacts::new(time(&run["start"]), time(&run["end"]))
    };
    (rows.collect(), facts)
}
