//! What `tailbound report` writes of a folder: the page, its plots, the requests as files; and `--html` of the commands that measure.

use crate::program::run;
use serde_json::Value;
use std::fs;
use std::path::Path;

const SCENARIO: &str = "seed = 1
policy = '''
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins: [{type: round-robin-picker}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: round-robin-picker}]}]
'''
[engines]
count = 2
profile = 'llama-3.1-8b-h100'
[traffic]
arrivals = { law = 'poisson:10/s', requests = 120 }
lengths = { input = 'lognormal:mean=300,cv=1', output = 'uniform:10..40' }
";

fn report(dir: &Path, flags: &[(&str, &Path)]) -> crate::program::Ended {
    let flags = flags.iter().flat_map(|(flag, file)| [(*flag).to_owned(), file.display().to_string()]);
    let args: Vec<String> = ["report".to_owned(), dir.display().to_string()].into_iter().chain(flags).collect();
    run(&args)
}

fn lines(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_simulated_run_has_a_page_plots_and_rows_as_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("two.toml"), SCENARIO).unwrap();
    let (scenario, kept, page) = (path("two.toml"), path("kept"), path("page.html"));
    let [scenario, kept, page] = [&scenario, &kept, &page].map(|p| p.to_str().unwrap());
    run(&["sim", scenario, "--run-dir", kept, "--html", page, "--goodput", "ttft:1s"]).exits(0);
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("SIMULATED") && html.contains("id=\"rows\"") && !html.contains("id=\"client\""));

    let (csv, jsonl, svg) = (path("rows.csv"), path("rows.jsonl"), path("figures"));
    report(Path::new(kept), &[("--csv", &csv), ("--jsonl", &jsonl), ("--svg", &svg), ("--html", &path("again.html"))])
        .exits(0);
    let rows: Vec<Value> = lines(&jsonl).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((rows.len(), lines(&csv).len()), (120, 121));
    assert!(rows.iter().all(|r| r["outcome"] == "good" && r["ttft_ns"].as_u64().is_some_and(|ns| ns > 0)));
    let figures: Vec<String> =
        fs::read_dir(&svg).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(figures.len(), html.matches("<figure class=\"plot\"").count());
    for name in ["time-to-first-token.svg", "output-tokens-per-second.svg"] {
        assert!(figures.iter().any(|f| f == name), "{figures:?}");
        assert!(fs::read_to_string(svg.join(name)).unwrap().starts_with("<?xml"));
    }
    as_parquet(Path::new(kept), &path("rows.parquet"), &rows);
}

/// The same rows, read back by the crate that the workload reader uses.
#[cfg(feature = "parquet")]
fn as_parquet(kept: &Path, file: &Path, rows: &[Value]) {
    use std::io::BufRead;
    report(kept, &[("--parquet", file)]).exits(0);
    let lines = std::io::BufReader::new(tailbound_parquet::lines(fs::File::open(file).unwrap()).unwrap()).lines();
    let there = |value: &Value| value.as_object().unwrap().iter().filter(|(_, v)| !v.is_null()).count();
    let mut n = 0;
    for (line, row) in lines.zip(rows) {
        let back: Value = serde_json::from_str(&line.unwrap()).unwrap();
        for (key, value) in row.as_object().unwrap().iter().filter(|(_, v)| !v.is_null()) {
            assert_eq!(&back[key], value, "{key}");
        }
        assert_eq!(there(&back), there(row));
        n += 1;
    }
    assert_eq!(n, rows.len());
}

#[cfg(not(feature = "parquet"))]
fn as_parquet(_: &Path, _: &Path, _: &[Value]) {}

#[test]
fn a_comparison_has_a_page_and_its_folder_gives_the_same_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let all = format!(
        "bench compare old=profile:llama-3.1-8b-h100 new=profile:llama-3.1-8b-h200 --primary mean_tpot --request-rate 8 --random-input-len 200 \
         --random-output-len 30 --num-prompts 400 --replicates 500 --output-dir {} --html {}",
        path("kept").display(),
        path("page.html").display()
    );
    let args: Vec<&str> = all.split_whitespace().collect();
    let first = run(&args).exits(0);
    let html = fs::read_to_string(path("page.html")).unwrap();
    assert!(html.contains("new&#39;s mean TPOT is ") && html.contains("Latencies: new against old"));
    let again = report(&path("kept"), &[("--html", &path("again.html")), ("--svg", &path("figures"))]).exits(0);
    assert_eq!(again.stdout, first.stdout);
    assert_eq!(fs::read_to_string(path("again.html")).unwrap(), html);
    assert!(path("figures/latencies-new-against-old.svg").is_file());
    report(&path("kept"), &[("--csv", &path("rows.csv"))]).refuses(2, &["--csv", "no requests of its own"]);
    assert!(!path("rows.csv").exists());
    report(&path("kept/old/round-1"), &[("--csv", &path("rows.csv"))]).exits(0);
    assert_eq!(lines(&path("rows.csv")).len(), 101);
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_anything_is_measured() {
    for command in [
        "bench compare a=profile:llama-3.1-8b-h100 b=profile:llama-3.1-8b-h200 --html nowhere/at/all.html",
        "bench capacity --virtual --goodput ttft:100 --html nowhere/at/all.html",
        "report . --html nowhere/at/all.html",
    ] {
        let args: Vec<&str> = command.split_whitespace().collect();
        run(&args).refuses(2, &["failed to write nowhere/at/all.html: there is no folder nowhere/at"]);
    }
}
