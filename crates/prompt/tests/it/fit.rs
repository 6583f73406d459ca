use crate::data::{options, refused, tokenizer, written};
use tailbound_prompt::{Custom, DataSet, Options, Random, TooLong, build};

#[test]
fn a_prompt_longer_than_the_model_is_refused_by_row_or_dropped() {
    let Some(tokenizer) = tokenizer() else { return };
    let long = "word ".repeat(200);
    let path = written(
        "long.jsonl",
        format!("{{\"prompt\": \"short\"}}\n{{\"prompt\": \"{long}\"}}\n{{\"prompt\": \"{long}\"}}\n"),
    );
    let set = DataSet::Custom(Custom { path, output_len: 50 });
    let refuse = Options { max_model_len: Some(100), shuffle: false, count: None, ..options(0, 0, tokenizer) };
    let error = refused(&set, &refuse);
    assert!(
        error.contains("long.jsonl, line 2: a prompt of 201 tokens and 50 output tokens don't fit the model's 100"),
        "{error}"
    );
    let built = build(&set, &Options { too_long: TooLong::Drop, ..refuse }).unwrap();
    assert_eq!(built.prompts.len(), 1);
    assert!(
        built.notes[0].starts_with("left out 2 prompts that don't fit the model's 100 tokens"),
        "{:?}",
        built.notes
    );
    let built = build(&set, &Options { max_model_len: Some(251), ..refuse }).unwrap();
    assert_eq!(built.prompts.len(), 3);
}

#[test]
fn nothing_left_is_an_error() {
    let Some(tokenizer) = tokenizer() else { return };
    let options = Options { max_model_len: Some(100), too_long: TooLong::Drop, ..options(5, 0, tokenizer) };
    let error = refused(&DataSet::Random(Random::default()), &options);
    assert!(error.starts_with("use --max-model-len: no prompt fits"), "{error}");
}
