//! Parameters against what vLLM 0.33's own `param_sweep.py` makes of them (`benches/sweep_layout.py` runs both).

use serde_json::{Value, json};
use tailbound_sweep::{Links, Params, layout, split};

fn params(value: Value) -> Params {
    Params(value.as_object().unwrap().clone())
}

fn applied(value: Value, command: &str) -> String {
    params(value).apply(&split(command).unwrap()).join(" ")
}

#[test]
fn parameters_replace_flags_or_are_appended() {
    for (value, command, expected) in [
        (json!({"max_num_seqs": 4}), "serve m --max-num-seqs 1 -x", "serve m --max-num-seqs 4 -x"),
        (json!({"max-num-seqs": 4}), "serve m --max_num_seqs 1", "serve m --max-num-seqs 4"),
        (json!({"max_num_seqs": 4}), "serve m --max-num-seqs=1 -x", "serve m --max-num-seqs 4 -x"),
        (json!({"rate": 0.5, "name": "a b"}), "serve", "serve --rate 0.5 --name a b"),
        (json!({"eager": true, "cache": false}), "serve --eager", "serve --eager --no-cache"),
        (json!({"eager": false}), "serve --eager -x", "serve --no-eager -x"),
        (json!({"eager": true}), "serve --no-eager -x", "serve --eager -x"),
        (json!({"a_b.c_d": true}), "serve", "serve --a-b.c_d=true"),
        (json!({"a_b.c_d": 3}), "serve --a-b.c_d 2", "serve --a-b.c_d 3"),
        (json!({"config": {"k": [1, true]}}), "serve", "serve --config {\"k\": [1, true]}"),
        (json!({"_benchmark_name": "x"}), "serve m", "serve m"),
    ] {
        assert_eq!(applied(value, command), expected);
    }
}

#[test]
fn a_file_is_a_list_or_has_names() {
    let read = |text: &str| Params::read(text.as_bytes());
    assert_eq!(read(r#"[{"b": 1, "a": 0.5}, {}]"#).unwrap(), [params(json!({"b": 1, "a": 0.5})), Params::default()]);
    let named = read(r#"{"fast": {"a": 1}, "slow": {}}"#).unwrap();
    assert_eq!(named.iter().map(Params::name).collect::<Vec<_>>(), ["fast", "slow"]);
    for (text, problem) in [
        ("[1]", "found 1 in the list"),
        (r#"{"a": 1}"#, "found 1 under the name `a`"),
        ("3", "found 3"),
        ("[]", "it is empty"),
        (r#"[{"_benchmark_name": "a"}, {"_benchmark_name": "a"}]"#, "two of them are named `a`"),
        ("[{", "read it as JSON"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn linked_variables_keep_the_pairs_that_match() {
    let links = Links::parse("max_num_seqs=max_concurrency, tp=gpus").unwrap();
    let serve = params(json!({"max_num_seqs": 4, "tp": 1}));
    assert!(links.hold(&serve, &params(json!({"max-concurrency": 4.0, "gpus": true}))));
    assert!(!links.hold(&serve, &params(json!({"max_concurrency": 8, "gpus": 1}))));
    assert!(!links.hold(&serve, &params(json!({"max_concurrency": 4}))), "what is missing isn't equal");
    assert!(Links::parse("").unwrap().hold(&serve, &Params::default()));
    assert_eq!(Links::parse("a=b,c"), Err("c".into()));
}

#[test]
fn folders_are_named_as_vllm_names_them() {
    let name = |serve: Value, bench: Value, more: &[&str]| layout::name(&params(serve), &params(bench), more);
    assert_eq!(name(json!({"a": 1, "b": "x/y"}), json!({"r": 0.5}), &[]), "SERVE--a=1-b=x_y-BENCH--r=0.5");
    assert_eq!(name(json!({}), json!({"p": "../q", "f": true}), &[]), "BENCH--p=___q-f=True");
    assert_eq!(name(json!({"_benchmark_name": "n", "a": 1}), json!({}), &[]), "SERVE--n");
    assert_eq!(name(json!({}), json!({}), &[]), "");
    assert_eq!(
        name(json!({"a": [1, "z"]}), json!({"b": null}), &["WL-", "request_rate=2"]),
        "SERVE--a=[1, 'z']-BENCH--b=None-WL--request_rate=2"
    );
}
