use crate::PromptError;
use tailbound_token::Tokenizer;

/// Counts the tokens of each text as the server does; the flag says whether the special tokens it puts around a text count.
/// An error is one line for people.
pub type CountFn<'a> = dyn Fn(&[&str], bool) -> Result<Vec<u32>, String> + Sync + 'a;

/// Who counts tokens.
#[derive(Clone, Copy)]
pub enum Counting<'a> {
    /// The model's own tokenizer, here.
    Tokenizer(&'a Tokenizer),
    /// The server (`/tokenize`).
    Server(&'a CountFn<'a>),
    /// Nobody: lengths are estimates, and said to be.
    Unknown,
}

/// Characters of English prose per token, for estimates.
const CHARS_PER_TOKEN: usize = 4;

impl<'a> Counting<'a> {
    pub(crate) fn tokenizer(&self) -> Option<&'a Tokenizer> {
        match self {
            Counting::Tokenizer(tokenizer) => Some(tokenizer),
            _ => None,
        }
    }

    /// Whether counts are counts, not estimates.
    pub(crate) fn knows(&self) -> bool {
        !matches!(self, Counting::Unknown)
    }

    /// The tokens of every text, on so many threads.
    pub(crate) fn count(&self, texts: &[&str], specials: bool, threads: usize) -> Result<Vec<u32>, PromptError> {
        match self {
            Counting::Tokenizer(tokenizer) => {
                in_parallel(texts.len(), threads, |i| Ok(tokenizer.count(texts[i], specials)?))
            }
            Counting::Server(count) => {
                let counts = count(texts, specials).map_err(PromptError::Server)?;
                if counts.len() != texts.len() {
                    let problem = format!("{} counts for {} texts", counts.len(), texts.len());
                    return Err(PromptError::Server(problem));
                }
                Ok(counts)
            }
            Counting::Unknown => {
                Ok(texts.iter().map(|text| text.chars().count().div_ceil(CHARS_PER_TOKEN) as u32).collect())
            }
        }
    }
}

/// `work(0..n)` in order, on so many threads; the first error by index wins.
pub(crate) fn in_parallel<T: Send>(
    n: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T, PromptError> + Sync,
) -> Result<Vec<T>, PromptError> {
    // Below this many pieces a thread costs more than it saves.
    const WORTH_A_THREAD: usize = 64;
    let threads = threads.clamp(1, n.div_ceil(WORTH_A_THREAD).max(1));
    if threads == 1 {
        return (0..n).map(work).collect();
    }
    let share = n.div_ceil(threads);
    let parts: Vec<Result<Vec<T>, PromptError>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|t| {
                let work = &work;
                scope.spawn(move || (t * share..((t + 1) * share).min(n)).map(work).collect())
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut all = Vec::with_capacity(n);
    for part in parts {
        all.extend(part?);
    }
    Ok(all)
}
