//! Fit, generate, describe: what comes out is like what went in.

use tailbound_clock::Seed;
use tailbound_trace::describe::{burstiness, describe_rows};
use tailbound_trace::generate::{Extent, Generate, Model, Sessions, Shape, Synthetic, fit, generate, synthesize};
use tailbound_trace::servegen::{Compose, Pool, compose};
use tailbound_trace::{Clock, Options, Trace, open};

/// Gap CV, and dispersion at 1, 10 and 60 s.
fn of(trace: &Trace) -> [f64; 4] {
    let figures = burstiness(&trace.times());
    let [a, b, c] = figures.dispersion.map(Option::unwrap);
    [figures.gap_cv.unwrap(), a, b, c]
}

fn check(word: &str, trace: &Trace) {
    let model = fit(trace).unwrap();
    let want = of(trace);
    let ask = Generate::default();
    let drawn: Vec<Trace> = (0..50).map(|seed| generate(&model, &ask, Seed(seed)).unwrap()).collect();
    let figures: Vec<[f64; 4]> = drawn.iter().map(of).collect();
    for (k, name) in ["gap CV", "dispersion 1 s", "dispersion 10 s", "dispersion 60 s"].into_iter().enumerate() {
        let mut values: Vec<f64> = figures.iter().map(|f| f[k]).collect();
        values.sort_by(f64::total_cmp);
        let (low, median, high) = (values[2], (values[24] + values[25]) / 2.0, values[47]);
        println!("{word} {name}: {:.3} in the trace; drawn {median:.3} ({low:.3} to {high:.3})", want[k]);
        assert!((median / want[k] - 1.0).abs() <= 0.15, "{word} {name}: median {median}, not {}", want[k]);
        assert!((low..=high).contains(&want[k]), "{word} {name}: {} outside {low} to {high}", want[k]);
    }
    let rows = drawn.iter().map(|t| t.rows.len()).sum::<usize>() as f64 / 50.0;
    assert!((rows / trace.rows.len() as f64 - 1.0).abs() < 0.05, "{word}: {rows} rows");
    let mean = |t: &Trace| t.rows.iter().map(|r| f64::from(r.input.unwrap())).sum::<f64>() / t.rows.len() as f64;
    let input = drawn.iter().map(mean).sum::<f64>() / 50.0;
    assert!((input / mean(trace) - 1.0).abs() < 0.02, "{word}: mean input {input}");
}

fn azure(file: &str) -> Option<Trace> {
    let path = crate::data()?.join("azure-llm-2023").join(file);
    Some(Trace::collect(open(path, &Options::default()).unwrap()).unwrap())
}

#[test]
fn azure_conversations() {
    let Some(trace) = azure("AzureLLMInferenceTrace_conv.first9683.csv") else { return };
    check("conv", &trace);
}

#[test]
fn azure_code() {
    let Some(trace) = azure("AzureLLMInferenceTrace_code.first4409.csv") else { return };
    check("code", &trace);
}

#[test]
fn a_pool_of_clients() {
    let Some(root) = crate::data() else { return };
    let pool = Pool::open(root.join("servegen/data/reason/deepseek-r1")).unwrap();
    let ask = Compose { from_s: 50_400, to_s: 51_600, rate: Some(10.0), rank_correlation: 0.0 };
    let trace = compose(&pool, &ask, Seed(11)).unwrap();
    assert!(fit(&trace).unwrap().clients.len() > 5);
    check("deepseek-r1", &trace);
}

#[test]
fn a_model_survives_its_file() {
    let Some(trace) = azure("AzureLLMInferenceTrace_code.first4409.csv") else { return };
    let model = fit(&trace).unwrap();
    let read: Model = serde_json::from_str(&serde_json::to_string(&model).unwrap()).unwrap();
    let ask = Generate { duration_s: Some(120.0), rate_scale: 0.5 };
    let (a, b) = (generate(&model, &ask, Seed(1)).unwrap(), generate(&read, &ask, Seed(1)).unwrap());
    assert_eq!(a.times(), b.times());
    assert!(a.span_ns() < 120_000_000_000);
}

#[test]
fn conversations_are_learned_with_their_turns_waits_and_growth() {
    let spec = Synthetic {
        arrivals: "gamma:0.5/s,cv=2".parse().unwrap(),
        extent: Extent::Seconds(7200.0),
        input: "200..400".parse().unwrap(),
        output: "50..150".parse().unwrap(),
        rank_correlation: 0.0,
        prefixes: None,
        shape: Shape::Sessions(Sessions {
            turns: "1..7".parse().unwrap(),
            think_s: "exponential:mean=20".parse().unwrap(),
        }),
        media: Vec::new(),
        reason_ratio: None,
        block_tokens: None,
        token_s: 0.02,
    };
    let trace = synthesize(&spec, Seed(1)).unwrap();
    let model = fit(&trace).unwrap();
    let sessions = model.clients[0].sessions.as_ref().unwrap();
    assert_eq!((sessions.share, sessions.fresh), (1.0, 0.0));
    let drawn = generate(&model, &Generate::default(), Seed(2)).unwrap();
    let figures = |t: &Trace| {
        let d = describe_rows(&t.rows, &t.names, None, Clock::Offset);
        let s = d.sessions.unwrap();
        let think = s.think_time_s.unwrap();
        let input = d.input_length.unwrap();
        [
            s.count as f64,
            d.rows as f64,
            s.turns.unwrap().mean,
            think.p50,
            think.p90,
            s.turn_gap_s.unwrap().p50,
            input.mean,
            input.p90,
        ]
    };
    let (want, got) = (figures(&trace), figures(&drawn));
    for (w, g) in want.iter().zip(got) {
        assert!((g / w - 1.0).abs() < 0.1, "{want:?} {got:?}");
    }
    // Cut where the trace is cut, and never shorter than what was said.
    assert!(drawn.times().iter().all(|at| *at < trace.span_ns()));
    let read: Model = serde_json::from_str(&serde_json::to_string(&model).unwrap()).unwrap();
    assert_eq!(generate(&read, &Generate::default(), Seed(2)).unwrap().rows.len(), drawn.rows.len());
}

#[test]
fn a_real_trace_with_sessions_keeps_its_lone_requests() {
    let Some(root) = crate::data() else { return };
    let reader = open(root.join("burstgpt/BurstGPT_3.first90.csv"), &Options::default()).unwrap();
    let trace = Trace::collect(reader).unwrap();
    let model = fit(&trace).unwrap();
    let Some(sessions) = &model.clients[0].sessions else { panic!("it has sessions of several turns") };
    assert!(sessions.share > 0.0 && sessions.share < 1.0 && sessions.think_s.is_some());
    let drawn = generate(&model, &Generate::default(), Seed(1)).unwrap();
    assert!(drawn.rows.iter().any(|r| r.session.is_none()) && drawn.rows.iter().any(|r| r.session.is_some()));
}
