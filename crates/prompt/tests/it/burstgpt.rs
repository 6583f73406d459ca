use crate::data::{options, refused, shared, text, tokenizer, written};
use tailbound_clock::Dur;
use tailbound_prompt::{BurstGpt, Compat, DataSet, Options, PromptSet, build};

fn gpt4(path: std::path::PathBuf) -> BurstGpt {
    BurstGpt { path, model: Some("GPT-4".into()), times: false }
}

fn lengths(set: &PromptSet) -> Vec<(u32, u32)> {
    set.prompts.iter().map(|p| (p.prompt_tokens.unwrap(), p.output_tokens)).collect()
}

/// vLLM 0.33.0's own `BurstGPTDataset` on the same file.
#[test]
fn rows_and_order_are_vllms() {
    let (Some(tokenizer), Some(path)) = (tokenizer(), shared("workloads/burstgpt/BurstGPT_1.first250.csv")) else {
        return;
    };
    let run = |n, seed| {
        let options = Options { compat: Compat::Vllm, ..options(n, seed, tokenizer) };
        lengths(&build(&DataSet::BurstGpt(gpt4(path.clone())), &options).unwrap())
    };
    #[rustfmt::skip]
    assert_eq!(run(20, 0), [(549, 362), (585, 26), (855, 297), (20, 86), (477, 297), (15, 115), (974, 513), (127, 268), (264, 76), (1512, 368), (1327, 239), (101, 148), (1741, 428), (1191, 30), (32, 262), (380, 210), (586, 293), (757, 211), (92, 95), (1574, 501)]);
    let weighted = |rows: Vec<(u32, u32)>| {
        (1..)
            .zip(rows)
            .fold((0, 0), |(a, b), (i, (input, output))| (a + i * u64::from(input), b + i * u64::from(output)))
    };
    assert_eq!(weighted(run(20, 42)), (137_745, 57_040));
    assert_eq!(weighted(run(200, 0)), (12_963_831, 4_768_743), "with replacement: the file has 31 such rows");
}

#[test]
fn the_text_really_has_the_tokens_of_the_trace() {
    let (Some(tokenizer), Some(path)) = (tokenizer(), shared("workloads/burstgpt/BurstGPT_1.first250.csv")) else {
        return;
    };
    let set = build(&DataSet::BurstGpt(gpt4(path)), &Options { count: None, ..options(0, 1, tokenizer) }).unwrap();
    assert_eq!(set.prompts.len(), 31);
    for prompt in &set.prompts {
        assert_eq!(tokenizer.count(text(prompt), true).unwrap(), prompt.prompt_tokens.unwrap());
    }
}

#[test]
fn times_are_kept_when_asked_for() {
    let (Some(tokenizer), Some(path)) = (tokenizer(), shared("workloads/burstgpt/BurstGPT_3.first90.csv")) else {
        return;
    };
    let all = BurstGpt { path, model: None, times: true };
    let set = build(&DataSet::BurstGpt(all.clone()), &Options { count: None, ..options(0, 0, tokenizer) }).unwrap();
    let at: Vec<Dur> = set.prompts.iter().map(|p| p.at.unwrap()).collect();
    assert_eq!(&at[..3], &[Dur::ZERO, Dur::from_secs(51), Dur::from_secs(82)]);
    assert!(at.is_sorted());
    assert_eq!(
        (set.prompts[0].prompt_tokens, set.prompts[0].output_tokens),
        (Some(906), 446),
        "columns by name, not by place"
    );
    let few = build(&DataSet::BurstGpt(all.clone()), &options(3, 0, tokenizer)).unwrap();
    assert_eq!(few.prompts, set.prompts[..3]);
    let error = refused(&DataSet::BurstGpt(all), &options(500, 0, tokenizer));
    assert!(error.starts_with("use --num-prompts: 500: the trace has only"), "{error}");
}

/// The expectations of `messy/manifest.json`.
#[test]
fn messy_files_are_accounted_for() {
    let Some(tokenizer) = tokenizer() else { return };
    let read = |name: &str| {
        let set = BurstGpt { path: shared(&format!("workloads/messy/{name}"))?, model: None, times: true };
        Some(build(&DataSet::BurstGpt(set), &Options { count: None, ..options(0, 0, tokenizer) }))
    };
    let Some(bom) = read("burstgpt_bom_crlf.csv") else { return };
    assert_eq!(lengths(&bom.unwrap())[0].0, 472);
    let floats = lengths(&read("burstgpt_float_ints.csv").unwrap().unwrap());
    assert_eq!((floats.len(), floats[0].0), (2, 472));
    assert_eq!(lengths(&read("burstgpt_column_order.csv").unwrap().unwrap()), [(472, 18)]);
    assert_eq!(lengths(&read("burstgpt3_positional_trap.csv").unwrap().unwrap()), [(906, 446), (264, 171)]);
    let dirty = read("burstgpt_dirty.csv").unwrap().unwrap();
    assert_eq!(dirty.prompts.len(), 3);
    let counted = |why: &str, n: u32| {
        assert!(
            dirty.notes.iter().any(|note| note.contains(&format!("left out {n} rows: {why}"))),
            "{why}: {:?}",
            dirty.notes
        );
    };
    counted("a negative number", 1);
    counted("not a number", 2);
    counted("too few columns", 1);
    counted("failed (no response tokens)", 2);
    let lfs = read("lfs_pointer.csv").unwrap().unwrap_err().to_string();
    assert!(lfs.contains("Git LFS pointer"), "{lfs}");
    let html = read("html_404.csv").unwrap().unwrap_err().to_string();
    assert!(html.contains("HTML page"), "{html}");
}

#[test]
fn a_file_without_the_columns_or_the_model_is_refused() {
    let Some(tokenizer) = tokenizer() else { return };
    let error =
        |name: &str, text: &str| refused(&DataSet::BurstGpt(gpt4(written(name, text))), &options(5, 0, tokenizer));
    let missing = error("columns.csv", "Timestamp,Model,Request tokens\n1,GPT-4,5\n");
    assert!(
        missing.contains("columns.csv, line 1: no column \"Response tokens\"; the columns are Timestamp, Model"),
        "{missing}"
    );
    let model = error("model.csv", "Timestamp,Model,Request tokens,Response tokens\n1,ChatGPT,5,6\n2,ChatGPT,5,6\n");
    assert!(model.ends_with("model.csv: no usable rows (2 × another model)"), "{model}");
}
