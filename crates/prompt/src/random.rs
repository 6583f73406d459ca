use crate::make::{Lead, Maker, Wanted};
use crate::{Options, Prompt, PromptError};
use std::str::FromStr;
use tailbound_clock::Rng;

/// The data set `random`: prompts of a length drawn uniformly around `input_len`, after a prefix that all share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Random {
    /// `--random-input-len`: tokens the server counts, special tokens included, prefix not.
    pub input_len: u32,
    /// `--random-output-len`.
    pub output_len: u32,
    /// `--random-range-ratio`.
    pub range_ratio: RangeRatio,
    /// `--random-prefix-len`: tokens of the shared prefix, on top of `input_len`.
    pub prefix_len: u32,
}

impl Default for Random {
    fn default() -> Random {
        Random { input_len: 1024, output_len: 128, range_ratio: RangeRatio { input: 0.0, output: 0.0 }, prefix_len: 0 }
    }
}

/// How far lengths spread: uniform between `floor(n(1−r))` and `ceil(n(1+r))`. Both in `[0, 1)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RangeRatio {
    /// Of input lengths.
    pub input: f64,
    /// Of output lengths.
    pub output: f64,
}

impl FromStr for RangeRatio {
    type Err = PromptError;

    /// From `0.3` (both) or `{"input":0.3,"output":0.5}`.
    fn from_str(text: &str) -> Result<RangeRatio, PromptError> {
        let wrong = |problem: String| {
            let hint = r#"give a number from 0 to below 1, or {"input":0.3,"output":0.5}"#;
            PromptError::flag("--random-range-ratio", problem, hint)
        };
        let ratio = match text.trim().parse::<f64>() {
            Ok(ratio) => RangeRatio { input: ratio, output: ratio },
            Err(_) => {
                let object: serde_json::Value =
                    serde_json::from_str(text).map_err(|_| wrong(format!("{text:?} is neither a number nor JSON")))?;
                let part = |key: &str| {
                    object
                        .get(key)
                        .and_then(serde_json::Value::as_f64)
                        .ok_or_else(|| wrong(format!("no number {key:?} in {text}")))
                };
                RangeRatio { input: part("input")?, output: part("output")? }
            }
        };
        ratio.check().map_err(wrong)?;
        Ok(ratio)
    }
}

impl RangeRatio {
    fn check(self) -> Result<(), String> {
        match [self.input, self.output].into_iter().find(|ratio| !(0.0..1.0).contains(ratio)) {
            Some(ratio) => Err(format!("{ratio} is not in [0, 1)")),
            None => Ok(()),
        }
    }
}

pub(crate) fn build(set: &Random, options: &Options<'_>, notes: &mut Vec<String>) -> Result<Vec<Prompt>, PromptError> {
    if let Err(problem) = set.range_ratio.check() {
        return Err(PromptError::flag("--random-range-ratio", problem, ""));
    }
    if set.output_len == 0 {
        return Err(PromptError::flag("--random-output-len", "0: must be at least 1", ""));
    }
    let count = options.wanted("--num-prompts")?;
    let maker = Maker::new(options)?;
    let own_len = set.input_len.saturating_sub(maker.specials);
    let (low, high) = interval(own_len, set.range_ratio.input);
    if set.prefix_len + low == 0 {
        return Err(PromptError::flag(
            "--random-input-len",
            format!(
                "{}: with {} special tokens and range ratio {} the shortest prompt would be empty",
                set.input_len, maker.specials, set.range_ratio.input
            ),
            "give a longer --random-input-len or a --random-prefix-len",
        ));
    }
    let prefixes: &[u32] = if set.prefix_len > 0 { &[set.prefix_len] } else { &[] };
    let lead = if set.prefix_len > 0 { Lead::Prefix(0) } else { Lead::Nothing };
    let mut inputs = options.seed.stream("input lengths");
    let wanted: Vec<Wanted<'_>> =
        (0..count).map(|_| Wanted { lead, tokens: uniform(&mut inputs, low, high) }).collect();

    let (low, high) = interval(set.output_len, set.range_ratio.output);
    let mut outputs = options.seed.stream("output lengths");
    let made = maker.make(prefixes, &wanted, notes)?;
    let prompts = made.into_iter().map(|made| Prompt {
        body: made.body,
        prompt_tokens: made.tokens.map(|n| n + maker.specials),
        output_tokens: uniform(&mut outputs, low.max(1), high.max(1)),
        at: None,
        row: None,
    });
    Ok(prompts.collect())
}

fn interval(n: u32, ratio: f64) -> (u32, u32) {
    let n = f64::from(n);
    ((n * (1.0 - ratio)).floor() as u32, (n * (1.0 + ratio)).ceil() as u32)
}

fn uniform(rng: &mut Rng, low: u32, high: u32) -> u32 {
    rng.between(u64::from(low), u64::from(high)) as u32
}
