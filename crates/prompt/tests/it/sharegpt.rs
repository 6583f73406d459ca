use crate::data::{fnv1a, options, refused, shared, text, tokenizer, written};
use tailbound_clock::Seed;
use tailbound_prompt::{Body, Compat, Counting, DataSet, Form, Options, PromptSet, ShareGpt, build};

/// A run of vLLM 0.33.0's own `ShareGPTDataset` (its code, the same tokenizer.json through the `tokenizers` package).
struct Peer {
    file: &'static str,
    /// `None`: everything, `--no-oversample`.
    num_prompts: Option<u32>,
    output_len: Option<u32>,
    shuffle: bool,
    seed: u64,
    count: usize,
    prompt_tokens: u64,
    output_tokens: u64,
    /// FNV-1a of the lines "<FNV-1a of the prompt> <prompt_len> <output_len>" in order, and of the sorted lines.
    in_order: &'static str,
    sorted: &'static str,
}

const DPO: &str = "dpo_en_as_sharegpt.first150.json";
const DUMMY: &str = "fastchat_dummy_conversation.json";
const GLAIVE_EN: &str = "glaive_toolcall_en_demo.first150.json";
const GLAIVE_ZH: &str = "glaive_toolcall_zh_demo.first150.json";

#[rustfmt::skip]
const PEER: [Peer; 24] = [
    Peer { file: DPO, num_prompts: None, output_len: None, shuffle: false, seed: 0, count: 145, prompt_tokens: 9265, output_tokens: 33870, in_order: "4f244fba8098ae93", sorted: "b7f9a12ff899449f" },
    Peer { file: DPO, num_prompts: None, output_len: None, shuffle: true, seed: 0, count: 145, prompt_tokens: 9265, output_tokens: 33870, in_order: "2630fa6a166f01d1", sorted: "b7f9a12ff899449f" },
    Peer { file: DPO, num_prompts: Some(50), output_len: None, shuffle: true, seed: 0, count: 50, prompt_tokens: 2165, output_tokens: 9911, in_order: "015c0db692704d94", sorted: "1d4fe29a9926a9d0" },
    Peer { file: DPO, num_prompts: Some(50), output_len: None, shuffle: true, seed: 42, count: 50, prompt_tokens: 3314, output_tokens: 12800, in_order: "dc998330a8fcc863", sorted: "724e824d4e88f7b3" },
    Peer { file: DPO, num_prompts: Some(400), output_len: None, shuffle: true, seed: 7, count: 400, prompt_tokens: 25739, output_tokens: 92268, in_order: "8961a952a2e1c66f", sorted: "f35c41c3102931f9" },
    Peer { file: DPO, num_prompts: Some(50), output_len: Some(32), shuffle: true, seed: 0, count: 50, prompt_tokens: 2165, output_tokens: 1600, in_order: "53c1fb20f9a814ec", sorted: "7f2917c50cef0838" },
    Peer { file: DUMMY, num_prompts: None, output_len: None, shuffle: false, seed: 0, count: 500, prompt_tokens: 2999, output_tokens: 7827, in_order: "919a3eb56c075274", sorted: "2f9931ad052ab43e" },
    Peer { file: DUMMY, num_prompts: None, output_len: None, shuffle: true, seed: 0, count: 500, prompt_tokens: 2999, output_tokens: 7827, in_order: "2e8562e185de6dae", sorted: "2f9931ad052ab43e" },
    Peer { file: DUMMY, num_prompts: Some(50), output_len: None, shuffle: true, seed: 0, count: 50, prompt_tokens: 310, output_tokens: 799, in_order: "5c184b72e5171df4", sorted: "6b1347a9a88922ba" },
    Peer { file: DUMMY, num_prompts: Some(50), output_len: None, shuffle: true, seed: 42, count: 50, prompt_tokens: 285, output_tokens: 743, in_order: "b96d5c1070958f63", sorted: "fcdfcde7b29225af" },
    Peer { file: DUMMY, num_prompts: Some(400), output_len: None, shuffle: true, seed: 7, count: 400, prompt_tokens: 2335, output_tokens: 6152, in_order: "4d2c96422cb67b11", sorted: "6bece382783bfeaf" },
    Peer { file: DUMMY, num_prompts: Some(50), output_len: Some(32), shuffle: true, seed: 0, count: 50, prompt_tokens: 310, output_tokens: 1600, in_order: "92538290d7eae146", sorted: "d6893ece7ef76be8" },
    Peer { file: GLAIVE_EN, num_prompts: None, output_len: None, shuffle: false, seed: 0, count: 148, prompt_tokens: 6802, output_tokens: 17939, in_order: "4e030a1ed12b5b57", sorted: "bb2f2e62aaf49793" },
    Peer { file: GLAIVE_EN, num_prompts: None, output_len: None, shuffle: true, seed: 0, count: 148, prompt_tokens: 6802, output_tokens: 17939, in_order: "5bac23d0cc8e0847", sorted: "bb2f2e62aaf49793" },
    Peer { file: GLAIVE_EN, num_prompts: Some(50), output_len: None, shuffle: true, seed: 0, count: 50, prompt_tokens: 2603, output_tokens: 5779, in_order: "7e79e3318f209d43", sorted: "d3f86460cbf0ec45" },
    Peer { file: GLAIVE_EN, num_prompts: Some(50), output_len: None, shuffle: true, seed: 42, count: 50, prompt_tokens: 1821, output_tokens: 3658, in_order: "135294d5f7d0c547", sorted: "b6a128c04ddbd911" },
    Peer { file: GLAIVE_EN, num_prompts: Some(400), output_len: None, shuffle: true, seed: 7, count: 400, prompt_tokens: 18569, output_tokens: 49679, in_order: "9f37f4dae8b1ffd5", sorted: "3ab96fb3b1c52549" },
    Peer { file: GLAIVE_EN, num_prompts: Some(50), output_len: Some(32), shuffle: true, seed: 0, count: 50, prompt_tokens: 2600, output_tokens: 1600, in_order: "da1a89f38a62a04a", sorted: "ca3b23dc8b5da6a8" },
    Peer { file: GLAIVE_ZH, num_prompts: None, output_len: None, shuffle: false, seed: 0, count: 149, prompt_tokens: 14995, output_tokens: 29166, in_order: "8dfe9b467fe488f0", sorted: "07b1075160538aec" },
    Peer { file: GLAIVE_ZH, num_prompts: None, output_len: None, shuffle: true, seed: 0, count: 149, prompt_tokens: 14995, output_tokens: 29166, in_order: "8ccc934c7d371812", sorted: "07b1075160538aec" },
    Peer { file: GLAIVE_ZH, num_prompts: Some(50), output_len: None, shuffle: true, seed: 0, count: 50, prompt_tokens: 4764, output_tokens: 9184, in_order: "3d091e7618fdf620", sorted: "0a54635dd662effe" },
    Peer { file: GLAIVE_ZH, num_prompts: Some(50), output_len: None, shuffle: true, seed: 42, count: 50, prompt_tokens: 5133, output_tokens: 9900, in_order: "52ebbb08031114e4", sorted: "55b42affd146cdb0" },
    Peer { file: GLAIVE_ZH, num_prompts: Some(400), output_len: None, shuffle: true, seed: 7, count: 400, prompt_tokens: 40063, output_tokens: 78378, in_order: "878f341492cab130", sorted: "4fe3300ccb2c81c4" },
    Peer { file: GLAIVE_ZH, num_prompts: Some(50), output_len: Some(32), shuffle: true, seed: 0, count: 50, prompt_tokens: 4764, output_tokens: 1600, in_order: "915b0bbbc4549d70", sorted: "d9c1ba83e0cad330" },
];

fn lines(set: &PromptSet) -> Vec<String> {
    let line = |p: &tailbound_prompt::Prompt| {
        format!("{:016x} {} {}", fnv1a(text(p)), p.prompt_tokens.unwrap(), p.output_tokens)
    };
    set.prompts.iter().map(line).collect()
}

#[test]
fn prompts_lengths_and_order_are_vllms() {
    let Some(tokenizer) = tokenizer() else { return };
    for peer in &PEER {
        let Some(path) = shared(&format!("workloads/sharegpt/{}", peer.file)) else { return };
        let mut options = options(0, peer.seed, tokenizer);
        options.count = peer.num_prompts;
        options.shuffle = peer.shuffle;
        options.compat = Compat::Vllm;
        let set = build(&DataSet::ShareGpt(ShareGpt { path, output_len: peer.output_len }), &options).unwrap();
        let what = format!("{} × {:?}, seed {}", peer.file, peer.num_prompts, peer.seed);
        let lines = lines(&set);
        assert_eq!(lines.len(), peer.count, "{what}");
        assert_eq!(
            set.prompts.iter().map(|p| u64::from(p.prompt_tokens.unwrap())).sum::<u64>(),
            peer.prompt_tokens,
            "{what}"
        );
        assert_eq!(set.prompts.iter().map(|p| u64::from(p.output_tokens)).sum::<u64>(), peer.output_tokens, "{what}");
        assert_eq!(format!("{:016x}", fnv1a(&lines.join("\n"))), peer.in_order, "{what}");
    }
}

#[test]
fn our_own_order_has_the_same_set_of_prompts() {
    let Some(tokenizer) = tokenizer() else { return };
    for peer in PEER.iter().filter(|peer| peer.num_prompts.is_none()) {
        let Some(path) = shared(&format!("workloads/sharegpt/{}", peer.file)) else { return };
        let options = Options { count: None, ..options(0, 5, tokenizer) };
        let set = build(&DataSet::ShareGpt(ShareGpt { path, output_len: None }), &options).unwrap();
        let mut lines = lines(&set);
        lines.sort();
        assert_eq!(format!("{:016x}", fnv1a(&lines.join("\n"))), peer.sorted, "{}", peer.file);
    }
}

#[test]
fn a_system_first_turn_is_noted() {
    let (Some(tokenizer), Some(path)) = (tokenizer(), shared(&format!("workloads/sharegpt/{DPO}"))) else { return };
    let set = build(&DataSet::ShareGpt(ShareGpt { path, output_len: None }), &options(145, 0, tokenizer)).unwrap();
    assert!(set.notes.iter().any(|n| n.contains("the first turn is not a person's")), "{:?}", set.notes);
    assert!(set.notes.iter().any(|n| n.contains("5 conversations pruned")), "{:?}", set.notes);
}

#[test]
fn without_oversampling_there_are_fewer() {
    let (Some(tokenizer), Some(path)) = (tokenizer(), shared(&format!("workloads/sharegpt/{DPO}"))) else { return };
    let options = Options { oversample: false, ..options(400, 0, tokenizer) };
    let set = build(&DataSet::ShareGpt(ShareGpt { path, output_len: None }), &options).unwrap();
    assert_eq!(set.prompts.len(), 145);
    assert!(set.notes.iter().any(|n| n.contains("only 145 of the 400")), "{:?}", set.notes);
}

#[test]
fn ids_are_the_texts_ids() {
    let Some(tokenizer) = tokenizer() else { return };
    let texts = build(&DataSet::Sample(None), &options(20, 3, tokenizer)).unwrap();
    let ids = build(&DataSet::Sample(None), &Options { form: Form::Ids, ..options(20, 3, tokenizer) }).unwrap();
    for (a, b) in texts.prompts.iter().zip(&ids.prompts) {
        assert_eq!(b.body, Body::Ids(tokenizer.encode(text(a), true).unwrap().into()));
        assert_eq!(a.prompt_tokens, b.prompt_tokens);
    }
}

#[test]
fn all_twenty_sample_conversations_survive_the_pruning_but_for_the_shortest() {
    let Some(tokenizer) = tokenizer() else { return };
    let set = build(&DataSet::Sample(None), &Options { count: None, ..options(0, 0, tokenizer) }).unwrap();
    assert_eq!(set.prompts.len(), 20, "{:?}", set.notes);
    assert!(set.notes.is_empty(), "{:?}", set.notes);
}

#[test]
fn without_a_tokenizer_lengths_are_estimates_and_said_to_be() {
    let set = build(&DataSet::Sample(None), &Options::new(Some(10), Seed(0), Counting::Unknown)).unwrap();
    assert_eq!(set.prompts.len(), 10);
    assert!(set.prompts.iter().all(|p| p.prompt_tokens.is_none() && p.output_tokens >= 4));
    assert!(set.notes.iter().any(|n| n.contains("estimates")), "{:?}", set.notes);
}

#[test]
fn the_server_can_count() {
    let Some(tokenizer) = tokenizer() else { return };
    let count =
        |texts: &[&str], specials: bool| Ok(texts.iter().map(|t| tokenizer.count(t, specials).unwrap()).collect());
    let by_server = build(&DataSet::Sample(None), &Options::new(Some(20), Seed(1), Counting::Server(&count))).unwrap();
    let here = build(&DataSet::Sample(None), &options(20, 1, tokenizer)).unwrap();
    assert_eq!(by_server.prompts, here.prompts);
    let fails = |_: &[&str], _: bool| Err("HTTP status 404".to_owned());
    let error = refused(&DataSet::Sample(None), &Options::new(Some(2), Seed(1), Counting::Server(&fails)));
    assert_eq!(error, "count tokens with the server's tokenizer: HTTP status 404");
}

/// The expectations of `messy/manifest.json`.
#[test]
fn messy_files_are_read_as_vllm_reads_them() {
    let Some(tokenizer) = tokenizer() else { return };
    let all = |name: &str| {
        let path = shared(&format!("workloads/messy/{name}"))?;
        let options = Options { count: None, ..options(0, 0, tokenizer) };
        Some(build(&DataSet::ShareGpt(ShareGpt { path, output_len: Some(8) }), &options))
    };
    let Some(mixed) = all("sharegpt_mixed.json") else { return };
    let mixed = mixed.unwrap();
    let noted = |part: &str| mixed.notes.iter().any(|n| n.contains(part));
    assert!(noted("left out 2 rows: no conversations (first: row 2)"), "{:?}", mixed.notes);
    assert!(noted("left out 2 rows: fewer than two turns (first: row 1)"), "{:?}", mixed.notes);
    assert!(noted("left out 2 rows: a turn without text (first: row"), "{:?}", mixed.notes);
    assert_eq!(
        all("sharegpt_utf8_bom.json").unwrap().map(|s| s.prompts.len()).map_err(|e| e.to_string()),
        Err("read ".to_owned()
            + shared("workloads/messy/sharegpt_utf8_bom.json").unwrap().to_str().unwrap()
            + ": no usable conversation among 1 with two turns; kept are prompts of 4 to 1024 tokens with answers of at least 4, together at most 2048"),
        "read past the byte order mark, then pruned: its prompt is one token"
    );
    let jsonl = all("sharegpt.jsonl").unwrap().unwrap_err().to_string();
    assert!(jsonl.contains("no usable conversation among 2 with two turns"), "{jsonl}");
    let latin1 = all("sharegpt_latin1.json").unwrap().unwrap_err().to_string();
    assert!(latin1.contains("sharegpt_latin1.json, byte ") && latin1.contains("not UTF-8"), "{latin1}");
}

#[test]
fn bad_files_are_refused_by_name_and_entry() {
    let Some(tokenizer) = tokenizer() else { return };
    let error = |path: &std::path::Path| {
        refused(&DataSet::ShareGpt(ShareGpt { path: path.into(), output_len: None }), &options(5, 0, tokenizer))
    };
    let ends = |error: String, end: &str| assert!(error.contains(end), "{error:?} has no {end:?}");
    ends(error(std::path::Path::new("/no/such.json")), "read /no/such.json: no such file");
    ends(error(&written("empty.json", "")), "empty.json: is empty");
    ends(error(&written("none.json", "[]")), "none.json: no conversations");
    ends(error(&written("broken.json", "[{\"conversations\": [}\n]")), "broken.json, line 1: not JSON (");
    ends(error(&written("number.json", "[{\"conversations\": []}, 7]")), "number.json, entry 2: not a JSON object");
    ends(error(&written("html.json", "<!DOCTYPE html><html>")), "html.json: is an HTML page");
    ends(error(&written("lfs.json", "version https://git-lfs.github.com/spec/v1\n")), "is a Git LFS pointer");
    ends(error(&written("gz.json", [0x1f, 0x8b, 8, 0, 0xff])), "is compressed with gzip");
}
