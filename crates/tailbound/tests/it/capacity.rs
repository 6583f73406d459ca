//! `tailbound bench capacity`, in virtual time and against the emulator.

use crate::program::{Ended, run};
use crate::servers::{config, emulator};
use std::fs;
use std::path::Path;

/// An engine model that prefills 64 words and writes 4 tokens; a search of a few seconds.
const MODEL: &str = "--virtual --profile llama-3.1-8b-h100 --random-input-len 64 --random-output-len 4 --first 50";
const SHORT: &str = "--probe-requests 300 --budget 3000 --precision 0.1";

fn search(flags: &str) -> Ended {
    let all = format!("bench capacity {flags}");
    run(&all.split_whitespace().collect::<Vec<_>>())
}

fn in_folder(dir: &Path) -> Ended {
    search(&format!("{MODEL} {SHORT} --goodput e2el:60 --accelerators 2 --format json --output-dir {}", dir.display()))
}

#[test]
fn a_search_in_virtual_time_finds_what_can_be_asked_for_and_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("search");
    let first = in_folder(&dir).exits(0);
    let found = first.json();
    let answer = |key: &str| found["answer"][key].as_f64().unwrap_or_else(|| panic!("{key} of {found}"));
    let (low, capacity, high) = (answer("low"), answer("capacity"), answer("high"));
    assert!(low > 50.0 && low <= capacity && capacity <= high, "{found}");
    assert_eq!(found["per_accelerator"]["capacity"].as_f64(), Some(capacity / 2.0));
    let probes = found["probes"].as_array().unwrap();
    assert!(probes.len() >= 3 && probes.iter().all(|p| p["valid"] == true), "{found}");
    let curve = found["curve"].as_array().unwrap();
    let attained: Vec<f64> = curve.iter().map(|band| band["attainment"].as_f64().unwrap()).collect();
    assert!(attained.windows(2).all(|w| w[0] >= w[1]) && attained[0] > 0.9, "{attained:?}");

    // What was measured is not measured again, a probe that was cut off is, and the answer is the same.
    let last = dir.join(format!("probe-{:03}", probes.len() - 1));
    fs::remove_file(last.join("manifest.json")).unwrap();
    fs::remove_file(dir.join("result.json")).unwrap();
    assert_eq!(in_folder(&dir).exits(0).stdout, first.stdout);
    assert_eq!(fs::read_to_string(dir.join("result.json")).unwrap(), first.stdout);
    run(&["verify", dir.join("probe-000").to_str().unwrap()]).exits(0);
    // Its folder gives the answer and the page again.
    let page = folder.path().join("page.html");
    let reported =
        run(&["report", dir.to_str().unwrap(), "--html", page.to_str().unwrap(), "--format", "json"]).exits(0);
    assert_eq!(reported.stdout, first.stdout);
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("Attainment over load") && html.contains(found["sentence"].as_str().unwrap()));
    let other = format!("{MODEL} {SHORT} --goodput e2el:70 --output-dir {}", dir.display());
    search(&other).exits(2);

    // Well inside it is borne, well outside it isn't.
    let expect = |rate: f64| search(&format!("{MODEL} {SHORT} --goodput e2el:60 --expect {rate:.3}"));
    assert!(expect(0.7 * low).exits(0).stdout.contains("Yes: "));
    assert!(expect(1.4 * high).exits(99).stdout.contains("No: "));
}

#[test]
fn concurrency_thresholds_fluidity_and_what_is_infeasible() {
    let of = |more: &str| search(&format!("{MODEL} {SHORT} {more} --format json"));
    let few = MODEL.replace("--first 50", "--first 4");
    let limits = "--threshold p90:tpot:10ms p90:ttft:200";
    let by = search(&format!("{few} {SHORT} --concurrency {limits} --format json")).exits(0).json();
    let held = by["answer"]["capacity"].as_f64().unwrap();
    assert!(held >= 4.0 && held.fract() == 0.0 && by["answer"]["unit"] == "concurrency", "{by}");
    let fluid = of("--fluidity --tbt-deadline 15ms --ttft-deadline 100ms").exits(0).json();
    assert!(fluid["answer"]["capacity"].as_f64().unwrap() > 50.0, "{fluid}");
    let none = search(&format!("{MODEL} {SHORT} --goodput e2el:1")).exits(99);
    assert!(none.stdout.contains("No load meets the objectives"), "{}", none.stdout);
}

#[test]
fn a_server_is_searched_by_the_same_code() {
    let server = emulator(config(2));
    let flags = format!(
        "--base-url {} --input-len 8 --random-output-len 4 --goodput e2el:10s --expect 300 --probe-requests 300 --budget 300",
        server.url()
    );
    let ended = search(&flags);
    // A busy machine may not deliver the load; then that is said, and nothing is claimed.
    match ended.code {
        Some(0) => assert!(ended.stdout.contains("Yes: "), "{}", ended.stdout),
        _ => assert!(ended.exits(3).stdout.contains("INVALID")),
    }
}

#[test]
fn what_cannot_be_searched_is_refused() {
    search("--virtual").refuses(2, &["nothing is asked of a load"]).hints("--goodput");
    search("--virtual --threshold p99:itl:5").refuses(2, &["--threshold p99:itl:5"]).hints("ttft");
    search("--virtual --threshold 99:ttft:5").refuses(2, &["--threshold 99:ttft:5"]);
    search("--virtual --goodput ttft:5 --attainment 1.5").refuses(2, &["--attainment 1.5"]);
    search("--virtual --goodput ttft:5 --budget 10").refuses(2, &["--budget 10"]);
    search("--virtual --goodput ttft:5 --concurrency --expect 2.5").refuses(2, &["--expect 2.5"]);
}
