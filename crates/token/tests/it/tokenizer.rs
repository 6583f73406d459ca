use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tailbound_token::Tokenizer;

fn shared() -> Option<&'static Tokenizer> {
    static TOKENIZER: OnceLock<Option<Tokenizer>> = OnceLock::new();
    let load = || {
        let root = std::env::var_os("TAILBOUND_DATA")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
        let file = root.join("engines/tokenizer.json");
        if file.exists() {
            return Some(Tokenizer::load(&file).unwrap());
        }
        assert!(std::env::var("CI").is_err(), "{} is missing", file.display());
        eprintln!("skipped: no {}", file.display());
        None
    };
    TOKENIZER.get_or_init(load).as_ref()
}

/// By the Python package `tokenizers` on the same file.
#[test]
fn ids_are_those_of_the_python_package() {
    let Some(tokenizer) = shared() else { return };
    #[rustfmt::skip]
    let expected: [(&str, &[u32], &str); 7] = [
        ("Hello, world!", &[19556, 28, 905, 17], "Hello, world!"),
        ("def f(x):\n\treturn x ** 2  # squared", &[1604, 275, 24, 104, 727, 198, 197, 5406, 1792, 1903, 216, 34, 216, 907, 27402], "def f(x):\n\treturn x ** 2  # squared"),
        ("2026-11-30 16:45", &[34, 32, 34, 38, 29, 33, 33, 29, 35, 32, 216, 33, 38, 42, 36, 37], "2026-11-30 16:45"),
        ("你好 😀 café", &[18645, 250, 48392, 138, 40303, 218, 37366], "你好 😀 café"),
        ("<|im_start|>user\nhi<|im_end|>", &[1, 4093, 198, 6004, 2], "user\nhi"),
        ("   leading and trailing   ", &[256, 2899, 284, 35079, 333], "   leading and trailing   "),
        ("", &[], ""),
    ];
    for (text, ids, back) in expected {
        assert_eq!(tokenizer.encode(text, true).unwrap(), ids, "{text:?}");
        assert_eq!(tokenizer.count(text, true).unwrap() as usize, ids.len());
        assert_eq!(tokenizer.decode(ids, true).unwrap(), back);
    }
}

#[test]
fn it_knows_its_size_and_its_special_tokens() {
    let Some(tokenizer) = shared() else { return };
    assert_eq!(tokenizer.vocab_size(), 49_152);
    assert_eq!(tokenizer.special_ids(), (0..17).collect::<Vec<u32>>());
    assert_eq!(tokenizer.num_special_tokens_to_add(), 0);
    assert_eq!(tokenizer.id("<|im_start|>"), Some(1));
    assert_eq!(tokenizer.token(1).as_deref(), Some("<|im_start|>"));
    assert_eq!(tokenizer.decode(&[1, 19556], false).unwrap(), "<|im_start|>Hello");
}

fn words(post_processor: &str, truncation: &str) -> Tokenizer {
    let json = format!(
        r#"{{"version": "1.0", "truncation": {truncation}, "padding": null, "normalizer": null,
            "added_tokens": [{{"id": 3, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}}],
            "pre_tokenizer": {{"type": "Whitespace"}}, "post_processor": {post_processor}, "decoder": null,
            "model": {{"type": "WordLevel", "vocab": {{"a": 0, "b": 1, "[UNK]": 2, "<s>": 3}}, "unk_token": "[UNK]"}}}}"#
    );
    Tokenizer::parse(json.as_bytes(), Path::new("words.json")).unwrap()
}

#[test]
fn special_tokens_around_a_text_count_only_when_asked_for() {
    let bos = r#"{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}}"#;
    let tokenizer = words(bos, "null");
    assert_eq!(tokenizer.num_special_tokens_to_add(), 1);
    assert_eq!(tokenizer.encode("a b a", true).unwrap(), [3, 0, 1, 0]);
    assert_eq!(tokenizer.encode("a b a", false).unwrap(), [0, 1, 0]);
}

#[test]
fn truncation_in_the_file_is_ignored() {
    let tokenizer =
        words("null", r#"{"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}"#);
    assert_eq!(tokenizer.count("a b a b x", false).unwrap(), 5);
}

#[test]
fn files_that_are_no_tokenizers_are_refused() {
    let error = Tokenizer::load(Path::new("/no/such/tokenizer.json")).unwrap_err().to_string();
    assert!(error.starts_with("read /no/such/tokenizer.json: "), "{error}");
    for content in ["", "{}", "<html>", "[1, 2]"] {
        let error = Tokenizer::parse(content.as_bytes(), Path::new("t.json")).unwrap_err().to_string();
        assert!(error.starts_with("parse t.json as a Hugging Face tokenizer: "), "{error}");
    }
}
