//! The bundle of one run: what it holds, and how a change shows.

use crate::program::{bench, run};
use crate::servers::{config, emulator};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A run of 30 requests, kept.
fn kept() -> (TempDir, PathBuf) {
    let (server, folder) = (emulator(config(2)), tempfile::tempdir().unwrap());
    let dir = folder.path().join("run");
    let flags = format!(
        "--num-prompts 30 --max-concurrency 3 --random-input-len 8 --random-output-len 6 --goodput ttft:200 --no-fail --run-dir {} \
         --save-result --save-detailed --result-dir {} --result-filename saved.json",
        dir.display(),
        folder.path().display()
    );
    bench(&server.url(), &flags).exits(0);
    (folder, dir)
}

fn verify(dir: &Path, more: &[&str]) -> crate::program::Ended {
    run(&[&["verify", dir.to_str().unwrap(), "--format", "json"], more].concat())
}

#[test]
fn a_run_is_verified_from_its_rows() {
    let (folder, dir) = kept();
    let manifest: Value = serde_json::from_slice(&fs::read(dir.join("manifest.json")).unwrap()).unwrap();
    // The settings, 30 rows, what the server said before and after, the ending.
    assert_eq!((&manifest["kind"], &manifest["rows"]["records"]), (&"run".into(), &34.into()));
    for digest in ["plan", "settings"] {
        assert_eq!(manifest[digest].as_str().unwrap().len(), 64, "{digest}");
    }
    let found = verify(&dir, &[]).exits(0).json();
    assert_eq!(
        (&found["verified"], &found["rows"], &found["notes"]),
        (&true.into(), &30.into(), &serde_json::json!([]))
    );
    // The result saved elsewhere has the details of each request besides.
    let saved = folder.path().join("saved.json");
    let saved = saved.to_str().unwrap();
    verify(&dir, &["--result", saved]).exits(0);
    let text = fs::read_to_string(saved).unwrap();
    let mut result: Value = serde_json::from_str(&text).unwrap();
    result["mean_ttft_ms"] = 0.5.into();
    fs::write(saved, result.to_string()).unwrap();
    let found = verify(&dir, &["--result", saved]).exits(1).json();
    assert_eq!(found["mismatches"][0]["figures"][0]["figure"], "mean_ttft_ms", "{found}");
}

#[test]
fn a_row_that_is_taken_out_or_cut_off_is_missed() {
    let (_folder, dir) = kept();
    let log = dir.join("events.log");
    let whole = fs::read(&log).unwrap();
    let lead = |at: usize| u32::from_le_bytes(*whole[at..].first_chunk::<4>().unwrap()) as usize + 8;
    // Behind the settings and what the server said before the load.
    let row = 8 + lead(8) + lead(8 + lead(8));
    let without: Vec<u8> = [&whole[..row], &whole[row + lead(row)..]].concat();
    fs::write(&log, without).unwrap();
    let found = verify(&dir, &[]).exits(1).json();
    let all = found["mismatches"].to_string();
    assert!(all.contains("it has 33 records, and had 34"), "{all}");
    assert!(all.contains("\"figure\":\"completed\""), "{all}");
    for cut in [whole.len() - 3, whole.len() / 2] {
        fs::write(&log, &whole[..cut]).unwrap();
        verify(&dir, &[]).exits(1);
    }
    fs::write(&log, &whole).unwrap();
    verify(&dir, &[]).exits(0);
}

#[test]
fn a_run_that_never_ended_has_no_bundle() {
    let (_folder, dir) = kept();
    fs::remove_file(dir.join("manifest.json")).unwrap();
    run(&["verify", dir.to_str().unwrap()])
        .refuses(1, &["manifest.json", "did not come to its end"])
        .hints("tailbound report");
}
