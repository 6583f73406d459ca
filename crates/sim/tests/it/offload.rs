//! Offloading, against what the cache curve of the requests themselves predicts.

use crate::policy::path;
use tailbound_clock::Seed;
use tailbound_sim::{Sweep, run};
use tailbound_trace::describe::CacheFigures;
use tailbound_trace::generate::{Extent, Popularity, Prefixes, Shape, Synthetic, synthesize};
use tailbound_trace::{Output, Trace, describe_rows, write};

/// Blocks of 16 tokens that the GPU's cache holds in the scenario, and the host's.
const SIZES: [u64; 2] = [10_000, 30_000];

/// The requests of `offload.toml`, with the ids of their blocks.
fn requests() -> Trace {
    let synthetic = Synthetic {
        arrivals: "poisson:6/s".parse().unwrap(),
        extent: Extent::Requests(3000),
        input: "uniform:50..150".parse().unwrap(),
        output: "uniform:20..60".parse().unwrap(),
        rank_correlation: 0.0,
        prefixes: Some(Prefixes {
            groups: 150,
            tokens: "4000".parse().unwrap(),
            popularity: Popularity::Zipf(0.6),
            share: 1.0,
        }),
        shape: Shape::Single,
        media: Vec::new(),
        reason_ratio: None,
        block_tokens: Some(16),
        token_s: 0.02,
    };
    synthesize(&synthetic, Seed(5)).unwrap()
}

#[test]
fn offloading_raises_the_hit_ratio_by_what_the_cache_curve_predicts() {
    let trace = requests();
    let figures = describe_rows(&trace.rows, &trace.names, trace.block_tokens, trace.clock).prefix.unwrap();
    let predicted = SIZES.map(|size| {
        let at = |c: &&CacheFigures| c.capacity_blocks == Some(size);
        figures.prefix_cache.iter().find(at).unwrap().token_hit_ratio.unwrap()
    });
    let file = std::env::temp_dir().join(format!("tailbound-offload-{}.jsonl", std::process::id()));
    let mut text = Vec::new();
    write(&trace, Output::Canonical, &mut text).unwrap();
    std::fs::write(&file, text).unwrap();

    let mut found = Vec::new();
    for point in Sweep::open(&path("offload.toml")).unwrap().points {
        let mut scenario = point.scenario;
        let traffic = &mut scenario.traffic[0];
        (traffic.lengths, traffic.arrivals) = (None, None);
        traffic.trace = Some(tailbound_sim::Trace {
            file: file.clone(),
            format: None,
            from_s: None,
            to_s: None,
            rate: None,
            requests: None,
            output: None,
        });
        let f = run(&scenario).unwrap().figures;
        found.push((f.hit_ratio, f.tier_hit_ratio));
    }
    std::fs::remove_file(&file).unwrap();
    let [gpu, offload, large] = found[..] else { panic!("{found:?}") };
    let off = |(near, far): (f64, f64), predicted: f64| near + far - predicted;
    let all = [off(gpu, predicted[0]), off(offload, predicted[1]), off(large, predicted[1])];
    assert!(all.iter().all(|off| off.abs() < 0.02), "{found:?} {predicted:?}");
    assert!(predicted[1] - predicted[0] > 0.2, "{predicted:?}");
}
