use crate::count::in_parallel;
use crate::lexicon::Lexicon;
use crate::{Body, Form, Options, PromptError};
use std::sync::Arc;
use tailbound_clock::Rng;
use tailbound_token::Tokenizer;

/// Writes synthetic prompts of exact length.
pub(crate) struct Maker<'a> {
    way: Way<'a>,
    options: Options<'a>,
    /// Tokens the server puts around a text (none around ids).
    pub specials: u32,
}

enum Way<'a> {
    /// Token ids as such, drawn from these.
    Ids(Vec<u32>),
    /// Words of one token each.
    Words(Lexicon),
    /// For tokenizers without such words: random ids, decoded, encoded, cut or filled, until it fits (as vLLM does).
    Retries { tokenizer: &'a Tokenizer, allowed: Vec<u32> },
}

/// One synthetic prompt to write.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'w> {
    /// What it shares with others.
    pub lead: Lead<'w>,
    /// Its tokens, those it shares after a [`Lead::Prefix`] not counted.
    pub tokens: u32,
}

/// How a prompt begins.
#[derive(Clone, Copy)]
pub(crate) enum Lead<'w> {
    /// With tokens of its own.
    Nothing,
    /// With one of the shared prefixes.
    Prefix(usize),
    /// With these blocks of so many tokens each, special tokens counted into the first: a block's content depends on its id
    /// alone, and what there is of a block that isn't full is the beginning of the full one.
    Blocks { ids: &'w [u64], each: u32 },
}

/// A written prompt; `tokens` without specials, `None` if nobody can count.
pub(crate) struct Made {
    pub body: Body,
    pub tokens: Option<u32>,
}

/// A piece shared by several prompts.
struct Prefix {
    text: String,
    ids: Vec<u32>,
    tokens: u32,
}

/// Encoding every prompt again is affordable up to here; beyond, a proof from the vocabulary and this much of a sample stand for the rest.
const CHECKED_TOKENS: u64 = 20_000;
/// The server is asked about so many prompts.
const CHECKED_BY_SERVER: usize = 64;
/// How often a prompt is written anew when its count is off.
const RETRIES: u32 = 10;

impl Wanted<'_> {
    fn prefix<'p>(&self, prefixes: &'p [Prefix]) -> Option<&'p Prefix> {
        match self.lead {
            Lead::Prefix(i) => Some(&prefixes[i]),
            Lead::Nothing | Lead::Blocks { .. } => None,
        }
    }

    /// All its tokens.
    fn target(&self, prefixes: &[Prefix]) -> u32 {
        self.prefix(prefixes).map_or(0, |p| p.tokens) + self.tokens
    }
}

impl<'a> Maker<'a> {
    pub(crate) fn new(options: &Options<'a>) -> Result<Maker<'a>, PromptError> {
        let options = *options;
        if options.form == Form::Ids {
            let Some(tokenizer) = options.counting.tokenizer() else {
                return Err(PromptError::flag(
                    "--prompt-token-ids",
                    "token ids need the model's tokenizer",
                    "give --tokenizer a tokenizer.json",
                ));
            };
            return Ok(Maker { way: Way::Ids(allowed(tokenizer)), options, specials: 0 });
        }
        if let Some(lexicon) = Lexicon::learn(&options.counting, options.threads)? {
            let specials = lexicon.specials;
            return Ok(Maker { way: Way::Words(lexicon), options, specials });
        }
        match options.counting.tokenizer() {
            Some(tokenizer) => {
                let specials = tokenizer.num_special_tokens_to_add();
                Ok(Maker { way: Way::Retries { tokenizer, allowed: allowed(tokenizer) }, options, specials })
            }
            None => Err(PromptError::Server("no common English word is one token there".into())),
        }
    }

    /// Writes all the prompts; `prefixes` are lengths of the shared pieces. Notes say what was checked.
    pub(crate) fn make(
        &self,
        prefixes: &[u32],
        wanted: &[Wanted<'_>],
        notes: &mut Vec<String>,
    ) -> Result<Vec<Made>, PromptError> {
        let prefixes: Vec<Prefix> =
            prefixes.iter().enumerate().map(|(i, &n)| self.prefix(i, n)).collect::<Result<_, _>>()?;
        let mut made = in_parallel(wanted.len(), self.options.threads, |i| self.prompt(i, 0, wanted[i], &prefixes))?;
        match &self.way {
            Way::Ids(_) => {}
            Way::Retries { .. } => self.note_misses(&made, wanted, &prefixes, notes),
            Way::Words(lexicon) => self.check(lexicon, &mut made, wanted, &prefixes, notes)?,
        }
        Ok(made)
    }

    fn rng(&self, what: &str, index: usize, attempt: u32) -> Rng {
        self.options.seed.numbered(what, index as u64 | u64::from(attempt) << 48)
    }

    fn prefix(&self, index: usize, tokens: u32) -> Result<Prefix, PromptError> {
        let mut rng = self.rng("shared prefix", index, 0);
        let mut prefix = Prefix { text: String::new(), ids: Vec::new(), tokens };
        match &self.way {
            Way::Ids(allowed) => prefix.ids = draw(allowed, tokens, &mut rng),
            Way::Words(lexicon) => lexicon.write(tokens, true, &mut rng, &mut prefix.text),
            Way::Retries { tokenizer, allowed } => {
                (_, prefix.ids) = fit(tokenizer, allowed, draw(allowed, tokens, &mut rng), tokens, &mut rng)?;
            }
        }
        Ok(prefix)
    }

    fn prompt(&self, index: usize, attempt: u32, wanted: Wanted<'_>, prefixes: &[Prefix]) -> Result<Made, PromptError> {
        let mut rng = self.rng("prompt", index, attempt);
        let prefix = wanted.prefix(prefixes);
        let tokens = wanted.target(prefixes);
        match &self.way {
            Way::Ids(allowed) => {
                let ids = self.ids(allowed, wanted, prefix, &mut rng);
                Ok(Made { body: Body::Ids(ids.into()), tokens: Some(tokens) })
            }
            Way::Words(lexicon) => {
                let mut text = prefix.map_or(String::new(), |p| p.text.clone());
                let mut left = wanted.tokens;
                for (mut rng, fill) in self.blocks(wanted) {
                    lexicon.write(fill, text.is_empty(), &mut rng, &mut text);
                    left -= fill;
                }
                lexicon.write(left, text.is_empty(), &mut rng, &mut text);
                let tokens = self.options.counting.knows().then_some(tokens);
                Ok(Made { body: Body::Text(text.into()), tokens })
            }
            Way::Retries { tokenizer, allowed } => {
                let ids = self.ids(allowed, wanted, prefix, &mut rng);
                let (text, ids) = fit(tokenizer, allowed, ids, tokens, &mut rng)?;
                Ok(Made { body: Body::Text(text), tokens: Some(ids.len() as u32) })
            }
        }
    }

    fn ids(&self, allowed: &[u32], wanted: Wanted<'_>, prefix: Option<&Prefix>, rng: &mut Rng) -> Vec<u32> {
        let mut ids = prefix.map_or(Vec::new(), |p| p.ids.clone());
        let mut left = wanted.tokens;
        for (mut rng, fill) in self.blocks(wanted) {
            ids.append(&mut draw(allowed, fill, &mut rng));
            left -= fill;
        }
        ids.append(&mut draw(allowed, left, rng));
        ids
    }

    /// The randomness and the number of tokens of each block that a prompt begins with.
    fn blocks<'w>(&self, wanted: Wanted<'w>) -> impl Iterator<Item = (Rng, u32)> + use<'w> {
        let (seed, specials) = (self.options.seed, self.specials);
        let (ids, each): (&'w [u64], u32) = match wanted.lead {
            Lead::Blocks { ids, each } => (ids, each),
            Lead::Nothing | Lead::Prefix(_) => (&[], 1),
        };
        let mut left = wanted.tokens;
        ids.iter().enumerate().map(move |(i, &id)| {
            // What the server puts ahead of a text fills up the first block.
            let room = if i == 0 { each.saturating_sub(specials) } else { each };
            let fill = room.min(left);
            left -= fill;
            (seed.numbered("block", id), fill)
        })
    }

    /// Counts the texts again: all of them, or a sample where the vocabulary proves the rest. What is off is written anew.
    fn check(
        &self,
        lexicon: &Lexicon,
        made: &mut [Made],
        wanted: &[Wanted<'_>],
        prefixes: &[Prefix],
        notes: &mut Vec<String>,
    ) -> Result<(), PromptError> {
        if !self.options.counting.knows() {
            notes.push(
                "prompt lengths are approximate: without a tokenizer each word is taken for one token; give --tokenizer a tokenizer.json"
                    .into(),
            );
            return Ok(());
        }
        let sample = self.sample(lexicon, made);
        let off = self.recount(made, &sample)?;
        if off == 0 {
            if sample.len() < made.len() && !lexicon.proven {
                let (n, all) = (sample.len(), made.len());
                notes.push(format!("the server counted {n} of the {all} prompts, and each had its length"));
            }
            return Ok(());
        }
        let all: Vec<usize> = (0..made.len()).collect();
        self.recount(made, &all)?;
        for attempt in 1..=RETRIES {
            let target = |i: usize| Some(wanted[i].target(prefixes));
            let wrong: Vec<usize> = all.iter().copied().filter(|&i| made[i].tokens != target(i)).collect();
            if wrong.is_empty() {
                return Ok(());
            }
            for &i in &wrong {
                made[i] = self.prompt(i, attempt, wanted[i], prefixes)?;
            }
            self.recount(made, &wrong)?;
        }
        self.note_misses(made, wanted, prefixes, notes);
        Ok(())
    }

    /// Which prompts are counted again.
    fn sample(&self, lexicon: &Lexicon, made: &[Made]) -> Vec<usize> {
        let total: u64 = made.iter().filter_map(|m| m.tokens).map(u64::from).sum();
        let step = match (self.options.counting.tokenizer(), lexicon.proven) {
            (Some(_), true) => total.div_ceil(CHECKED_TOKENS) as usize,
            (Some(_), false) => 1,
            (None, _) => made.len().div_ceil(CHECKED_BY_SERVER),
        };
        (0..made.len()).step_by(step.max(1)).collect()
    }

    /// Replaces the supposed lengths of these prompts by counted ones; how many differed.
    fn recount(&self, made: &mut [Made], which: &[usize]) -> Result<usize, PromptError> {
        let texts: Vec<&str> = which
            .iter()
            .map(|&i| match &made[i].body {
                Body::Text(text) => &**text,
                Body::Ids(_) | Body::Messages(_) => "",
            })
            .collect();
        let counts = self.options.counting.count(&texts, false, self.options.threads)?;
        let mut off = 0;
        for (&i, count) in which.iter().zip(counts) {
            off += usize::from(made[i].tokens != Some(count));
            made[i].tokens = Some(count);
        }
        Ok(off)
    }

    fn note_misses(&self, made: &[Made], wanted: &[Wanted<'_>], prefixes: &[Prefix], notes: &mut Vec<String>) {
        let off = |(made, wanted): (&Made, &Wanted<'_>)| {
            let target = wanted.target(prefixes);
            made.tokens.map_or(0, |n| i64::from(n) - i64::from(target))
        };
        let misses: Vec<i64> = made.iter().zip(wanted).map(off).filter(|&by| by != 0).collect();
        if !misses.is_empty() {
            let most = misses.iter().map(|by| by.abs()).max().unwrap_or(0);
            notes.push(format!(
                "{} of {} prompts miss their length by up to {most} tokens: this tokenizer does not read its own text back; their true lengths are used",
                misses.len(),
                made.len()
            ));
        }
    }
}

/// Every id of the vocabulary but the special ones.
fn allowed(tokenizer: &Tokenizer) -> Vec<u32> {
    let specials = tokenizer.special_ids();
    (0..tokenizer.vocab_size()).filter(|id| specials.binary_search(id).is_err()).collect()
}

fn draw(allowed: &[u32], n: u32, rng: &mut Rng) -> Vec<u32> {
    (0..n).map(|_| allowed[rng.below(allowed.len() as u64) as usize]).collect()
}

/// Decodes and encodes until the text has `target` tokens, cutting or filling each time. The best of all attempts.
fn fit(
    tokenizer: &Tokenizer,
    allowed: &[u32],
    mut ids: Vec<u32>,
    target: u32,
    rng: &mut Rng,
) -> Result<(Arc<str>, Vec<u32>), PromptError> {
    let mut best: Option<(u32, String, Vec<u32>)> = None;
    for _ in 0..=RETRIES {
        let text = tokenizer.decode(&ids, true)?;
        ids = tokenizer.encode(&text, false)?;
        let off = (ids.len() as u32).abs_diff(target);
        if best.as_ref().is_none_or(|(least, ..)| off < *least) {
            best = Some((off, text, ids.clone()));
        }
        if off == 0 {
            break;
        }
        let missing = target.saturating_sub(ids.len() as u32);
        ids.truncate(target as usize);
        ids.append(&mut draw(allowed, missing, rng));
    }
    let (_, text, ids) = best.unwrap_or_default();
    Ok((text.into(), ids))
}
