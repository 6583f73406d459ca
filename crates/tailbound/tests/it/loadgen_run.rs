//! `bench loadgen run`: over HTTP against emulators and servers that misbehave, and in virtual time.

use crate::program::{Ended, command, run, start, wait_for};
use crate::servers::{answering, config, emulator, nobody, respond, truthful};
use std::path::Path;
use tailbound_emulator::Faults;
use tailbound_stats::loadgen::accuracy;

fn loadgen(flags: &str) -> Ended {
    let all = format!("bench loadgen run {flags}");
    run(&all.split_whitespace().collect::<Vec<_>>())
}

/// Short samples against an emulator.
fn against(url: &str, flags: &str) -> Ended {
    loadgen(&format!("--base-url {url} --num-samples 50 --random-input-len 16 --random-output-len 4 {flags}"))
}

fn modelled(flags: &str) -> Ended {
    sized(flags, "--num-samples 50 --random-input-len 64 --random-output-len 8")
}

fn sized(flags: &str, sizes: &str) -> Ended {
    loadgen(&format!("--virtual {sizes} {flags}"))
}

/// So many that the prefix cache does not hold them all.
const LONG: &str = "--num-samples 400 --random-input-len 2000 --random-output-len 8";

fn set(pairs: &str) -> String {
    pairs.split_whitespace().map(|p| format!("--set {p} ")).collect()
}

fn in_folder(folder: &tempfile::TempDir) -> String {
    format!(" --output-dir {}", folder.path().display())
}

/// The logs are judged again as they were written.
fn judged_again(folder: &Path, code: i32) {
    let written = std::fs::read_to_string(folder.join("mlperf_log_summary.txt")).unwrap();
    let again = run(&["bench", "loadgen", "verdict", folder.to_str().unwrap()]).exits(code);
    assert_eq!(again.stdout.lines().count(), written.lines().count());
    for (ours, theirs) in again.stdout.lines().zip(written.lines()) {
        // What the log's six digits leave open is told.
        let label = ours.split(':').next().unwrap_or_default().trim();
        let told = label.ends_with("loadgen overhead") || again.stderr.contains(&format!("every digit of {label:?}"));
        assert!(ours == theirs || told, "{ours}\n{theirs}\n{}", again.stderr);
    }
    assert!(!again.stderr.contains("contradiction"), "{}", again.stderr);
}

const VALID: [(&str, &str); 4] = [
    ("SingleStream", "target_latency=5 min_query_count=70 min_duration=500"),
    (
        "MultiStream",
        "target_latency=5 min_query_count=20 min_duration=500 samples_per_query=3 target_latency_percentile=50",
    ),
    ("Server", "target_qps=60 target_latency=2000 target_latency_percentile=90 min_query_count=60 min_duration=500"),
    ("Offline", "target_qps=200 min_query_count=150 min_duration=10"),
];

#[test]
fn the_four_scenarios_run_over_http_and_are_valid() {
    let server = emulator(config(2));
    for (scenario, settings) in VALID {
        let folder = tempfile::tempdir().unwrap();
        let flags = format!("--scenario {scenario} {}{}", set(settings), in_folder(&folder));
        let ended = against(&server.url(), &flags).exits(0);
        assert!(ended.stdout.contains("Result is : VALID"), "{}", ended.stdout);
        assert!(ended.stdout.contains("SUT name : Network SUT tiny"), "{}", ended.stdout);
        judged_again(folder.path(), 0);
    }
}

#[test]
fn token_mode_reports_ttft_and_tpot_over_http() {
    let server = emulator(config(5));
    let flags =
        set("target_qps=40 use_token_latencies=1 ttft_latency=2000 tpot_latency=500 target_latency_percentile=90 \
                     min_query_count=60 min_duration=500");
    for backend in ["openai", "openai-chat"] {
        let folder = tempfile::tempdir().unwrap();
        let ended = against(&server.url(), &format!("--backend {backend} {flags}{}", in_folder(&folder))).exits(0);
        assert!(ended.stdout.contains("tpot_latency (ns): 500000000"), "{}", ended.stdout);
        judged_again(folder.path(), 0);
        let samples = std::fs::read_to_string(folder.path().join("samples.csv")).unwrap();
        for line in samples.lines().skip(1) {
            let fields: Vec<i64> = line.split(',').map(|f| f.parse().unwrap()).collect();
            let (ttft, latency, tokens) = (fields[5], fields[6], fields[7]);
            assert_eq!(tokens, 4, "{line}");
            // Three steps come between the first token and the last.
            assert!(0 < ttft && ttft < latency, "{line}");
        }
    }
}

#[test]
fn minutes_pass_in_virtual_time_and_twice_the_same() {
    let full = [
        ("SingleStream", "target_latency=40"),
        ("MultiStream", "target_latency=40 samples_per_query=8"),
        ("Server", "target_qps=20 target_latency=2000"),
        ("Offline", "target_qps=20"),
    ];
    for (scenario, settings) in full {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let settings = match scenario {
            // Offline's run is as long as its one query takes.
            "Offline" => format!("{settings} min_duration=50"),
            _ => format!("{settings} min_duration=120000"),
        };
        for folder in &folders {
            modelled(&format!("--scenario {scenario} {}{}", set(&settings), in_folder(folder))).exits(0);
            judged_again(folder.path(), 0);
        }
        for file in ["mlperf_log_summary.txt", "mlperf_log_detail.txt", "mlperf_log_accuracy.json", "samples.csv"] {
            let [a, b] = folders.each_ref().map(|f| std::fs::read(f.path().join(file)).unwrap());
            assert!(a == b, "{scenario}: {file} differs between two runs");
        }
    }
}

/// Each way of being INVALID: settings, and what the improved judgement says.
#[test]
fn every_way_of_being_invalid_has_its_reason() {
    let ways = [
        ("Server", "target_qps=20 target_latency=1 min_duration=60000", "P99 latency is"),
        (
            "Server",
            "target_qps=20 use_token_latencies=1 ttft_latency=1 tpot_latency=1000 min_duration=60000",
            "P99 TTFT is",
        ),
        (
            "Server",
            "target_qps=20 use_token_latencies=1 ttft_latency=9000 tpot_latency=1 min_duration=60000",
            "P99 TPOT is",
        ),
        (
            "Server",
            "target_qps=20 target_latency=9000 min_duration=5000",
            "early stopping on latency: 100 queries with 0 over",
        ),
        (
            "SingleStream",
            "target_latency=10000 min_duration=60000 min_query_count=100",
            "were issued before the run was long",
        ),
        ("Offline", "target_qps=1 min_duration=60000", "the run lasted"),
        (
            "Server",
            "target_qps=20 target_latency=9000 max_query_count=30 min_duration=5000",
            "max_query_count ended the run after 30",
        ),
        (
            "Server",
            "target_qps=20 target_latency=9000 max_duration=2000 min_duration=60000",
            "max_duration ended the run after 2.",
        ),
        ("SingleStream", "target_latency=40 max_query_count=50 min_duration=1000", "50 of 100 queries"),
        (
            "Server",
            "target_qps=500 target_latency=9000 max_async_queries=3 min_duration=60000",
            "4 queries were outstanding",
        ),
    ];
    for (scenario, settings, reason) in ways {
        let folder = tempfile::tempdir().unwrap();
        let flags = format!("--scenario {scenario} {}{}", set(settings), in_folder(&folder));
        let ended = modelled(&format!("{flags} --improved")).exits(3);
        let improved = ended.stdout.split_once("Improved judgement").unwrap().1;
        assert!(improved.contains(reason), "{scenario} {settings}: {improved}");
        // The folder tells the same, and LoadGen agrees that it is INVALID.
        assert!(ended.stdout.contains("Result is : INVALID"), "{}", ended.stdout);
        judged_again(folder.path(), 3);
        let again = run(&["bench", "loadgen", "verdict", folder.path().to_str().unwrap(), "--improved"]).exits(3);
        assert!(again.stdout.contains(reason), "{}", again.stdout);
    }
}

#[test]
fn samples_that_wait_in_the_client_make_the_run_late() {
    let server = emulator(config(20));
    let flags =
        set("target_qps=60 target_latency=5000 target_latency_percentile=50 min_query_count=60 min_duration=500");
    let ended = against(&server.url(), &format!("{flags} --max-concurrency 1 --improved")).exits(3);
    assert!(ended.stdout.contains("Result is : VALID"), "{}", ended.stdout);
    assert!(ended.stdout.contains("the load generator was late"), "{}", ended.stdout);
    let parity = against(&server.url(), &format!("{flags} --max-concurrency 1")).exits(0);
    assert!(parity.stderr.contains("--improved would not") && parity.stderr.contains("was late"), "{}", parity.stderr);
}

#[test]
fn a_server_that_loses_answers_ends_the_run_and_invalidates_it() {
    // It takes requests and never answers.
    let url = answering(|first, stream| match first.starts_with("POST") {
        true => loop {
            let mut byte = [0];
            if std::io::Read::read(stream, &mut byte).unwrap_or(0) == 0 {
                return;
            }
        },
        false => respond(stream, "200 OK", "application/json", "{\"data\":[{\"id\":\"tiny\"}]}"),
    });
    for scenario in ["SingleStream", "MultiStream", "Server", "Offline"] {
        let settings = set("min_query_count=2 min_duration=0 target_latency_percentile=50");
        let settings = if scenario == "Offline" { set("min_query_count=2 min_duration=0") } else { settings };
        let flags = format!("--scenario {scenario} --skip-tokenizer-init --lost-after 300ms {settings}");
        let flags = if scenario == "Server" { format!("{flags} --set target_qps=50") } else { flags };
        let ended = against(&url, &flags).exits(3);
        assert!(ended.stderr.contains("INVALID: no sample was answered"), "{}", ended.stderr);
        assert!(ended.stderr.contains("2 x ") || ended.stderr.contains("16 x "), "{scenario}: {}", ended.stderr);
    }
}

#[test]
fn a_share_of_failed_answers_is_counted_and_named() {
    let faults = Faults { error_rate: 0.2, ..Faults::default() };
    let server = emulator(tailbound_emulator::Config { faults, ..config(2) });
    let flags =
        set("target_qps=100 target_latency=5000 target_latency_percentile=50 min_query_count=60 min_duration=500");
    let folder = tempfile::tempdir().unwrap();
    let ended = against(&server.url(), &format!("{flags} --improved{}", in_folder(&folder))).exits(3);
    assert!(ended.stdout.contains("samples were never answered, allowed 0"), "{}", ended.stdout);
    assert!(ended.stderr.contains("A fault injected by the emulator"), "{}", ended.stderr);
    let detail = std::fs::read_to_string(folder.path().join("mlperf_log_detail.txt")).unwrap();
    assert!(detail.contains("were issued and never answered"), "the log says so");
    let parity = against(&server.url(), &flags).exits(3);
    assert!(parity.stderr.contains("LoadGen would wait for"), "{}", parity.stderr);
}

#[test]
fn an_accuracy_run_logs_every_sample_once() {
    let server = emulator(config(1));
    for scenario in ["SingleStream", "MultiStream", "Server", "Offline"] {
        let folder = tempfile::tempdir().unwrap();
        let settings = set("use_token_latencies=1 target_latency=1");
        let settings = if scenario == "Offline" { set("use_token_latencies=1") } else { settings };
        let rate = if scenario == "Server" { "--set target_qps=500" } else { "" };
        let flags = format!("--scenario {scenario} --mode accuracy {settings} {rate}{}", in_folder(&folder));
        let ended = against(&server.url(), &flags).exits(0);
        assert!(!ended.stdout.contains("Result is"), "an accuracy run has no verdict: {}", ended.stdout);
        let text = std::fs::read_to_string(folder.path().join("mlperf_log_accuracy.json")).unwrap();
        let answers = accuracy::parse(&text).unwrap();
        let mut indices: Vec<u32> = answers.iter().map(|a| a.index).collect();
        indices.sort_unstable();
        indices.dedup();
        assert_eq!(indices, (0..50).collect::<Vec<u32>>(), "{scenario}");
        assert!(answers.iter().all(|a| a.tokens == Some(4) && !a.data.is_empty()), "{scenario}");
        judged_again(folder.path(), 0);
    }
}

#[test]
fn a_submission_run_is_both() {
    let server = emulator(config(1));
    let folder = tempfile::tempdir().unwrap();
    let flags =
        set("target_qps=100 target_latency=5000 target_latency_percentile=90 min_query_count=60 min_duration=300");
    let ended = against(&server.url(), &format!("--mode submission {flags}{}", in_folder(&folder))).exits(0);
    assert!(ended.stdout.contains("Mode     : SubmissionRun"), "{}", ended.stdout);
    let text = std::fs::read_to_string(folder.path().join("mlperf_log_accuracy.json")).unwrap();
    assert_eq!(accuracy::parse(&text).unwrap().len(), 50);
}

#[test]
fn a_peak_search_over_http_and_in_virtual_time() {
    let server = emulator(config(2));
    let flags = set("target_qps=20 target_latency=60 target_latency_percentile=50 min_query_count=30 min_duration=100");
    let ended = against(&server.url(), &format!("--mode find-peak {flags} --max-concurrency 2"));
    assert!(matches!(ended.code, Some(0 | 3)) && ended.stdout.contains("Peak search, queries/s:"), "{ended:?}");

    let flags =
        set("target_qps=5 target_latency=400 target_latency_percentile=90 min_query_count=100 min_duration=5000");
    let peak = |ended: &Ended| -> f64 {
        let line = ended.line("  peak: ").to_owned();
        line.split(' ').next().unwrap().parse().unwrap()
    };
    let official = sized(&format!("--mode find-peak {flags}"), LONG);
    let certified = sized(&format!("--mode find-peak {flags} --improved"), LONG).exits(0);
    assert!(peak(&certified) <= peak(&official), "{}{}", certified.stdout, official.stdout);
    assert!(certified.stdout.contains("Improved judgement (by") && certified.stdout.contains(": VALID"));
}

#[test]
fn a_benchmark_brings_its_limits_and_its_interactive_variant() {
    let plan = |flags: &str| modelled(&format!("--benchmark llama3_1-8b --dry-run {flags}")).exits(0);
    let server = plan("");
    assert!(server.line("limits").contains("P99 TTFT 2000 ms, P99 TPOT 100 ms"), "{}", server.stdout);
    assert!(server.stderr.contains("the library has 50 samples, the benchmark 13368"), "{}", server.stderr);
    let interactive = plan("--scenario Interactive");
    assert!(interactive.line("limits").contains("P99 TTFT 500 ms, P99 TPOT 30 ms"), "{}", interactive.stdout);
    assert_eq!(interactive.line("lasts, at least"), "600 s", "not the 10 s of LoadGen's trap");
    modelled("--benchmark llama3_1-8 --dry-run").refuses(2, &["--benchmark llama3_1-8"]).hints("llama3_1-8b");
    modelled("--scenario Interactive --dry-run").refuses(2, &["name the --benchmark"]);
    modelled("--scenario Srever --dry-run").refuses(2, &["--scenario Srever"]).hints("Server");
}

#[test]
fn configuration_files_have_loadgens_precedence_and_what_it_ignores_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let user = file(
        "user.conf",
        "*.Server.target_qps = 7\n*.*.min_query_count = 55\n*.Server.min_duration=1\n*.Server.qsl_rng_seed = 3\n\
         llama2-70b.Server.target_qps = 9\n*.Interactive.min_duration = 5\n",
    );
    let ended = modelled(&format!("--user-conf {user} --dry-run")).exits(0);
    assert_eq!(ended.line("queries/s asked for"), "7");
    for quoted in [
        "line 3: \"*.Server.min_duration=1\": without blanks",
        "line 4: \"*.Server.qsl_rng_seed = 3\": LoadGen takes qsl_rng_seed from its built-in mlperf.conf alone",
        "line 5: \"llama2-70b.Server.target_qps = 9\": it is for the model",
        "line 6: \"*.Interactive.min_duration = 5\": there is no scenario",
    ] {
        assert!(ended.stderr.contains(quoted), "{quoted} in {}", ended.stderr);
    }
    let model = modelled(&format!("--user-conf {user} --benchmark llama2-70b --dry-run")).exits(0);
    assert_eq!(model.line("queries/s asked for"), "9");
    let over = modelled(&format!("--user-conf {user} --set target_qps=11 --dry-run")).exits(0);
    assert_eq!(over.line("queries/s asked for"), "11");

    let audit = file("audit.config", "*.*.mode = 1\n");
    let ended = modelled(&format!("--user-conf {user} --audit-conf {audit} --mode performance --dry-run")).exits(0);
    assert_eq!(ended.line("mode"), "AccuracyOnly");
    let own = file("mlperf.conf", "*.*.qsl_rng_seed = 1\n*.*.sample_index_rng_seed = 2\n*.*.schedule_rng_seed = 3\n");
    let ended = modelled(&format!("--mlperf-conf {own} --dry-run")).exits(0);
    assert_eq!(ended.line("seeds"), "1, 2, 3");
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("user.conf");
    std::fs::write(&broken, "*.Server.target_qps = fast\n").unwrap();
    let broken = broken.display();
    modelled(&format!("--user-conf {broken}"))
        .refuses(2, &["user.conf", "line 1", "fast"])
        .hints("drop the whole file");
    modelled("--user-conf /nonexistent/user.conf").refuses(2, &["--user-conf", "No such file"]);
    modelled("--set target_qps=0").refuses(2, &["impossible settings", "server_target_qps"]);
    modelled("--set target_qsp=3").refuses(2, &["--set target_qsp=3", "knows no key"]);
    modelled("--set target_qps=many").refuses(2, &["--set target_qps=many", "neither an integer"]);
    modelled("--set min_query_count=18446744073709551615").refuses(2, &["impossible settings", "lower the rate"]);
    modelled("--scenario Offline --mode find-peak").refuses(2, &["FindPeakPerformance"]);
    modelled("--profile abacus").refuses(2, &["--profile abacus"]).hints("--list-profiles");
    modelled("--task gnmt").refuses(2, &["--task needs --rules isca2020"]);
    against(&nobody(), "--set min_duration=0").refuses(1, &["refused"]);
    std::fs::write(folder.path().join("mlperf_log_detail.txt"), "").unwrap();
    modelled(&in_folder(&folder)).refuses(2, &["--output-dir", "already holds"]).hints("verdict");
}

#[test]
fn an_interrupted_run_says_so_and_leaves_its_logs() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("truth.jsonl");
    let server = truthful(config(5), &log);
    let flags = format!(
        "bench loadgen run --base-url {} --num-samples 9 --random-input-len 16 --random-output-len 4 --set target_qps=50 \
         --set min_duration=60000 --improved{}",
        server.url(),
        in_folder(&folder)
    );
    let running = start(command(&flags.split_whitespace().collect::<Vec<_>>()));
    wait_for("answers", || std::fs::metadata(&log).is_ok_and(|m| m.len() > 0));
    running.signal("INT");
    let ended = running.ended().exits(130);
    assert!(ended.stdout.contains("the run was interrupted"), "{}{}", ended.stdout, ended.stderr);
    judged_again(folder.path(), 3);
    drop(server);
}

#[test]
fn the_papers_rules_score_streams_and_bound_each_task() {
    const TINY: &str = "--num-samples 50 --random-input-len 8 --random-output-len 2";
    let short = set("min_duration=2000 min_query_count=200");
    let streams = sized(&format!("--rules isca2020 --task gnmt --scenario MultiStream {short}"), TINY).exits(0);
    let sustained: u32 = streams.line("Streams sustained:").parse().unwrap();
    assert!(sustained > 1, "{}", streams.stdout);
    let again = format!("--rules isca2020 --task gnmt --scenario MultiStream --streams {sustained} {short}");
    sized(&again, TINY).exits(0);
    let server = |task: &str, rate: &str| {
        sized(&format!("--rules isca2020 --task {task} --set target_qps={rate} {short}"), TINY)
    };
    assert!(server("gnmt", "20").exits(0).stdout.contains("3 % may be late"));
    let over = server("mobilenet", "50").exits(3);
    assert!(
        over.stdout.contains("1 % may be late") && over.stdout.contains("over the bound, allowed 2"),
        "{}",
        over.stdout
    );
}

#[test]
fn the_caching_audit_compares_a_run_with_one_that_repeats_a_sample() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let flags = format!("--scenario SingleStream {}", set("target_latency=100 min_duration=30000"));
    sized(&format!("{flags}{}", in_folder(&folders[0])), LONG).exits(0);
    sized(&format!("{flags} --audit-conf test04{}", in_folder(&folders[1])), LONG).exits(0);
    let [a, b] = folders.each_ref().map(|f| f.path().display().to_string());
    let audit = |a: &str, b: &str| run(&["bench", "loadgen", "audit", "test04", a, b]);
    let found = audit(&a, &b);
    // Its prefix cache answers most of a prompt that comes again.
    assert_eq!((found.code, found.stdout.ends_with("TEST FAIL\n")), (Some(3), true), "{}", found.stdout);
    audit(&b, &a).refuses(2, &["does not repeat one sample"]);
    audit(&a, "/nonexistent").refuses(1, &["mlperf_log_detail.txt"]);
}

#[test]
fn one_schedule_is_sent_live_and_in_virtual_time() {
    let server = emulator(config(2));
    let flags =
        set("target_qps=80 target_latency=5000 target_latency_percentile=50 min_query_count=60 min_duration=500");
    let schedule = |ended: fn(&str, &str) -> Ended, url: &str| -> Vec<(u64, u64, u64, u64)> {
        let folder = tempfile::tempdir().unwrap();
        ended(url, &format!("{flags}{}", in_folder(&folder))).exits(0);
        let text = std::fs::read_to_string(folder.path().join("samples.csv")).unwrap();
        let mut rows: Vec<_> = text
            .lines()
            .skip(1)
            .map(|line| {
                let f: Vec<&str> = line.split(',').collect();
                let n = |i: usize| f[i].parse::<u64>().unwrap();
                (n(0), n(1), n(2), n(3))
            })
            .collect();
        rows.sort_unstable();
        rows
    };
    let live = schedule(against, &server.url());
    assert!(live.len() >= 60);
    assert_eq!(live, schedule(|_, flags| modelled(flags), ""));
}
