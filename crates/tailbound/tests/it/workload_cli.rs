//! `tailbound workload`: the program says what the library says, accounts for every row, and leaves whole files or none.

use crate::machine::data;
use crate::program::{Ended, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tailbound_clock::Seed;
use tailbound_trace::generate::{Generate, fit, generate};
use tailbound_trace::servegen::Pool;
use tailbound_trace::{Description, Error, Failures, Options, Output, Trace, describe, open, write};

fn workload(args: &[&str]) -> Ended {
    let mut all = vec!["workload"];
    all.extend(args);
    run(&all)
}

fn library(file: &str, failures: Failures) -> Result<Description, Error> {
    describe(&mut open(file, &Options { failures, ..Options::default() })?)
}

fn trace(file: &str) -> Trace {
    let options = Options { failures: Failures::Keep, ..Options::default() };
    Trace::collect(open(file, &options).unwrap()).unwrap()
}

fn bytes(trace: &Trace, format: Output) -> Vec<u8> {
    let mut out = Vec::new();
    write(trace, format, &mut out).unwrap();
    out
}

fn names(dir: &Path) -> Vec<String> {
    fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_description_is_the_librarys() {
    for file in
        ["burstgpt/BurstGPT_1.first250.csv", "mooncake/synthetic_trace.first2000.jsonl", "messy/burstgpt_dirty.csv"]
    {
        let Some(file) = data(&format!("workloads/{file}")) else { return };
        for (flags, failures) in
            [(&["--format", "json"][..], Failures::Keep), (&["--format=json", "--drop-failures"], Failures::Drop)]
        {
            let ours = workload(&[&["describe", &file], flags].concat()).exits(0);
            let want = serde_json::to_value(library(&file, failures).unwrap()).unwrap();
            assert_eq!(ours.json(), want, "{file}");
            assert!(ours.stderr.starts_with("rows: "), "the account beside JSON: {}", ours.stderr);
        }
        let text = workload(&["describe", &file]).exits(0);
        assert_eq!(text.stdout, library(&file, Failures::Keep).unwrap().to_string());
        assert_eq!(text.stderr, "");
    }
}

#[test]
fn every_messy_file_is_described_or_refused_by_name() {
    let Some(folder) = data("workloads/messy") else { return };
    let (mut described, mut refused) = (0, 0);
    for name in names(Path::new(&folder)) {
        let file = format!("{folder}/{name}");
        let ended = workload(&["describe", &file]);
        match library(&file, Failures::Keep) {
            Ok(_) => described += u32::from(ended.exits(0).stdout.starts_with(&file)),
            Err(e) => refused += u32::from(ended.refuses(1, &[&e.to_string(), &name]).stdout.is_empty()),
        }
    }
    assert!(described >= 10 && refused >= 4, "{described} described, {refused} refused");
}

#[test]
fn definitions_come_when_asked_for() {
    let Some(file) = data("workloads/burstgpt/BurstGPT_1.first250.csv") else { return };
    let text = workload(&["describe", &file, "--explain"]).exits(0).stdout;
    let json = workload(&["describe", &file, "--explain", "--format", "json"]).exits(0).json();
    for d in describe::explain() {
        assert!(text.contains(d.meaning), "{}", d.figure);
        assert_eq!(json["definitions"][d.figure], Value::from(d.meaning));
    }
}

#[test]
fn a_model_is_learned_and_drawn_from_as_the_library_does() {
    let Some(file) = data("workloads/burstgpt/BurstGPT_1.first250.csv") else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (model, drawn, again, other) = (path("model.json"), path("a"), path("b"), path("c"));
    let learned = workload(&["fit", &file, "--output", &model]).exits(0);
    assert!(learned.stdout.is_empty() && learned.stderr.starts_with("rows: 250 read = 250 emitted + 0 dropped\n"));
    for (seed, to) in [("7", &drawn), ("7", &again), ("8", &other)] {
        let args = ["generate", "--model", &model, "--seed", seed, "--duration", "12h", "--output", to];
        let ended = workload(&[&args[..], &["--output-format", "timed_trace"]].concat()).exits(0);
        assert!(ended.stdout.is_empty() && ended.stderr.starts_with("rows: "), "{}", ended.stderr);
    }
    let ask = Generate { duration_s: Some(43_200.0), rate_scale: 1.0 };
    let want = generate(&fit(&trace(&file)).unwrap(), &ask, Seed(7)).unwrap();
    let want = bytes(&want, Output::TimedTrace);
    assert!(
        fs::read(&drawn).unwrap() == want && fs::read(&again).unwrap() == want && fs::read(&other).unwrap() != want
    );
    let text = fs::read_to_string(&model).unwrap();
    for (from, to, part) in [
        ("\"span_s\":", "\"span_s\":-", "span_s"),
        ("\"window_s\":", "\"window_s\":-", "client 1"),
        ("{", "", "not a model"),
        ("\"lengths\":[", "\"lengths\":[],\"_\":[", "client 1"),
    ] {
        fs::write(&model, text.replacen(from, to, 1)).unwrap();
        let ended = workload(&["generate", "--model", &model, "--output", &drawn]);
        ended.refuses(1, &["model.json", part]).hints("tailbound workload fit");
    }
    fs::write(&model, &text).unwrap();
    let ended = workload(&["generate", "--model", &model, "--output", &drawn, "--rate-scale", "1e9"]);
    ended.refuses(1, &["it would be about 2.5e11 requests"]).hints("--rate-scale");
    workload(&["generate", "--model", &model, "--output", &drawn, "--duration", "0"]).refuses(2, &["--duration"]);
    assert_eq!(fs::read(&drawn).unwrap(), want, "a failed run leaves the file that was there");
}

#[test]
fn conversion_changes_what_was_asked_and_accounts_for_the_rest() {
    let Some(file) = data("workloads/mooncake/synthetic_trace.first2000.jsonl") else { return };
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("out.jsonl").to_str().unwrap().to_owned();
    let convert = |flags: &[&str]| workload(&[&["convert", &file, "--output", &to], flags].concat()).exits(0);
    for (word, format) in
        [("canonical", Output::Canonical), ("mooncake", Output::Mooncake), ("timed_trace", Output::TimedTrace)]
    {
        let ended = convert(&["--output-format", word]);
        assert_eq!(fs::read(&to).unwrap(), bytes(&trace(&file), format), "{word}");
        assert!(ended.stdout.is_empty() && ended.stderr.starts_with("rows: 2000 read = 2000 emitted + 0 dropped\n"));
    }
    let ended = convert(&["--output-format", "canonical", "--window", "1min..3min", "--rate-scale", "20/s"]);
    let mut want = trace(&file);
    let gone = want.window(60_000_000_000, 180_000_000_000);
    let factor = want.scale_to_rate(20.0).unwrap();
    assert_eq!(fs::read(&to).unwrap(), bytes(&want, Output::Canonical));
    assert!(
        ended.stderr.contains(&format!("window: {gone} rows")) && ended.stderr.contains(&format!("speed: {factor}"))
    );
    convert(&["--output-format", "canonical", "--rate-scale", "2", "--sample-sessions", "25%"]);
    let fewer = trace(&to);
    assert!((400..600).contains(&fewer.rows.len()), "{}", fewer.rows.len());
    assert!(fewer.span_ns() < trace(&file).span_ns() * 51 / 100);
    let flags =
        ["--merge", &file, "--num-prompts", "5000", "--input-scale", "2", "--prefix-roots", "3", "--max-gap", "1s"];
    let ended = convert(&[&["--output-format", "canonical"][..], &flags].concat());
    for line in ["  merged: 2000 rows", "  rows: 5000 of 4000", "  gaps: "] {
        assert!(ended.stderr.contains(line), "{line}: {}", ended.stderr);
    }
    let more = trace(&to);
    assert_eq!((more.rows.len(), more.rows[0].input), (5000, trace(&file).rows[0].input.map(|n| 2 * n)));
    assert!(more.times().windows(2).all(|w| w[1] - w[0] <= 1_000_000_000));
    convert(&["--output-format", "canonical"]);
    let stdout = workload(&["convert", &to, "--output", "-", "--output-format", "canonical"]).exits(0).stdout;
    assert_eq!(stdout.as_bytes(), fs::read(&to).unwrap());
    assert_eq!(names(dir.path()), ["out.jsonl"], "no partial file is left");
}

#[test]
fn what_cannot_be_written_is_named_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("in.csv"), dir.path().join("out"));
    fs::write(&from, "num_prefill_tokens,num_decode_tokens\n3,4\n5,6\n").unwrap();
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
    let ended = workload(&["convert", from, "--output", to, "--output-format", "timed_trace"]).exits(1);
    assert!(ended.stderr.contains("error: failed to write row 1: a timed trace needs a time"), "{}", ended.stderr);
    let ended = workload(&["fit", from, "--output", to]).exits(1);
    assert!(ended.stderr.contains("error: failed to fit") && ended.stdout.is_empty(), "{}", ended.stderr);
    let ended = workload(&["convert", from, "--output", "/nonexistent/out", "--output-format", "canonical"]).exits(1);
    assert!(ended.stderr.contains("error: failed to write /nonexistent/out"), "{}", ended.stderr);
    assert_eq!(names(dir.path()), ["in.csv"]);
}

#[test]
fn wrong_usage_names_the_flag_and_a_map_of_columns_reads_any_table() {
    for (flags, part) in [
        (&["describe", "x", "--trace-format", "excel"][..], "--trace-format"),
        (&["describe", "x", "--columns", "when=t"], "--columns"),
        (&["convert", "x", "--output", "y", "--output-format", "excel"], "--output-format"),
        (&["convert", "x", "--output", "y", "--output-format", "canonical", "--window", "3..2"], "--window"),
        (&["convert", "x", "--output", "y", "--output-format", "canonical", "--speed-up", "0"], "--speed-up"),
        (
            &["convert", "x", "--output", "y", "--output-format", "canonical", "--sample-sessions", "2"],
            "--sample-sessions",
        ),
        (&["generate", "--model", "x", "--output", "y", "--duration", "3parsecs"], "--duration"),
    ] {
        workload(flags).refuses(2, &[part]);
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.csv");
    fs::write(&file, "when,in,out\n0,10,1\n250,20,x\n1000,30,3\n").unwrap();
    let file = file.to_str().unwrap();
    workload(&["describe", file]).refuses(1, &["own.csv", "no known format"]).hints("--columns");
    let map = "time=when,unit=ms,input=in,output=out";
    let json = workload(&["describe", file, "--columns", map, "--format", "json"]).exits(0).json();
    assert_eq!((&json["rows"], &json["arrivals"]["span_s"]), (&Value::from(2), &Value::from(1.0)));
    assert_eq!(json["accounting"]["dropped"]["not_a_number"]["first_row"], Value::from(2));
}

#[test]
fn workloads_are_drawn_from_laws_files_and_pools() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (to, lengths, stages) = (path("out.jsonl"), path("lengths"), path("stages.csv"));
    fs::write(&lengths, "tokens\n100\n100\n700\n").unwrap();
    fs::write(&stages, "seconds,rate\n60,10\n60,10\n").unwrap();
    let draw = |flags: &[&str]| {
        workload(&[&["generate", "--output", &to, "--seed", "3"], flags].concat()).exits(0);
        trace(&to)
    };
    let input = format!("file:{lengths}");
    let drawn = draw(&[
        "--arrivals",
        "gamma:5/s,cv=3",
        "--num-prompts",
        "300",
        "--input-tokens",
        &input,
        "--turns",
        "1..4",
        "--block-tokens",
        "16",
    ]);
    assert_eq!((drawn.rows.len(), drawn.block_tokens), (300, Some(16)));
    assert!(drawn.rows.iter().all(|r| r.session.is_some()));
    let staged = draw(&["--stages", &stages, "--gap-cv", "0", "--duration", "2min"]);
    assert!((899..=901).contains(&staged.rows.len()), "{}", staged.rows.len());
    let doubled = draw(&["--stages", &stages, "--gap-cv", "0", "--duration", "2min", "--rate-scale", "2"]);
    assert!((1799..=1801).contains(&doubled.rows.len()), "{}", doubled.rows.len());
    for (flags, part) in [
        (&[][..], "nothing says what to draw"),
        (&["--arrivals", "5/s"], "--duration or --num-prompts"),
        (&["--arrivals", "5/fortnight", "--duration", "1s"], "--arrivals"),
        (&["--arrivals", "5/s", "--duration", "1s", "--turns", "some"], "--turns some"),
        (&["--arrivals", "5/s", "--duration", "1s", "--think", "3"], "--turns"),
        (&["--arrivals", "5/s", "--model", "m", "--duration", "1s"], "--model"),
    ] {
        workload(&[&["generate", "--output", &to], flags].concat()).refuses(2, &[part]);
    }
    let Some(pool) = data("workloads/servegen/data/reason/deepseek-r1") else { return };
    let pooled = draw(&["--servegen", &pool, "--window", "840min..860min", "--pool-rate", "10/s"]);
    assert!((11_000..13_000).contains(&pooled.rows.len()), "{}", pooled.rows.len());
    assert!(pooled.rows.iter().all(|r| r.client.is_some() && r.more.as_ref().is_some_and(|m| m.reasoning.is_some())));
    let text = workload(&["describe", &pool]).exits(0).stdout;
    assert!(text.contains("clients        29, over 144 windows of 600 s (24 h)"), "{text}");
    let json = workload(&["describe", &pool, "--format", "json"]).exits(0).json();
    assert_eq!(json, serde_json::to_value(Pool::open(&pool).unwrap().figures()).unwrap());
    workload(&["generate", "--output", &to, "--servegen", &pool, "--window", "90h..91h"]).refuses(1, &["nothing lies"]);
}

#[test]
fn the_page_is_whole_and_shows_names_as_text() {
    let dir = tempfile::tempdir().unwrap();
    let (file, page) = (dir.path().join("in.csv"), dir.path().join("page.html"));
    let rows: String =
        (0..200).map(|i| format!("{},{},</script><img src=x onerror=alert(1)>\n", i * i % 97, i + 1)).collect();
    fs::write(&file, format!("t,n,m\n{rows}")).unwrap();
    let (file, page) = (file.to_str().unwrap(), page.to_str().unwrap());
    let map = "time=t,input=n,model=m";
    let plain = workload(&["describe", file, "--columns", map]).exits(0).stdout;
    let ended = workload(&["describe", file, "--columns", map, "--html", page]).exits(0);
    assert_eq!(ended.stdout, plain, "the page comes beside the text");
    let html = fs::read_to_string(page).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    assert!(html.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;") && !html.contains("<img"));
    assert_eq!(html.matches("</script>").count(), 1);
    // In the page's script stands the name of a format; its policy keeps everything else from being loaded.
    let shown = html.split_once("<script>").unwrap().0;
    assert!(!shown.contains("http:") && !shown.contains("https:"), "nothing to load");
    for plot in ["Arrivals over time", "Burstiness over time", "Lengths"] {
        assert!(html.contains(&format!("<h3>{plot}</h3>")), "{plot}");
    }
    let stdout = workload(&["describe", file, "--columns", map, "--html", "-"]).exits(0).stdout;
    assert_eq!(stdout, html);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_files_hold_every_row_and_are_read_like_any_other() {
    let Some(file) = data("workloads/mooncake/synthetic_trace.first2000.jsonl") else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (parquet, back) = (path("out.parquet"), path("back.jsonl"));
    let convert = |from: &str, to: &str, format: &str| {
        workload(&["convert", from, "--output", to, "--output-format", format]).exits(0);
    };
    convert(&file, &parquet, "parquet");
    convert(&parquet, &back, "canonical");
    assert_eq!(fs::read(&back).unwrap(), bytes(&trace(&file), Output::Canonical));
    let [a, b] = [&file, &parquet].map(|f| workload(&["describe", f, "--format", "json"]).exits(0).json());
    assert_eq!((&a["arrivals"], &a["prefix_cache"]), (&b["arrivals"], &b["prefix_cache"]));
    // Conversations, tools, answers: the rest of a row.
    for file in [
        "workloads/sharegpt/glaive_toolcall_en_demo.first150.json",
        "workloads/otel-traces/prefix_sharing_example.json",
    ] {
        let Some(file) = data(file) else { return };
        convert(&file, &parquet, "parquet");
        convert(&parquet, &back, "canonical");
        assert_eq!(fs::read(&back).unwrap(), bytes(&trace(&file), Output::Canonical), "{file}");
    }
    workload(&["convert", &file, "--output", "-", "--output-format", "parquet"]).refuses(2, &["needs a file"]);
    let map = "time=arrival_ns,unit=ns,input=input_tokens";
    let json = workload(&["describe", &parquet, "--columns", map, "--format", "json"]).exits(0).json();
    assert_eq!(json["format"], Value::from("custom"));
    fs::write(path("broken.parquet"), b"PAR1 and no more PAR1").unwrap();
    workload(&["describe", &path("broken.parquet")]).refuses(1, &["broken.parquet", "Parquet"]);
}
