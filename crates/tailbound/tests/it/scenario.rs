//! Scenarios from a file, against an emulator.

use crate::program::{Ended, run};
use crate::servers::{config, emulator};
use std::path::Path;
use tailbound_emulator::Handle;

const PHASES: &str = r#"
[[phase]]
name = "steady"
executor = "constant-arrival-rate"
rate = "40/s"
duration = "500ms"
class = "chat"
[[phase]]
name = "beside"
executor = "per-client-iterations"
start = "100ms"
clients = 3
iterations = 4
class = "batch"
[[phase]]
name = "ramp"
executor = "ramping-vus"
start = "600ms"
stages = [{ duration = "100ms", target = 4 }, { duration = "200ms", target = 4 }]
class = "chat"
"#;

fn scenario(folder: &Path, server: &Handle, more: &str) -> String {
    let head = format!(
        "[serve]\nbase-url = \"{}\"\nrandom-input-len = 8\nrandom-output-len = 4\ndisable-tqdm = true\n",
        server.url()
    );
    let path = folder.join("scenario.toml");
    std::fs::write(&path, format!("{more}\n{head}{PHASES}")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_dry_run_prints_plan_hash_and_duration_without_a_server() {
    let (server, folder) = (emulator(config(1)), tempfile::tempdir().unwrap());
    let file = scenario(folder.path(), &server, "");
    server.stop().unwrap();
    let dry = |flags: &[&str]| -> Ended { run(&[&["bench", "run", &file, "--dry-run"], flags].concat()).exits(0) };
    let first = dry(&[]);
    for part in [
        "steady             0s to 500ms: 40/s, 20 requests, class chat",
        "600.1s at most",
        "clients from 1 to 4 in 100ms",
    ] {
        assert!(first.stdout.contains(part), "{part} is not in {}", first.stdout);
    }
    let hash = |ended: &Ended| ended.line("plan").to_owned();
    assert_eq!(hash(&first), hash(&dry(&[])));
    assert_ne!(hash(&first), hash(&dry(&["--", "--seed", "7"])));
}

#[test]
fn a_scenario_that_makes_no_sense_is_refused() {
    let (server, folder) = (emulator(config(1)), tempfile::tempdir().unwrap());
    for (more, flags, says) in [
        ("speed = 3", vec![], "unknown field `speed`"),
        ("class = { none = { ttft = 1 } }", vec![], "class `none`: no phase sends it"),
        ("objectives = { speed = 1 }", vec![], "--goodput speed:1"),
        ("", vec!["--", "--request-rate", "3"], "--request-rate: contradicts the phases"),
        ("", vec!["--", "--num-prompts", "3"], "--num-prompts: contradicts the phases"),
        ("", vec!["--", "--no-such-flag"], "unexpected argument '--no-such-flag'"),
    ] {
        let file = scenario(folder.path(), &server, more);
        run(&[&["bench", "run", file.as_str()], &flags[..]].concat()).refuses(2, &[says]);
    }
    run(&["bench", "run", "/no/such/file"]).refuses(2, &["/no/such/file: failed to read it"]);
}
