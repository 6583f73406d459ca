use super::{facts, lengths, rows};
use tailbound_record::Row;
use tailbound_stats::RunFacts;
use tailbound_stats::compare::{Claim, Comparison, Design, Measure, Pairing, Regression, Run, Side, compare, load};
use tailbound_stats::{Objective, ObjectiveMetric, Objectives};

type Runs = Vec<(Vec<Row>, RunFacts)>;

fn runs(seeds: &[u64], n: usize, median: f64) -> Runs {
    let one = |seed: &u64| {
        let rows = rows(lengths(*seed, n, median));
        let facts = facts(&rows);
        (rows, facts)
    };
    seeds.iter().map(one).collect()
}

fn side<'a>(name: &'a str, runs: &'a Runs) -> Side<'a> {
    Side { name, runs: runs.iter().map(|(rows, facts)| Run { rows, facts, valid: true }).collect() }
}

fn design(pairing: Pairing) -> Design {
    let secondary = ["mean_ttft", "mean_tpot"].map(|name| name.parse().unwrap()).into();
    Design { replicates: 500, secondary, ..Design::new("p99_ttft".parse().unwrap(), pairing) }
}

fn claim_of(comparison: &Comparison, name: &str) -> Claim {
    let measure: Measure = name.parse().unwrap();
    comparison.contrasts[0].findings.iter().find(|f| f.measure == measure).unwrap().claim
}

#[test]
fn a_faster_side_is_said_to_be_and_by_how_much() {
    let (a, b) = (runs(&[1, 2, 3, 4], 250, 100.0), runs(&[5, 6, 7, 8], 250, 70.0));
    let design = design(Pairing::Rounds);
    let comparison = compare(&[side("old", &a), side("new", &b)], &design);
    let contrast = &comparison.contrasts[0];
    assert_eq!(contrast.primary().claim, Claim::Lower);
    assert_eq!(contrast.primary().better(), Some(true));
    let ratio = contrast.primary().ratio.unwrap();
    assert!(ratio.low < 0.7 && 0.7 < ratio.high, "{ratio:?}");
    assert_eq!(claim_of(&comparison, "mean_tpot"), Claim::Same);
    assert_eq!(claim_of(&comparison, "mean_ttft"), Claim::Lower);
    let sentence = contrast.sentence("old", "new", &load(&a[0].1), &design);
    assert!(
        sentence.starts_with("new's p99 TTFT is ") && sentence.contains(" % lower at 10 requests/s than old's; "),
        "{sentence}"
    );
    assert!(sentence.contains("; mean TPOT does not differ"), "{sentence}");
}

#[test]
fn what_the_data_dont_support_is_left_open() {
    let (a, b) = (runs(&[1, 2, 3, 4], 100, 100.0), runs(&[5, 6, 7, 8], 100, 98.0));
    let comparison = compare(&[side("a", &a), side("b", &b)], &design(Pairing::Rounds));
    assert_eq!(comparison.contrasts[0].primary().claim, Claim::Open);
    assert!(comparison.contrasts[0].sentence("a", "b", "", &design(Pairing::Rounds)).contains("can't be told"));
    // 60 requests a side say nothing about a 99th percentile.
    let (a, b) = (runs(&[1], 60, 100.0), runs(&[2], 60, 20.0));
    assert_eq!(
        compare(&[side("a", &a), side("b", &b)], &design(Pairing::None)).contrasts[0].primary().claim,
        Claim::TooFew
    );
}

#[test]
fn nothing_is_claimed_while_a_run_is_invalid() {
    let (a, b) = (runs(&[1, 2, 3], 250, 100.0), runs(&[5, 6, 7], 250, 50.0));
    let (a, mut b) = (side("a", &a), side("b", &b));
    b.runs[1].valid = false;
    let comparison = compare(&[a, b], &design(Pairing::Rounds));
    assert_eq!(comparison.invalid, [(1, 1)]);
    assert!(comparison.contrasts[0].findings.iter().all(|f| f.better().is_none() && f.claim != Claim::Same));
    assert_eq!(comparison.contrasts[0].primary().claim, Claim::Withheld);
}

/// Every request 3 % slower, though lengths vary tenfold: only pairs show it.
#[test]
fn pairs_show_what_chance_would_hide() {
    let draw: Vec<u64> = lengths(9, 300, 100.0);
    let one = |factor: f64| {
        let rows = rows(draw.iter().map(|ns| (*ns as f64 * factor) as u64));
        let facts = facts(&rows);
        vec![(rows, facts)]
    };
    let (a, b) = (one(1.0), one(1.03));
    let primary = |pairing| {
        let design =
            Design { replicates: 500, secondary: Vec::new(), ..Design::new("mean_ttft".parse().unwrap(), pairing) };
        compare(&[side("a", &a), side("b", &b)], &design).contrasts[0].primary().claim
    };
    assert_eq!((primary(Pairing::Requests), primary(Pairing::None)), (Claim::Higher, Claim::Open));
    // Of runs with other numbers no pairs can be made.
    let fewer = runs(&[4], 299, 103.0);
    let comparison = compare(&[side("a", &a), side("b", &fewer)], &design(Pairing::Requests));
    assert_eq!(comparison.contrasts[0].pairing, Pairing::Rounds);
}

/// A side whose runs differ by 10 % from each other may look 3 % slower by chance; within each run everything is certain.
#[test]
fn what_differs_from_run_to_run_widens_the_interval() {
    let constant = |ms: &[u64]| -> Runs {
        let one = |ms: &u64| {
            let rows = rows((0..400).map(|i| ms * 1_000_000 + i * 1000));
            let facts = facts(&rows);
            (rows, facts)
        };
        ms.iter().map(one).collect()
    };
    let design =
        Design { replicates: 500, secondary: Vec::new(), ..Design::new("mean_ttft".parse().unwrap(), Pairing::Rounds) };
    let (a, b) = (constant(&[100, 110, 90, 100]), constant(&[109, 104, 95, 102]));
    assert_eq!(compare(&[side("a", &a), side("b", &b)], &design).contrasts[0].primary().claim, Claim::Open);
    // What both sides of a round share is no difference.
    let (a, b) = (constant(&[100, 130, 90, 110]), constant(&[103, 134, 93, 113]));
    assert_eq!(compare(&[side("a", &a), side("b", &b)], &design).contrasts[0].primary().claim, Claim::Higher);
    let untied = Design { pairing: Pairing::None, ..design };
    assert_eq!(compare(&[side("a", &a), side("b", &b)], &untied).contrasts[0].primary().claim, Claim::Open);
}

/// One run that was faster in its first half: its requests hang together for longer than any stretch, and its fifths say so.
#[test]
fn a_single_run_that_drifts_is_less_sure_than_its_stretches() {
    let drifting = |seed: u64, last: f64| {
        let halves = lengths(seed, 200, 100.0).into_iter().chain(lengths(seed + 1, 200, last));
        let rows = rows(halves);
        let facts = facts(&rows);
        vec![(rows, facts)]
    };
    let (a, b) = (drifting(1, 100.0), drifting(3, 160.0));
    let design =
        Design { replicates: 500, secondary: Vec::new(), ..Design::new("mean_ttft".parse().unwrap(), Pairing::None) };
    let comparison = compare(&[side("a", &a), side("b", &b)], &design);
    let found = comparison.contrasts[0].primary();
    let (whole, within) = (found.ratio.unwrap(), found.within.unwrap());
    assert!(whole.low < within.low && within.high < whole.high, "{whole:?} {within:?}");
    assert!(comparison.contrasts[0].sentence("a", "b", "", &design).starts_with("between these runs, "));
}

#[test]
fn a_regression_is_shown_possible_or_excluded() {
    let (a, b) = (runs(&[1, 2, 3, 4], 500, 100.0), runs(&[5, 6, 7, 8], 500, 112.0));
    let design =
        Design { replicates: 500, secondary: Vec::new(), ..Design::new("mean_ttft".parse().unwrap(), Pairing::Rounds) };
    let forth = compare(&[side("a", &a), side("b", &b)], &design);
    let back = compare(&[side("b", &b), side("a", &a)], &design);
    let (slower, faster) = (forth.contrasts[0].primary(), back.contrasts[0].primary());
    assert_eq!(slower.regression(0.05), Regression::Shown, "{:?}", slower.ratio);
    assert_eq!(slower.regression(0.12), Regression::Possible);
    assert_eq!(slower.regression(0.25), Regression::Excluded);
    assert_eq!(faster.regression(0.0), Regression::Excluded);
}

#[test]
fn shares_are_compared_in_points_and_certainty_has_its_price() {
    let objectives =
        Objectives { all: vec![Objective { metric: ObjectiveMetric::Ttft, limit_ms: 100.0 }], ..Objectives::default() };
    let judged = |seeds: &[u64], median: f64| -> Runs {
        let with = |(rows, facts): (Vec<Row>, RunFacts)| (rows, RunFacts { objectives: objectives.clone(), ..facts });
        runs(seeds, 300, median).into_iter().map(with).collect()
    };
    let design = Design { replicates: 500, secondary: Vec::new(), ..Design::new(Measure::Attainment, Pairing::Rounds) };
    let (a, b) = (judged(&[1, 2, 3], 100.0), judged(&[4, 5, 6], 60.0));
    let comparison = compare(&[side("a", &a), side("b", &b)], &design);
    let found = comparison.contrasts[0].primary();
    assert_eq!((found.claim, found.better()), (Claim::Higher, Some(true)));
    assert!(found.difference.unwrap().low > 0.3 && found.sentence("a", "b", &design).contains("points higher"));
    // Everything answered on both sides of 20 requests doesn't make two sides the same.
    let few = (runs(&[1], 20, 100.0), runs(&[2], 20, 100.0));
    let comparison = compare(&[side("a", &few.0), side("b", &few.1)], &Design::new(Measure::Completed, Pairing::None));
    assert_eq!(comparison.contrasts[0].primary().claim, Claim::Open);
}

#[test]
fn three_sides_are_two_contrasts_and_share_the_chance_of_error() {
    let (a, b, c) = (runs(&[1, 2, 3], 400, 100.0), runs(&[4, 5, 6], 400, 50.0), runs(&[7, 8, 9], 400, 100.0));
    let design =
        Design { replicates: 500, secondary: Vec::new(), ..Design::new("mean_ttft".parse().unwrap(), Pairing::Rounds) };
    let comparison = compare(&[side("a", &a), side("b", &b), side("c", &c)], &design);
    let claims: Vec<(usize, Claim)> = comparison.contrasts.iter().map(|c| (c.side, c.primary().claim)).collect();
    assert_eq!(claims[0], (1, Claim::Lower));
    assert!(claims[1] != (2, Claim::Lower) && claims[1] != (2, Claim::Higher));
    let p = comparison.contrasts[0].primary();
    assert!(p.adjusted_p.unwrap() >= 2.0 * p.p.unwrap() * 0.999);
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let (a, b) = (runs(&[1, 2, 3], 100, 100.0), runs(&[5, 6, 7], 100, 90.0));
    let once = || format!("{:?}", compare(&[side("a", &a), side("b", &b)], &design(Pairing::Rounds)));
    assert_eq!(once(), once());
}

#[test]
fn names_of_measures_are_read_back() {
    for measure in Measure::headlines() {
        assert_eq!(measure.to_string().parse::<Measure>().unwrap(), measure);
    }
    assert_eq!("median_ttft".parse::<Measure>().unwrap().to_string(), "p50_ttft");
    for bad in ["ttft", "p_ttft", "p100_ttft", "max_ttft", "p99_foo", "p-1_tpot", "pNaN_e2e"] {
        assert!(bad.parse::<Measure>().unwrap_err().to_string().contains(bad));
    }
}
