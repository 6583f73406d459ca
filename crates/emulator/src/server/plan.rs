//! How long an answer will be and where it stops, worked out before it begins.

use tailbound_engine::Finish;

use super::live::Plan;
use crate::answer::{AnswerLength, Lexicon};
use crate::api::Ask;

/// The plan for `ask`, whose words are drawn from `seed`.
pub(super) fn plan(ask: &Ask, seed: u64, length: AnswerLength, lexicon: &Lexicon) -> Plan {
    let drawn = if ask.ignore_eos { u32::MAX } else { length.draw(seed).max(ask.min_tokens) };
    let mut plan = if drawn <= ask.max_tokens && !ask.ignore_eos && length != AnswerLength::Limit {
        Plan { tokens: drawn, finish: Finish::Stop, ends_silently: true, visible: usize::MAX, stop: None }
    } else {
        Plan { tokens: ask.max_tokens, finish: Finish::Length, ends_silently: false, visible: usize::MAX, stop: None }
    };
    if ask.stop.is_empty() {
        return plan;
    }
    let spoken = plan.tokens - u32::from(plan.ends_silently);
    let longest = ask.stop.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for index in 0..spoken {
        let before = text.len();
        text.push_str(lexicon.text(seed, index));
        if index + 1 < ask.min_tokens {
            continue;
        }
        // A stop string that this token completes begins at most its own length before the token.
        let from = (before + 1).saturating_sub(longest);
        let found = ask.stop.iter().filter_map(|s| text[from..].find(s.as_str()).map(|at| (from + at, s))).min();
        if let Some((at, stop)) = found {
            let visible = if ask.keep_stop { at + stop.len() } else { at };
            return Plan {
                tokens: index + 1,
                finish: Finish::Stop,
                ends_silently: false,
                visible,
                stop: Some(stop.clone()),
            };
        }
    }
    plan.visible = usize::MAX;
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Api, Rules};
    use crate::tokenizer::Tokenizer;

    fn ask(body: serde_json::Value) -> Ask {
        let served = ["m".to_owned()];
        let rules = Rules { served: &served, max_model_len: 1000, tokenizer: &Tokenizer::Builtin };
        Ask::read(Api::Completions, body.to_string().as_bytes(), rules).unwrap()
    }

    fn text(lexicon: &Lexicon, seed: u64, tokens: u32) -> String {
        (0..tokens).map(|i| lexicon.text(seed, i)).collect()
    }

    #[test]
    fn ignore_eos_goes_to_the_limit() {
        let ask = ask(serde_json::json!({"prompt": "a", "max_tokens": 50, "ignore_eos": true}));
        let plan = plan(&ask, 1, AnswerLength::Fixed(5), &Lexicon::builtin());
        assert_eq!((plan.tokens, plan.finish, plan.ends_silently), (50, Finish::Length, false));
    }

    #[test]
    fn an_answer_ends_by_itself_with_a_silent_token_or_at_its_limit() {
        let lexicon = Lexicon::builtin();
        for (max, tokens, finish, silent) in
            [(50, 20, Finish::Stop, true), (20, 20, Finish::Stop, true), (19, 19, Finish::Length, false)]
        {
            let ask = ask(serde_json::json!({"prompt": "a", "max_tokens": max}));
            let plan = plan(&ask, 1, AnswerLength::Fixed(20), &lexicon);
            assert_eq!((plan.tokens, plan.finish, plan.ends_silently), (tokens, finish, silent));
        }
    }

    #[test]
    fn the_least_number_of_tokens_is_kept() {
        let ask = ask(serde_json::json!({"prompt": "a", "max_tokens": 50, "min_tokens": 30}));
        assert_eq!(plan(&ask, 1, AnswerLength::Fixed(20), &Lexicon::builtin()).tokens, 30);
    }

    #[test]
    fn stops_at_the_first_stop_string_even_across_tokens() {
        let lexicon = Lexicon::builtin();
        let said = text(&lexicon, 9, 40);
        // From the middle of one word to the middle of the next.
        let words: Vec<&str> = said.split_inclusive(' ').collect();
        let (first, second) = (words[4].trim(), words[5]);
        let stop = format!("{} {}", &first[first.len() - 1..], &second[..1]);
        let at = said.find(&stop).unwrap();
        let ask = ask(serde_json::json!({"prompt": "a", "max_tokens": 40, "ignore_eos": true, "stop": ["zzz", stop]}));
        let plan = plan(&ask, 9, AnswerLength::Limit, &lexicon);
        assert_eq!((plan.visible, plan.stop.as_deref()), (at, Some(stop.as_str())));
        assert!(text(&lexicon, 9, plan.tokens).contains(&stop));
        assert!(!text(&lexicon, 9, plan.tokens - 1).contains(&stop));
        assert_eq!(plan.finish, Finish::Stop);
    }
}
