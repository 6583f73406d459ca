//! Exact lengths with other kinds of tokenizers than byte-level BPE.

use crate::data::{options, shared, text};
use serde_json::{Value, json};
use std::path::Path;
use tailbound_prompt::{DataSet, Options, PrefixRepetition, Random, build};
use tailbound_token::Tokenizer;

fn tokenizer(json: &Value) -> Tokenizer {
    Tokenizer::parse(json.to_string().as_bytes(), Path::new("made.json")).unwrap()
}

fn all_exact(tokenizer: &Tokenizer, input_len: u32) -> Vec<String> {
    let set = DataSet::Random(Random { input_len, prefix_len: 5, ..Random::default() });
    let built = build(&set, &options(30, 2, tokenizer)).unwrap();
    for prompt in &built.prompts {
        assert_eq!(tokenizer.count(text(prompt), true).unwrap(), prompt.prompt_tokens.unwrap(), "{:?}", text(prompt));
        assert_eq!(prompt.prompt_tokens, Some(input_len + 5), "{:?}", built.notes);
    }
    built.notes
}

/// The server counts the BOS it adds: n asked is n for the server.
#[test]
fn special_tokens_are_part_of_the_length() {
    let Some(path) = shared("engines/tokenizer.json") else { return };
    let mut json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    json["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}}
    });
    let tokenizer = tokenizer(&json);
    assert_eq!(tokenizer.num_special_tokens_to_add(), 1);
    assert!(all_exact(&tokenizer, 64).is_empty());
    let set =
        DataSet::PrefixRepetition(PrefixRepetition { prefix_len: 8, suffix_len: 8, ..PrefixRepetition::default() });
    let built = build(&set, &options(10, 0, &tokenizer)).unwrap();
    assert!(built.prompts.iter().all(|p| p.prompt_tokens == Some(17)), "as vLLM, special tokens come on top");
    let error = build(&DataSet::Random(Random { input_len: 1, ..Random::default() }), &options(1, 0, &tokenizer));
    assert!(error.unwrap_err().to_string().starts_with("use --random-input-len: 1: with 1 special tokens"));
}

/// A SentencePiece-like unigram model: no pre-tokenizer splits words apart, spaces are ▁.
#[test]
fn unigram_with_metaspace() {
    let mut vocab = vec![json!(["<unk>", 0.0]), json!(["▁", -2.0])];
    vocab.extend(('a'..='z').map(|c| json!([c.to_string(), -6.0])));
    for a in ["ba", "de", "fi", "go", "ku", "la", "mo", "ne"] {
        for b in ["r", "s", "t", "l", "n", "m", "p", "d", "ck"] {
            vocab.push(json!([format!("▁{a}{b}"), -5.0]));
        }
    }
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": false},
        "post_processor": null,
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": false},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": false}
    });
    assert!(all_exact(&tokenizer(&json), 50).is_empty());
}

/// A vocabulary of letters: no word is one token, so prompts are cut and filled until they fit.
#[test]
fn characters_only() {
    let vocab: serde_json::Map<String, Value> =
        ('a'..='z').chain(['Ġ']).enumerate().map(|(id, c)| (c.to_string(), json!(id))).collect();
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []}
    });
    assert!(all_exact(&tokenizer(&json), 40).is_empty());
}

/// Tokens that span two words: nothing is proven, so every prompt is encoded again, and what merged is written anew.
#[test]
fn merges_across_words_are_found_out() {
    let Some(path) = shared("engines/tokenizer.json") else { return };
    let mut json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let the_man = json!({"id": 49152, "content": " and the", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false});
    json["added_tokens"].as_array_mut().unwrap().push(the_man);
    let tokenizer = tokenizer(&json);
    assert_eq!(tokenizer.count("you and the", false).unwrap(), 2, "the merged token is in force");
    assert!(all_exact(&tokenizer, 200).is_empty());
}

#[test]
fn a_tokenizers_own_truncation_does_not_shorten_what_is_counted() {
    let Some(path) = shared("engines/tokenizer.json") else { return };
    let mut json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    json["truncation"] = json!({"direction": "Right", "max_length": 16, "strategy": "LongestFirst", "stride": 0});
    let tokenizer = tokenizer(&json);
    let options = Options { ..options(3, 0, &tokenizer) };
    let built = build(&DataSet::Random(Random { input_len: 300, ..Random::default() }), &options).unwrap();
    assert!(built.prompts.iter().all(|p| tokenizer.count(text(p), true).unwrap() == 300));
}
