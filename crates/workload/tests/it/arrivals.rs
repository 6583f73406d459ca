use crate::ks;
use tailbound_clock::{Dur, Seed};
use tailbound_workload::{Normalize, Plan, Ramp, Spec};

fn spec(n: u64, rate: f64) -> Spec {
    Spec { num_prompts: Some(n), request_rate: Some(rate), ..Spec::default() }
}

fn times(plan: &Plan) -> Vec<u64> {
    plan.measured().map(|intent| intent.offset.unwrap().ns()).collect()
}

fn gaps(plan: &Plan) -> Vec<f64> {
    let times = times(plan);
    std::iter::once(times[0]).chain(times.windows(2).map(|w| w[1] - w[0])).map(|ns| ns as f64 * 1e-9).collect()
}

/// How many of ten seeds pass the Kolmogorov–Smirnov test at 5 % with 10,000 gaps.
fn seeds_that_pass(mut spec: Spec, cdf: impl Fn(f64) -> f64) -> usize {
    (0..10)
        .filter(|&seed| {
            spec.seed = Seed(seed);
            ks::distance(&mut gaps(&spec.plan().unwrap()), &cdf) < ks::CRITICAL_10_000
        })
        .count()
}

#[test]
fn poisson_gaps_are_exponential() {
    let rate = 20.0;
    assert!(seeds_that_pass(spec(10_000, rate), |x| 1.0 - (-x * rate).exp()) >= 8);
}

#[test]
fn bursty_gaps_are_gamma() {
    for burstiness in [0.25, 0.5, 3.5] {
        let rate = 100.0;
        let spec = Spec { burstiness: Some(burstiness), ..spec(10_000, rate) };
        let passed = seeds_that_pass(spec, |x| ks::gamma_cdf(burstiness, x * rate * burstiness));
        assert!(passed >= 8, "burstiness {burstiness}: {passed} of 10");
    }
}

#[test]
fn a_normalised_schedule_ends_exactly_at_n_over_rate() {
    for (n, rate, burstiness) in [(200, 20.0, 1.0), (1000, 7.0, 0.3), (1, 3.0, 1.0), (999, 0.7, 5.0)] {
        let spec = Spec { burstiness: Some(burstiness), arrival_normalize: Normalize::Vllm, ..spec(n, rate) };
        let plan = spec.plan().unwrap();
        assert_eq!(plan.span(), Dur::from_secs_f64(n as f64 / rate));
        assert!(times(&plan).is_sorted());
    }
    let plan = spec(200, 20.0).plan().unwrap();
    assert_ne!(plan.span(), Dur::from_secs(10), "not normalised unless asked");
}

#[test]
fn normalising_keeps_the_pattern() {
    let plain = gaps(&spec(500, 50.0).plan().unwrap());
    let stretched = gaps(&Spec { arrival_normalize: Normalize::Vllm, ..spec(500, 50.0) }.plan().unwrap());
    let factor = 10.0 / plain.iter().sum::<f64>();
    for (a, b) in plain.iter().zip(&stretched) {
        assert!((a * factor - b).abs() < 3e-9, "{a} × {factor} is not {b}");
    }
}

#[test]
fn a_constant_rate_is_exact_to_the_last_arrival() {
    let plan = Spec { burstiness: Some(f64::INFINITY), ..spec(1_000_000, 3.0) }.plan().unwrap();
    let times = times(&plan);
    assert_eq!(&times[..3], &[333_333_333, 666_666_667, 1_000_000_000]);
    assert_eq!(times[2_999], 1_000_000_000_000);
    assert_eq!(times[999_998], 333_333_000_000_000);
}

#[test]
fn an_infinite_rate_is_all_at_once() {
    for rate in [None, Some(f64::INFINITY)] {
        let plan = Spec { num_prompts: Some(50), request_rate: rate, ..Spec::default() }.plan().unwrap();
        assert_eq!(times(&plan), vec![0; 50]);
    }
}

fn ramp(strategy: Ramp, start: f64, end: f64, n: u64, burstiness: f64) -> Plan {
    let spec = Spec {
        num_prompts: Some(n),
        burstiness: Some(burstiness),
        ramp_up_strategy: Some(strategy),
        ramp_up_start_rps: Some(start),
        ramp_up_end_rps: Some(end),
        ..Spec::default()
    };
    spec.plan().unwrap()
}

/// Computed with numpy: `cumsum(1 / r)`, r = s + (e−s)·p or s·(e/s)^p, p = arange(n)/max(n−1, 1), rounded to nanoseconds.
#[test]
fn ramps_are_numpys() {
    #[rustfmt::skip]
    let expected: [(Ramp, f64, f64, &[u64]); 5] = [
        (Ramp::Linear, 2.0, 10.0, &[500000000, 818181818, 1051515152, 1235725678, 1387899591, 1517529221, 1630432446, 1730432446]),
        (Ramp::Linear, 0.5, 2.5, &[2000000000, 3000000000, 3666666667, 4166666667, 4566666667]),
        (Ramp::Exponential, 1.0, 16.0, &[1000000000, 1707106781, 2207106781, 2560660172, 2810660172, 2987436867, 3112436867, 3200825215, 3263325215]),
        (Ramp::Exponential, 0.25, 8.0, &[4000000000, 6000000000, 7000000000, 7500000000, 7750000000, 7875000000]),
        (Ramp::Linear, 3.0, 9.0, &[333333333]),
    ];
    for (strategy, start, end, want) in expected {
        assert_eq!(times(&ramp(strategy, start, end, want.len() as u64, f64::INFINITY)), want);
    }
}

#[test]
fn a_random_ramp_has_gamma_gaps_scaled_by_its_rate() {
    let (n, start, end) = (10_000u32, 10.0, 200.0);
    let passed = (0..10)
        .filter(|&seed| {
            let spec = Spec {
                num_prompts: Some(u64::from(n)),
                burstiness: Some(2.0),
                ramp_up_strategy: Some(Ramp::Linear),
                ramp_up_start_rps: Some(start),
                ramp_up_end_rps: Some(end),
                seed: Seed(seed),
                ..Spec::default()
            };
            let gaps = gaps(&spec.plan().unwrap());
            let rate = |i: usize| start + (end - start) * i as f64 / f64::from(n - 1);
            let mut unit: Vec<f64> = gaps.iter().enumerate().map(|(i, gap)| gap * rate(i) * 2.0).collect();
            ks::distance(&mut unit, |x| ks::gamma_cdf(2.0, x)) < ks::CRITICAL_10_000
        })
        .count();
    assert!(passed >= 8, "{passed} of 10");
}

#[test]
fn a_linear_ramp_from_zero_starts_with_its_second_step() {
    let plan = ramp(Ramp::Linear, 0.0, 4.0, 5, f64::INFINITY);
    assert_eq!(times(&plan), [1_000_000_000, 2_000_000_000, 2_500_000_000, 2_833_333_333, 3_083_333_333]);
}

#[test]
fn rate_changes_are_listed_as_vllm_lists_them() {
    let changes: Vec<(u32, u64)> =
        ramp(Ramp::Linear, 2.0, 10.0, 8, f64::INFINITY).rps_changes().iter().map(|c| (c.rps, c.at.ns())).collect();
    #[rustfmt::skip]
    assert_eq!(changes, [(2, 0), (3, 818181818), (4, 1051515152), (5, 1235725678), (6, 1387899591), (7, 1517529221), (8, 1630432446), (9, 1730432446), (10, 1730432446)]);
    assert!(spec(10, 5.0).plan().unwrap().rps_changes().is_empty());
}

#[test]
fn a_duration_cuts_the_schedule() {
    let spec = Spec { request_rate: Some(100.0), duration: Some(Dur::from_secs(10)), ..Spec::default() };
    let plan = spec.plan().unwrap();
    assert!((850..1150).contains(&plan.requests()), "{}", plan.requests());
    assert!(plan.span() < Dur::from_secs(10));
    let both = Spec { num_prompts: Some(200), ..spec.clone() }.plan().unwrap();
    assert_eq!(both.requests(), 200);
    assert_eq!(times(&both), times(&plan)[..200], "the number alone doesn't change the times");
    let short = Spec { num_prompts: Some(5000), ..spec }.plan().unwrap();
    assert_eq!(times(&short), times(&plan));
}

#[test]
fn explicit_times_are_kept_to_the_nanosecond() {
    let schedule = vec![Dur(0), Dur(7), Dur(7), Dur(1_000_000_001)];
    let spec = Spec { schedule: Some(schedule), ..Spec::default() };
    assert_eq!(times(&spec.plan().unwrap()), [0, 7, 7, 1_000_000_001]);
    let spec = Spec { num_prompts: Some(2), ..spec };
    assert_eq!(times(&spec.plan().unwrap()), [0, 7]);
}
