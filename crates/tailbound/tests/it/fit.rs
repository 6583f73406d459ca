//! `tailbound fit`: a law from the rows of a run, and what is wrong with them is a line that names file and line.

use crate::program::run;
use std::fmt::Write as _;

/// Requests one after the other on a server whose step takes 9 ms, 0.06 ms a prompt token, 0.00005 ms a token of context.
fn lines() -> String {
    let mut text = String::new();
    for i in 0..60u32 {
        let (input, output) = (40 + 37 * i, 5 + i % 7);
        let ttft = 9e-3 + 6e-5 * f64::from(input);
        let tpot = 9e-3 + 5e-8 * f64::from(input + output / 2 + 1);
        let at = 2 * i;
        writeln!(text, r#"{{"at":{at},"input":{input},"output":{output},"ttft":{ttft},"tpot":{tpot}}}"#)
            .expect("a string takes everything");
    }
    text
}

#[test]
fn a_law_is_learnt_and_told_with_its_error() {
    let dir = tempfile::tempdir().unwrap();
    let (rows, law) = (dir.path().join("rows.jsonl"), dir.path().join("law.json"));
    std::fs::write(&rows, lines()).unwrap();
    let told =
        run(&["fit", rows.to_str().unwrap(), "--output", law.to_str().unwrap(), "--format", "json"]).exits(0).json();
    let held_out = &told["held_out"];
    assert_eq!(held_out["requests"].as_u64(), Some(18));
    for figure in ["ttft_mean", "tpot_mean"] {
        assert!(held_out[figure].as_f64().unwrap().abs() < 0.01, "{told}");
    }
    let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&law).unwrap()).unwrap();
    assert_eq!(kept, told["law"]);
    assert!((kept["prefill"][1].as_f64().unwrap() / 0.06 - 1.0).abs() < 0.05, "{kept}");
    let text = run(&["fit", rows.to_str().unwrap()]).exits(0).stdout;
    assert!(text.contains("held out      18 requests"), "{text}");
}

#[test]
fn what_can_not_be_learnt_from_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows.jsonl");
    let fit = |text: &str| {
        std::fs::write(&file, text).unwrap();
        run(&["fit", file.to_str().unwrap()])
    };
    let few = lines().lines().take(3).collect::<Vec<_>>().join("\n");
    assert!(fit(&few).exits(1).stderr.contains("3 answered requests with two or more tokens are too few"));
    let bad = fit("{\"at\":0,\"input\":0,\"output\":1,\"ttft\":1}\n").exits(2).stderr;
    assert!(bad.contains("line 1: tokens must be above 0"), "{bad}");
    assert!(fit("{\"at\":0}\n").exits(2).stderr.contains("line 1: missing field"));
    std::fs::write(&file, "{}").unwrap();
    let law = run(&["emulate", "--law", file.to_str().unwrap()]).exits(2).stderr;
    assert!(law.contains("missing field `decode`"), "{law}");
}
