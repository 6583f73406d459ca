//! A comparison as people and programs read it.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use tailbound_clock::{Seed, Time};
use tailbound_record::{End, Finish, Moment, Row};
use tailbound_report::compare::{Compared, File, Gate, Side, SideRun};
use tailbound_report::text::Colour;
use tailbound_stats::RunFacts;
use tailbound_stats::compare::{Design, Pairing, Run, agreement, compare, load};

/// 100 requests, 100 ms apart, whose first token took `ms` in the median and whose three others 20 ms each.
fn rows(seed: u64, ms: f64) -> Vec<Row> {
    let mut rng = Seed(seed).stream("rows");
    let one = |id: u64| {
        let mut row = Row::new(id);
        let sent = id * 100_000_000;
        for moment in [Moment::Scheduled, Moment::Released, Moment::WriteStart, Moment::Written] {
            row.at.set(moment, Time(sent));
        }
        let first = sent + (ms * 1e6 * (0.1 * rng.normal()).exp()) as u64;
        for token in 0..4 {
            let at = Time(first + token * 20_000_000);
            row.chunks.push(at, token as u32, 1, true);
            row.at.set_first(Moment::FirstToken, at);
            row.at.set(Moment::LastToken, at);
        }
        row.end = End::Done(Finish::Length);
        row.text = Some(if id == 7 && ms < 100.0 { "one twx" } else { "one two three" }.into());
        row
    };
    (0..100).map(one).collect()
}

fn compared(invalid: bool) -> Compared {
    let facts = RunFacts { request_rate: Some(10.0), ..RunFacts::new(Time::ZERO, Time(10_000_000_000)) };
    let runs = [[1, 2, 3, 4].map(|seed| rows(seed, 100.0)), [5, 6, 7, 8].map(|seed| rows(seed, 70.0))];
    let design = Design { replicates: 500, ..Design::new("mean_ttft".parse().unwrap(), Pairing::Rounds) };
    let run = |rows, valid| Run { rows, facts: &facts, valid };
    let a = runs[0].iter().map(|rows| run(rows.as_slice(), true)).collect();
    let b = runs[1].iter().enumerate().map(|(i, rows)| run(rows.as_slice(), !invalid || i != 1)).collect();
    let sides = [
        tailbound_stats::compare::Side { name: "old", runs: a },
        tailbound_stats::compare::Side { name: "new", runs: b },
    ];
    let told = |name: &str, spoilt: Option<usize>| Side {
        name: name.into(),
        source: format!("http://{name}:8000"),
        runs: (0..4)
            .map(|i| SideRun {
                order: Some(i + 1),
                folder: None,
                requests: 100,
                completed: 100,
                reasons: if spoilt == Some(i) { vec!["sends_late: sends left late".into()] } else { Vec::new() },
            })
            .collect(),
    };
    Compared {
        workload: "workload random".into(),
        load: load(&facts),
        comparison: compare(&sides, &design),
        sides: vec![told("old", None), told("new", invalid.then_some(1))],
        design,
        agreements: vec![Some(agreement(runs[0].iter().zip(&runs[1]).map(|(a, b)| (a.as_slice(), b.as_slice()))))],
        notes: vec!["a note".into()],
        gate: Some(Gate { tolerance: 0.05, proof: false }),
    }
}

fn value(compared: &Compared) -> serde_json::Value {
    serde_json::to_value(compared.record()).unwrap()
}

#[test]
fn people_read_a_sentence_a_table_and_what_it_rests_on() {
    let text = compared(false).record().text(Colour::Off);
    for part in [
        "workload random, at 10 requests/s\n",
        "  old: http://old:8000, 4 runs, 400 requests\n",
        "new's mean TTFT is ",
        " % lower at 10 requests/s than old's",
        "* Mean TTFT",
        "lower, better\n",
        "same within the margin\n",
        "4 rounds; rounds are paired, requests",
        "answers: 396 of 400 are the same",
        "part after 6 characters in the",
        "note: a note\n",
        "gate passed: mean TTFT is not shown to be more than 5 % worse\n",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
    assert!(!text.contains("Attainment"), "{text}");
    assert!(
        !text.contains('\x1b') && compared(false).record().text(Colour::On).contains("\x1b[32mlower, better\x1b[0m")
    );
    assert!(text.lines().all(|line| line.chars().count() <= 106), "{text}");
}

#[test]
fn programs_read_every_figure_and_null_for_what_is_missing() {
    let json = value(&compared(false));
    let contrast = &json["contrasts"][0];
    assert_eq!(
        (&contrast["side"], &contrast["against"], &contrast["knows_runs"]),
        (&"new".into(), &"old".into(), &true.into())
    );
    let findings = contrast["findings"].as_array().unwrap();
    assert_eq!(
        (&findings[0]["metric"], &findings[0]["claim"], &findings[0]["unit"]),
        (&"mean_ttft".into(), &"lower".into(), &"ms".into())
    );
    let ratio = findings[0]["ratio"]["value"].as_f64().unwrap();
    let quotient = findings[0]["b"].as_f64().unwrap() / findings[0]["a"].as_f64().unwrap();
    assert!((ratio - quotient).abs() < 1e-9 && (0.65..0.75).contains(&ratio));
    let attainment = findings.iter().find(|f| f["metric"] == "attainment").unwrap();
    assert!(attainment["a"].is_null() && attainment["p"].is_null() && attainment["claim"] == "missing");
    assert_eq!((&contrast["agreement"]["identical"], &contrast["agreement"]["pairs"]), (&396.into(), &400.into()));
    assert_eq!((&json["gate"]["passes"], &json["valid"]), (&true.into(), &true.into()));
}

#[test]
fn an_invalid_run_stands_above_the_table_and_nothing_is_claimed() {
    let compared = compared(true);
    let text = compared.record().text(Colour::Off);
    let reason = text.find("INVALID round 2: sends_late: sends left late").unwrap();
    assert!(reason < text.find("nothing is claimed about mean TTFT").unwrap(), "{text}");
    assert!(!text.contains("better") && !text.contains("gate passed"), "{text}");
    assert!(value(&compared)["gate"]["passes"].is_null() && compared.passes().is_none());
}

#[test]
fn a_page_says_the_sentence_first_and_draws_every_difference() {
    let compared = compared(false);
    let file = File::new(vec![compared.record()]);
    let again: File = serde_json::from_str(&file.json()).unwrap();
    assert_eq!((&again, again.failings()), (&file, (false, false)));
    let html = again.page().html();
    let (sentence, plot) = (html.find("mean TTFT is ").unwrap(), html.find("<figure class=\"plot\"").unwrap());
    assert!(sentence < plot && html.contains("Gate passed: mean TTFT"));
    for title in ["Latencies: new against old", "Rates: new against old", "Shares of requests: new against old"] {
        assert!(html.contains(&format!("<h3>{title}</h3>")), "{title}");
    }
    assert!(html.contains("396 of 400 are the same") && html.contains("<td class=\"n\">Mean TTFT *</td>"));
    assert!(!html.contains("INVALID"));
}

#[test]
fn the_page_of_an_invalid_comparison_claims_nothing_and_shows_it_everywhere() {
    let file = File::new(vec![compared(true).record()]);
    assert_eq!(file.failings(), (true, false));
    let page = file.page();
    let html = page.html();
    assert!(html.contains("new, round 2 is INVALID: sends_late: sends left late."), "{html}");
    let plots = html.matches("<figure class=\"plot\"").count();
    assert!(plots >= 2 && html.matches("class=\"stamp\"").count() == 2 * plots);
    assert!(!html.contains(", better") && html.contains("<s>"));
    // The run itself in its table, and every difference in the other.
    let findings = file.comparisons[0].contrasts[0].findings.iter().filter(|f| f.a.is_some()).count();
    assert_eq!(html.matches("<tr class=\"void\">").count(), findings + 1);
    assert!(page.svgs().iter().all(|(_, svg)| svg.contains("INVALID run")));
}

#[test]
fn more_throughput_with_less_goodput_is_said() {
    let mut record = compared(false).record();
    let findings = &mut record.contrasts[0].findings;
    let estimate = |low: f64, high: f64| {
        serde_json::from_value(serde_json::json!({"value": (low + high) / 2.0, "low": low, "high": high})).unwrap()
    };
    for (metric, claim, range) in
        [("output_tokens_per_s", "higher", (1.2, 1.3)), ("goodput_per_s", "lower", (0.6, 0.7))]
    {
        let finding = findings.iter_mut().find(|f| f.metric == metric).unwrap();
        (finding.claim, finding.ratio) = (claim.into(), Some(estimate(range.0, range.1)));
    }
    let words =
        "Throughput rose while goodput fell: against old, new has +20 … +30 % throughput and -40 … -30 % goodput.";
    assert!(File::new(vec![record.clone()]).page().html().contains(words));
    record.contrasts[0].findings.retain(|f| f.metric != "goodput_per_s");
    assert!(!File::new(vec![record]).page().html().contains("Throughput rose"));
}
