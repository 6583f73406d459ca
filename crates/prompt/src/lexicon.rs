use crate::{Counting, PromptError};
use std::collections::BTreeSet;
use tailbound_clock::{Rng, Seed};
use tailbound_token::Tokenizer;

/// Words that are one token each, from which a text of exactly n tokens is written: a head, then tails.
///
/// All words are lower-case ASCII letters, so to any pre-tokenizer each boundary looks like every other. When moreover no token of the vocabulary
/// has a letter before a space, nothing can be merged across a boundary, and the tokens of a text are those of its words.
pub(crate) struct Lexicon {
    /// Words that are one token at the start of a text.
    heads: Vec<Box<str>>,
    /// Words, a space ahead, that add one token to a text.
    tails: Vec<Box<str>>,
    /// Whether the vocabulary proves that no token spans two words. Otherwise every text must be counted.
    pub proven: bool,
    /// Tokens the server puts around a text.
    pub specials: u32,
}

/// Candidates to try: enough for variety, few enough to be tried in a fraction of a second.
const CANDIDATES: usize = 1024;
/// With fewer words than this the texts would repeat themselves.
const FEWEST: usize = 64;
const WORDS: &str = include_str!("../data/words.txt");

impl Lexicon {
    /// Learns the words from whoever counts; `None` if too few are one token each.
    pub(crate) fn learn(counting: &Counting<'_>, threads: usize) -> Result<Option<Lexicon>, PromptError> {
        let (candidates, proven) = match counting {
            Counting::Tokenizer(tokenizer) => from_vocabulary(tokenizer),
            Counting::Server(_) => (WORDS.split_whitespace().map(Box::from).collect(), false),
            Counting::Unknown => {
                let heads = WORDS.split_whitespace().map(Box::from).collect();
                let tails = WORDS.split_whitespace().map(|word| format!(" {word}").into()).collect();
                return Ok(Some(Lexicon { heads, tails, proven: false, specials: 0 }));
            }
        };
        let Some(heads) = heads(&candidates, counting, threads)? else { return Ok(None) };
        let tails = tails(&candidates, &heads[0], counting, threads)?;
        if tails.len() < FEWEST {
            return Ok(None);
        }
        let specials = match counting {
            Counting::Tokenizer(tokenizer) => tokenizer.num_special_tokens_to_add(),
            _ => counting.count(&[&heads[0]], true, 1)?[0].saturating_sub(1),
        };
        Ok(Some(Lexicon { heads, tails, proven, specials }))
    }

    /// Appends a text of `n` tokens. `start`: it begins the prompt.
    pub(crate) fn write(&self, n: u32, start: bool, rng: &mut Rng, text: &mut String) {
        let mut left = n;
        if start && n > 0 {
            text.push_str(&self.heads[rng.below(self.heads.len() as u64) as usize]);
            left -= 1;
        }
        for _ in 0..left {
            text.push_str(&self.tails[rng.below(self.tails.len() as u64) as usize]);
        }
    }
}

/// Words of the vocabulary in a fixed random order, and whether no token spans two words.
fn from_vocabulary(tokenizer: &Tokenizer) -> (Vec<Box<str>>, bool) {
    let mut words = BTreeSet::new();
    let mut proven = true;
    for id in 0..tokenizer.vocab_size() {
        let Some(token) = tokenizer.token(id) else { continue };
        proven &= !spans_words(&token);
        let word = token.strip_prefix(is_space).unwrap_or(&token);
        if (2..=12).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase()) {
            words.insert(Box::from(word));
        }
    }
    let mut words: Vec<Box<str>> = words.into_iter().collect();
    Seed(0).stream("lexicon").shuffle(&mut words);
    words.truncate(CANDIDATES);
    (words, proven)
}

/// A space as vocabularies spell it: itself, byte-level (Ġ), SentencePiece (▁).
fn is_space(c: char) -> bool {
    matches!(c, ' ' | 'Ġ' | '▁')
}

fn spans_words(token: &str) -> bool {
    let mut after_letter = false;
    token.chars().any(|c| {
        let spans = after_letter && is_space(c);
        after_letter = c.is_ascii_lowercase();
        spans
    })
}

fn heads(words: &[Box<str>], counting: &Counting<'_>, threads: usize) -> Result<Option<Vec<Box<str>>>, PromptError> {
    const TRIED: usize = 64;
    let tried: Vec<&str> = words.iter().take(TRIED).map(|word| &**word).collect();
    let counts = counting.count(&tried, false, threads)?;
    let heads: Vec<Box<str>> =
        tried.iter().zip(counts).filter(|(_, count)| *count == 1).map(|(word, _)| Box::from(*word)).collect();
    Ok((!heads.is_empty()).then_some(heads))
}

fn tails(
    words: &[Box<str>],
    head: &str,
    counting: &Counting<'_>,
    threads: usize,
) -> Result<Vec<Box<str>>, PromptError> {
    let texts: Vec<String> = words.iter().map(|word| format!("{head} {word}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let counts = counting.count(&texts, false, threads)?;
    Ok(texts.iter().zip(counts).filter(|(_, count)| *count == 2).map(|(text, _)| text[head.len()..].into()).collect())
}
