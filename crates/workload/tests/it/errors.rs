use tailbound_clock::Dur;
use tailbound_workload::{Normalize, Ramp, Spec};

fn ramp(start: Option<f64>, end: Option<f64>) -> Spec {
    Spec { ramp_up_strategy: Some(Ramp::Linear), ramp_up_start_rps: start, ramp_up_end_rps: end, ..Spec::default() }
}

#[test]
fn every_bad_combination_names_its_flag() {
    let base = Spec::default;
    let trace = || Spec { schedule: Some(vec![Dur(0), Dur(5)]), ..base() };
    let cases: Vec<(&str, Spec)> = vec![
        ("--max-concurrency 0", Spec { max_concurrency: Some(0), ..base() }),
        ("--max-concurrency -3", Spec { max_concurrency: Some(-3), ..base() }),
        ("--request-rate -1", Spec { request_rate: Some(-1.0), ..base() }),
        ("--request-rate 0", Spec { request_rate: Some(0.0), ..base() }),
        ("--request-rate NaN", Spec { request_rate: Some(f64::NAN), ..base() }),
        ("--request-rate 0.0000000000001", Spec { request_rate: Some(1e-13), ..base() }),
        ("--burstiness 0", Spec { burstiness: Some(0.0), request_rate: Some(1.0), ..base() }),
        ("--burstiness -2", Spec { burstiness: Some(-2.0), ..base() }),
        ("--burstiness NaN", Spec { burstiness: Some(f64::NAN), ..base() }),
        ("--num-prompts 0", Spec { num_prompts: Some(0), ..base() }),
        ("--num-prompts 5000000000", Spec { num_prompts: Some(5_000_000_000), ..base() }),
        ("--num-warmups -1", Spec { num_warmups: -1, ..base() }),
        ("--duration 0s", Spec { duration: Some(Dur::ZERO), ..base() }),
        ("--probe-request-rate -1", Spec { probe_request_rate: -1.0, ..base() }),
        ("--probe-request-rate NaN", Spec { probe_request_rate: f64::NAN, ..base() }),
        ("--request-rate: contradicts", Spec { request_rate: Some(5.0), ..ramp(Some(1.0), Some(2.0)) }),
        ("--ramp-up-start-rps: missing", ramp(None, Some(2.0))),
        ("--ramp-up-end-rps: missing", ramp(Some(1.0), None)),
        ("--ramp-up-start-rps 3: is above --ramp-up-end-rps 2", ramp(Some(3.0), Some(2.0))),
        ("--ramp-up-start-rps -1", ramp(Some(-1.0), Some(2.0))),
        ("--ramp-up-start-rps NaN", ramp(Some(f64::NAN), Some(2.0))),
        ("--ramp-up-end-rps inf", ramp(Some(1.0), Some(f64::INFINITY))),
        ("--ramp-up-end-rps 0", ramp(Some(0.0), Some(0.0))),
        (
            "--ramp-up-start-rps 0: an exponential",
            Spec { ramp_up_strategy: Some(Ramp::Exponential), ..ramp(Some(0.0), Some(2.0)) },
        ),
        ("--ramp-up-strategy: missing", Spec { ramp_up_strategy: None, ..ramp(Some(1.0), Some(2.0)) }),
        ("--num-prompts: missing: a ramp", Spec { duration: Some(Dur::from_secs(1)), ..ramp(Some(1.0), Some(2.0)) }),
        ("--num-prompts: missing: an infinite", Spec { duration: Some(Dur::from_secs(1)), ..base() }),
        (
            "--duration 1ms: no request",
            Spec { duration: Some(Dur::from_ms(1)), request_rate: Some(1e-3), num_prompts: Some(3), ..base() },
        ),
        ("--request-rate: the arrival times", Spec { request_rate: Some(1.0), ..trace() }),
        ("--burstiness: the arrival times", Spec { burstiness: Some(1.0), ..trace() }),
        ("--arrival-normalize", Spec { arrival_normalize: Normalize::Vllm, ..trace() }),
        ("--num-prompts 3: the trace has only 2", Spec { num_prompts: Some(3), ..trace() }),
        ("--dataset-path: request 1 arrives before", Spec { schedule: Some(vec![Dur(5), Dur(4)]), ..base() }),
        ("--dataset-path: the trace has no requests", Spec { schedule: Some(vec![]), ..base() }),
    ];
    for (start, spec) in cases {
        let error = spec.plan().expect_err(start).to_string();
        assert!(error.starts_with(start), "{error:?} does not start with {start:?}");
        assert!(!error.contains('\n') && error.len() < 200, "one line: {error}");
    }
}
