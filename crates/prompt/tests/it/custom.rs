use crate::data::{options, refused, text, tokenizer, written};
use tailbound_clock::Seed;
use tailbound_prompt::{Body, Compat, Counting, Custom, DataSet, Options, build};

fn rows(n: u32) -> String {
    (0..n).map(|i| format!("{{\"prompt\": \"prompt number {i}\", \"output_tokens\": {}}}\n", 10 + i)).collect()
}

/// vLLM 0.33.0's own `CustomDataset` on these twelve rows, 20 prompts asked for.
#[test]
fn order_and_repetitions_are_vllms() {
    let Some(tokenizer) = tokenizer() else { return };
    let set = Custom { output_len: -1, ..Custom::new(written("order.jsonl", rows(12))) };
    #[rustfmt::skip]
    let expected = [
        (0, [1, 9, 8, 5, 10, 2, 3, 7, 4, 0, 11, 6, 3, 3, 1, 10, 4, 7, 3, 10]),
        (3, [1, 7, 10, 0, 6, 11, 4, 5, 2, 8, 9, 3, 0, 8, 2, 10, 11, 8, 5, 9]),
    ];
    for (seed, order) in expected {
        let options = Options { compat: Compat::Vllm, ..options(20, seed, tokenizer) };
        let built = build(&DataSet::Custom(set.clone()), &options).unwrap();
        let got: Vec<u32> = built.prompts.iter().map(|p| p.output_tokens - 10).collect();
        assert_eq!(got, order, "seed {seed}");
        for prompt in &built.prompts {
            assert_eq!(text(prompt), format!("prompt number {}", prompt.output_tokens - 10));
            assert_eq!(prompt.row, Some(u64::from(prompt.output_tokens) - 9));
            assert_eq!(prompt.prompt_tokens, Some(tokenizer.count(text(prompt), true).unwrap()));
        }
    }
}

#[test]
fn the_output_length_is_256_unless_given_or_left_to_the_rows() {
    let path = written("lengths.jsonl", rows(3));
    let outputs = |output_len| {
        let options = Options { shuffle: false, ..Options::new(None, Seed(0), Counting::Unknown) };
        let set = build(&DataSet::Custom(Custom { path: path.clone(), output_len }), &options).unwrap();
        set.prompts.iter().map(|p| p.output_tokens).collect::<Vec<_>>()
    };
    assert_eq!(Custom::new(&path).output_len, 256);
    assert_eq!(outputs(256), [256, 256, 256]);
    assert_eq!(outputs(-1), [10, 11, 12]);
}

#[test]
fn prompts_may_be_token_ids_or_messages() {
    let path = written(
        "kinds.jsonl",
        "{\"prompt\": [5, 6, 7]}\n\n{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}\r\n{\"prompt\": [{\"role\": \"user\", \"content\": \"ho\"}]}",
    );
    let options = Options { shuffle: false, ..Options::new(None, Seed(0), Counting::Unknown) };
    let set = build(&DataSet::Custom(Custom::new(path)), &options).unwrap();
    assert_eq!(set.prompts[0].body, Body::Ids([5, 6, 7].into()));
    assert_eq!(set.prompts[0].prompt_tokens, Some(3));
    assert!(matches!(&set.prompts[1].body, Body::Messages(m) if m[0]["content"] == "hi"));
    assert!(matches!(&set.prompts[2].body, Body::Messages(m) if m[0]["content"] == "ho"));
    assert_eq!(set.prompts.iter().map(|p| p.row.unwrap()).collect::<Vec<_>>(), [1, 3, 4]);
}

#[test]
fn bad_rows_are_named() {
    let ok = "{\"prompt\": \"x\", \"output_tokens\": 5}\n";
    let cases = [
        ("not json at all\n", "line 2: not JSON ("),
        ("[1]\n", "line 2: not a JSON object"),
        ("{\"text\": \"x\"}\n", "line 2: no field \"prompt\""),
        ("{\"prompt\": \"\", \"output_tokens\": 5}\n", "line 2: an empty prompt"),
        ("{\"prompt\": 7, \"output_tokens\": 5}\n", "line 2: \"prompt\" is neither"),
        ("{\"prompt\": [\"a\", 3], \"output_tokens\": 5}\n", "line 2: \"prompt\" is neither"),
        ("{\"prompt\": \"x\"}\n", "line 2: no field \"output_tokens\""),
        ("{\"prompt\": \"x\", \"output_tokens\": 0}\n", "line 2: \"output_tokens\" is 0"),
        ("{\"prompt\": \"x\", \"output_tokens\": 1.5}\n", "line 2: \"output_tokens\" is 1.5"),
        ("{\"prompt\": \"x\", \"output_tokens\": \"many\"}\n", "line 2: \"output_tokens\" is \"many\""),
    ];
    for (i, (row, expected)) in cases.into_iter().enumerate() {
        let set = Custom { path: written(&format!("bad{i}.jsonl"), format!("{ok}{row}{ok}")), output_len: -1 };
        let error = refused(&DataSet::Custom(set), &Options::new(None, Seed(0), Counting::Unknown));
        assert!(error.contains(&format!("bad{i}.jsonl, {expected}")), "{error:?} has no {expected:?}");
    }
    for output_len in [0, -2] {
        let set = Custom { path: written("good.jsonl", ok), output_len };
        let error = refused(&DataSet::Custom(set), &Options::new(None, Seed(0), Counting::Unknown));
        assert!(
            error.starts_with(&format!("use --custom-output-len: {output_len}: must be at least 1, or -1")),
            "{error}"
        );
    }
}
