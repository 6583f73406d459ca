use crate::data::{options, refused, text, tokenizer};
use std::collections::BTreeSet;
use tailbound_clock::Seed;
use tailbound_prompt::{Body, Counting, DataSet, Form, Options, PrefixRepetition, Random, RangeRatio, build};

fn ratio(input: f64, output: f64) -> RangeRatio {
    RangeRatio { input, output }
}

#[test]
fn a_prompt_of_n_tokens_is_n_tokens() {
    let Some(tokenizer) = tokenizer() else { return };
    for (input_len, prefix_len) in [(1, 0), (2, 1), (17, 0), (1024, 0), (100, 60), (0, 9)] {
        let set = Random { input_len, prefix_len, ..Random::default() };
        let built = build(&DataSet::Random(set), &options(40, 3, tokenizer)).unwrap();
        assert!(built.notes.is_empty(), "{:?}", built.notes);
        assert_eq!(built.prompts.len(), 40);
        for prompt in &built.prompts {
            assert_eq!(prompt.prompt_tokens, Some(input_len + prefix_len));
            assert_eq!(tokenizer.count(text(prompt), true).unwrap(), input_len + prefix_len, "{}", text(prompt));
            assert_eq!(prompt.output_tokens, 128);
            assert_eq!(text(prompt).trim(), text(prompt), "a chat template may trim");
        }
    }
}

/// More than is encoded again one by one: the proof from the vocabulary must hold.
#[test]
fn unchecked_prompts_have_their_length_too() {
    let Some(tokenizer) = tokenizer() else { return };
    let set = Random { input_len: 2000, ..Random::default() };
    let built = build(&DataSet::Random(set), &options(250, 11, tokenizer)).unwrap();
    for prompt in built.prompts.iter().step_by(7) {
        assert_eq!(tokenizer.count(text(prompt), true).unwrap(), 2000);
    }
}

#[test]
fn lengths_spread_over_exactly_the_interval_of_the_ratio() {
    let Some(tokenizer) = tokenizer() else { return };
    let set = Random { input_len: 10, output_len: 5, range_ratio: ratio(0.25, 0.9), prefix_len: 0 };
    let built = build(&DataSet::Random(set), &options(600, 0, tokenizer)).unwrap();
    let inputs: BTreeSet<u32> = built.prompts.iter().map(|p| p.prompt_tokens.unwrap()).collect();
    let outputs: BTreeSet<u32> = built.prompts.iter().map(|p| p.output_tokens).collect();
    assert_eq!(inputs, (7..=13).collect(), "floor(7.5) to ceil(12.5)");
    assert_eq!(outputs, (1..=10).collect(), "max(1, floor(0.5)) to ceil(9.5)");
}

#[test]
fn the_prefix_is_shared_token_by_token_and_the_rest_is_not() {
    let Some(tokenizer) = tokenizer() else { return };
    let set = Random { input_len: 50, prefix_len: 30, ..Random::default() };
    let built = build(&DataSet::Random(set), &options(20, 0, tokenizer)).unwrap();
    let ids: Vec<Vec<u32>> = built.prompts.iter().map(|p| tokenizer.encode(text(p), true).unwrap()).collect();
    for pair in ids.windows(2) {
        let shared = pair[0].iter().zip(&pair[1]).take_while(|(a, b)| a == b).count();
        assert!((30..33).contains(&shared), "{shared} tokens in common");
    }
}

#[test]
fn token_id_prompts_are_exact_and_avoid_special_tokens() {
    let Some(tokenizer) = tokenizer() else { return };
    let set = Random { input_len: 64, prefix_len: 16, ..Random::default() };
    let built = build(&DataSet::Random(set), &Options { form: Form::Ids, ..options(30, 0, tokenizer) }).unwrap();
    let ids: Vec<&[u32]> = built
        .prompts
        .iter()
        .map(|p| match &p.body {
            Body::Ids(ids) => &**ids,
            other => panic!("{other:?}"),
        })
        .collect();
    for ids in &ids {
        assert_eq!(ids.len(), 80);
        assert_eq!(ids[..16], ids[..16]);
        assert!(ids.iter().all(|id| !tokenizer.special_ids().contains(id) && *id < tokenizer.vocab_size()));
    }
    assert!(ids.windows(2).all(|w| w[0][..16] == w[1][..16] && w[0][16..] != w[1][16..]));
}

#[test]
fn the_same_seed_gives_the_same_prompts_on_any_number_of_threads() {
    let Some(tokenizer) = tokenizer() else { return };
    let set = DataSet::Random(Random { input_len: 20, range_ratio: ratio(0.5, 0.5), ..Random::default() });
    let run = |seed, threads| build(&set, &Options { threads, ..options(300, seed, tokenizer) }).unwrap().prompts;
    assert_eq!(run(7, 1), run(7, 3));
    assert_ne!(run(7, 1), run(8, 1));
}

#[test]
fn without_a_tokenizer_lengths_are_approximate_and_unknown() {
    let set = DataSet::Random(Random { input_len: 20, ..Random::default() });
    let built = build(&set, &Options::new(Some(5), Seed(0), Counting::Unknown)).unwrap();
    assert!(built.prompts.iter().all(|p| p.prompt_tokens.is_none() && text(p).split(' ').count() == 20));
    assert!(built.notes[0].contains("approximate"), "{:?}", built.notes);
    let error = refused(&set, &Options { form: Form::Ids, ..Options::new(Some(5), Seed(0), Counting::Unknown) });
    assert!(error.starts_with("use --prompt-token-ids: token ids need the model's tokenizer"), "{error}");
}

#[test]
fn the_servers_tokenizer_gives_exact_lengths() {
    let Some(tokenizer) = tokenizer() else { return };
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let count = |texts: &[&str], specials: bool| {
        asked.fetch_add(texts.len(), std::sync::atomic::Ordering::Relaxed);
        Ok(texts.iter().map(|t| tokenizer.count(t, specials).unwrap()).collect())
    };
    let set = Random { input_len: 300, prefix_len: 20, ..Random::default() };
    let built = build(&DataSet::Random(set), &Options::new(Some(500), Seed(0), Counting::Server(&count))).unwrap();
    assert!(
        built.prompts.iter().all(|p| tokenizer.count(text(p), true).unwrap() == 320 && p.prompt_tokens == Some(320))
    );
    assert!(built.notes[0].contains("the server counted"), "{:?}", built.notes);
    assert!(asked.into_inner() < 2_000, "the server is not asked about every prompt");
}

/// A server that merges words across spaces now and then: what is off is written anew, and the true length is used in the end.
#[test]
fn a_server_that_counts_otherwise_is_believed() {
    let count = |texts: &[&str], _: bool| {
        Ok(texts.iter().map(|t| t.split(' ').count() as u32 + u32::from(t.len() % 5 == 0 && t.len() > 40)).collect())
    };
    let set = DataSet::Random(Random { input_len: 30, ..Random::default() });
    let built = build(&set, &Options::new(Some(200), Seed(0), Counting::Server(&count))).unwrap();
    for prompt in &built.prompts {
        assert_eq!(prompt.prompt_tokens, Some(count(&[text(prompt)], false).unwrap()[0]));
        assert_eq!(prompt.prompt_tokens, Some(30));
    }
}

#[test]
fn bad_lengths_are_refused_by_flag() {
    let Some(tokenizer) = tokenizer() else { return };
    let error = |set: Random| refused(&DataSet::Random(set), &options(5, 0, tokenizer));
    let base = Random::default();
    let starts =
        |error: String, start: &str| assert!(error.starts_with(start), "{error:?} does not start with {start:?}");
    starts(error(Random { input_len: 0, ..base }), "use --random-input-len: 0: with 0 special tokens");
    starts(error(Random { output_len: 0, ..base }), "use --random-output-len: 0");
    starts(error(Random { range_ratio: ratio(1.0, 0.0), ..base }), "use --random-range-ratio: 1 is not in [0, 1)");
    starts(refused(&DataSet::Random(base), &options(0, 0, tokenizer)), "use --num-prompts: 0");
    starts(
        refused(&DataSet::Random(base), &Options { count: None, ..options(0, 0, tokenizer) }),
        "use --num-prompts: missing",
    );
}

#[test]
fn range_ratios_are_numbers_or_json() {
    let parse = |text: &str| text.parse::<RangeRatio>().map_err(|e| e.to_string());
    assert_eq!(parse("0.3"), Ok(ratio(0.3, 0.3)));
    assert_eq!(parse(r#"{"input": 0.3, "output": 0.5}"#), Ok(ratio(0.3, 0.5)));
    for bad in ["", "x", "1.0", "-0.1", "NaN", r#"{"input": 0.3}"#, r#"{"input": 0.3, "output": 1}"#, "[1]"] {
        let error = parse(bad).unwrap_err();
        assert!(error.starts_with("use --random-range-ratio: "), "{error}");
    }
}

#[test]
fn prefix_repetition_has_exactly_as_many_prompts_as_asked() {
    let Some(tokenizer) = tokenizer() else { return };
    for (count, num_prefixes) in [(10, 3), (1000, 7), (4, 4)] {
        let set = PrefixRepetition { prefix_len: 40, suffix_len: 10, num_prefixes, output_len: 9 };
        let built = build(&DataSet::PrefixRepetition(set), &options(count, 0, tokenizer)).unwrap();
        assert_eq!(built.prompts.len(), count as usize);
        let mut prefixes = BTreeSet::new();
        for prompt in &built.prompts {
            let ids = tokenizer.encode(text(prompt), true).unwrap();
            assert_eq!((ids.len(), prompt.prompt_tokens, prompt.output_tokens), (50, Some(50), 9));
            prefixes.insert(ids[..40].to_vec());
        }
        assert_eq!(prefixes.len(), num_prefixes as usize);
    }
    let ordered = PrefixRepetition { num_prefixes: 2, ..PrefixRepetition::default() };
    let built =
        build(&DataSet::PrefixRepetition(ordered), &Options { shuffle: false, ..options(6, 0, tokenizer) }).unwrap();
    let firsts: Vec<&str> = built.prompts.iter().map(|p| &text(p)[..200]).collect();
    assert!(firsts[0] == firsts[2] && firsts[3] == firsts[5] && firsts[2] != firsts[3]);
    let error = refused(&DataSet::PrefixRepetition(PrefixRepetition::default()), &options(9, 0, tokenizer));
    assert!(error.starts_with("use --prefix-repetition-num-prefixes: 10 prefixes for 9 prompts"), "{error}");
}
