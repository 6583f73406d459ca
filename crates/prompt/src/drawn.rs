use crate::make::{Lead, Maker, Wanted};
use crate::{Options, Prompt, PromptError};
use tailbound_clock::Rng;

/// Synthetic prompts whose lengths are drawn from a law each, independently: what a preset stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// Prompt tokens, special tokens included.
    pub input: LogNormal,
    /// Output tokens.
    pub output: LogNormal,
}

/// A log-normal law of lengths, cut off at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogNormal {
    /// In tokens.
    pub median: f64,
    /// Standard deviation of the logarithm.
    pub sigma: f64,
    /// No length is shorter.
    pub least: u32,
    /// No length is longer.
    pub most: u32,
}

impl LogNormal {
    /// One length, rounded.
    fn draw(&self, rng: &mut Rng) -> u32 {
        let length = self.median * libm::exp(self.sigma * rng.normal());
        (libm::round(length) as u32).clamp(self.least, self.most)
    }
}

pub(crate) fn build(set: &Drawn, options: &Options<'_>, notes: &mut Vec<String>) -> Result<Vec<Prompt>, PromptError> {
    let count = options.wanted("--num-prompts")?;
    let maker = Maker::new(options)?;
    let mut inputs = options.seed.stream("input lengths");
    let mut outputs = options.seed.stream("output lengths");
    let length = |rng: &mut Rng| set.input.draw(rng).saturating_sub(maker.specials).max(1);
    let wanted: Vec<Wanted<'_>> =
        (0..count).map(|_| Wanted { lead: Lead::Nothing, tokens: length(&mut inputs) }).collect();
    let made = maker.make(&[], &wanted, notes)?;
    let prompts = made.into_iter().map(|made| Prompt {
        body: made.body,
        prompt_tokens: made.tokens.map(|n| n + maker.specials),
        output_tokens: set.output.draw(&mut outputs).max(1),
        at: None,
        row: None,
    });
    Ok(prompts.collect())
}
