//! `tailbound sim`: a scenario is a report, the same each time; what is wrong with one is a line that names file and key.

use crate::program::{Ended, run};
use std::path::{Path, PathBuf};

const SCENARIO: &str = "seed = 1
policy = '''
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins: [{type: round-robin-picker}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: round-robin-picker}]}]
'''
[engines]
count = 3
profile = 'llama-3.1-8b-h100'
[traffic.shared_prefix]
groups = 2
prompts_per_group = 3
system = 300
question = 30
output = 20
[traffic.arrivals]
stages = [[10, 6]]
";

fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let file = dir.join(name);
    std::fs::write(&file, text).unwrap();
    file
}

fn sim(file: &Path, flags: &[&str]) -> Ended {
    run(&[&["sim", file.to_str().unwrap()], flags].concat())
}

#[test]
fn a_scenario_is_reported_as_a_run_and_comes_out_the_same_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "three.toml", SCENARIO);
    let (first, second) = (sim(&file, &["--goodput", "ttft:10s"]), sim(&file, &["--goodput", "ttft:10s"]));
    let (first, second) = (first.exits(0), second.exits(0));
    assert_eq!(first.stdout, second.stdout);
    assert_eq!((first.line("Successful requests:"), first.line("Verdict:")), ("60", "VALID"));
    assert_eq!(first.line("Total generated tokens:"), "1200");
    let json = sim(&file, &["--format", "json"]).exits(0).json();
    assert_eq!((json["completed"].as_u64(), json["total_output_tokens"].as_u64()), (Some(60), Some(1200)));
    sim(&file, &["--goodput", "ttft:0.001"]).exits(99);
}

#[test]
fn what_is_wrong_with_a_scenario_is_one_line_with_file_and_key() {
    let dir = tempfile::tempdir().unwrap();
    for (right, wrong, says) in [
        ("count = 3", "count = 'three'", "line 9: count: invalid type"),
        ("count = 3", "number = 3", "line 9: unknown field `number`"),
        ("llama-3.1-8b-h100", "abacus", "engines.profile: no profile `abacus`"),
        ("groups = 2", "groups = 0", "shared_prefix: groups"),
        ("[[10, 6]]", "[[10, -6]]", "arrivals.stages"),
        ("{type: round-robin-picker}", "{type: oracle}", "policy: plugin `oracle`"),
    ] {
        assert!(SCENARIO.contains(right));
        let file = write(dir.path(), "wrong.toml", &SCENARIO.replace(right, wrong));
        sim(&file, &[]).refuses(2, &["wrong.toml: ", says]);
    }
}
