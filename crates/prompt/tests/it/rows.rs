use crate::data::{refused, tokenizer};
use proptest::prelude::*;
use std::collections::HashMap;
use tailbound_clock::Seed;
use tailbound_prompt::{Asked, Body, Content, Counting, DataSet, Form, Options, Prompt, Rows, build};
use tailbound_token::Tokenizer;

fn asked(content: Content) -> Asked {
    Asked { content, output_tokens: Some(3), answer: None, row: 1 }
}

fn blocks(tokens: u32, ids: &[u64]) -> Asked {
    asked(Content::Blocks { tokens, ids: ids.into() })
}

fn rows(asked: Vec<Asked>, block_tokens: u32) -> DataSet {
    DataSet::Rows(Rows { path: "trace".into(), asked, block_tokens, output_len: None })
}

fn options(tokenizer: &Tokenizer, form: Form) -> Options<'_> {
    Options { form, ..Options::new(None, Seed(7), Counting::Tokenizer(tokenizer)) }
}

fn ids(prompt: &Prompt, tokenizer: &Tokenizer) -> Vec<u32> {
    match &prompt.body {
        Body::Text(text) => tokenizer.encode(text, true).unwrap(),
        Body::Ids(ids) => ids.to_vec(),
        Body::Messages(_) => panic!("messages"),
    }
}

#[test]
fn prompts_share_exactly_the_blocks_they_have_in_common() {
    let Some(tokenizer) = tokenizer() else { return };
    let traced = vec![
        blocks(70, &[1, 2, 3, 4, 5]),
        blocks(64, &[1, 2, 3, 9]),
        blocks(23, &[1, 2]),
        blocks(80, &[1, 2, 3, 4, 5]),
        blocks(16, &[u64::MAX]),
        blocks(50, &[1]),
    ];
    for form in [Form::Text, Form::Ids] {
        let built = build(&rows(traced.clone(), 16), &options(tokenizer, form)).unwrap();
        let all: Vec<Vec<u32>> = built.prompts.iter().map(|p| ids(p, tokenizer)).collect();
        let lengths: Vec<usize> = all.iter().map(Vec::len).collect();
        assert_eq!(lengths, [70, 64, 23, 80, 16, 50], "{form:?}");
        let shared = |a: usize, b: usize| all[a].iter().zip(&all[b]).take_while(|(x, y)| x == y).count();
        let expected = [(0, 1, 48), (0, 2, 23), (0, 3, 70), (1, 3, 48), (0, 5, 16), (0, 4, 0)];
        for (a, b, tokens) in expected {
            // Beyond the blocks two random tokens may be the same once in a while.
            let got = shared(a, b);
            assert!((tokens..tokens + 2).contains(&got), "{form:?}: {a} and {b} share {got} tokens, not {tokens}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn equal_blocks_are_equal_and_different_ones_differ(
        requests in proptest::collection::vec((proptest::collection::vec(0u64..6, 1..5), 1u32..20), 2..12),
        text in any::<bool>(),
    ) {
        let Some(tokenizer) = tokenizer() else { return Ok(()) };
        // Ids as in a trace: a block's id stands for everything up to it.
        let mut known: HashMap<Vec<u64>, u64> = HashMap::new();
        let chained: Vec<(Vec<u64>, u32)> = requests.into_iter().map(|(content, tail)| {
            let chain = (1..=content.len()).map(|n| {
                let next = known.len() as u64;
                *known.entry(content[..n].to_vec()).or_insert(next)
            });
            let ids: Vec<u64> = chain.collect();
            let tokens = (ids.len() as u32 - 1) * 20 + tail;
            (ids, tokens)
        }).collect();
        let set = rows(chained.iter().map(|(ids, tokens)| blocks(*tokens, ids)).collect(), 20);
        let form = if text { Form::Text } else { Form::Ids };
        let built = build(&set, &options(tokenizer, form)).unwrap();
        let mut seen: HashMap<u64, Vec<u32>> = HashMap::new();
        for ((chain, tokens), prompt) in chained.iter().zip(&built.prompts) {
            let tokens_of = ids(prompt, tokenizer);
            prop_assert_eq!(tokens_of.len() as u32, *tokens);
            prop_assert_eq!(prompt.prompt_tokens, Some(*tokens));
            for (id, block) in chain.iter().zip(tokens_of.chunks(20)) {
                let first = seen.entry(*id).or_insert_with(|| block.to_vec());
                let n = first.len().min(block.len());
                prop_assert_eq!(&first[..n], &block[..n]);
            }
        }
        let full: Vec<&Vec<u32>> = seen.values().filter(|block| block.len() == 20).collect();
        for (i, a) in full.iter().enumerate() {
            prop_assert!(full[..i].iter().all(|b| a != b));
        }
    }
}

#[test]
fn what_a_trace_says_is_sent_and_what_it_measures_is_made() {
    let Some(tokenizer) = tokenizer() else { return };
    let list = serde_json::json!([{"role": "user", "content": "Hi"}]);
    let mut answered = asked(Content::Text("Tell me more.".into()));
    (answered.output_tokens, answered.answer) = (None, Some("There is no more to tell.".into()));
    let mut silent = asked(Content::Length(12));
    silent.output_tokens = Some(0);
    let set = rows(vec![answered, asked(Content::Messages(list.clone().into())), silent], 1);
    let built = build(&set, &options(tokenizer, Form::Text)).unwrap();
    let [text, messages, made] = &built.prompts[..] else { panic!("{} prompts", built.prompts.len()) };
    assert_eq!(text.body, Body::Text("Tell me more.".into()));
    assert_eq!(text.prompt_tokens, Some(tokenizer.count("Tell me more.", true).unwrap()));
    assert_eq!(text.output_tokens, tokenizer.count("There is no more to tell.", false).unwrap());
    assert_eq!((messages.body.clone(), messages.prompt_tokens), (Body::Messages(list.into()), None));
    assert_eq!((ids(made, tokenizer).len(), made.output_tokens), (12, 1));
    assert!(built.notes.iter().any(|note| note.contains("1 rows state an output of 0 tokens")), "{:?}", built.notes);
}

#[test]
fn a_row_without_an_output_length_is_named() {
    let Some(tokenizer) = tokenizer() else { return };
    let mut lacking = asked(Content::Length(5));
    (lacking.output_tokens, lacking.row) = (None, 42);
    let message = refused(&rows(vec![lacking], 1), &options(tokenizer, Form::Text));
    assert!(message.contains("entry 42") && message.contains("--output-len"), "{message}");
}
