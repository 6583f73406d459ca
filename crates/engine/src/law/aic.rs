use crate::Batch;

/// A closed form in milliseconds, fitted to step times that AIConfigurator composes from measured kernels.
///
/// * decode alone: `a + b·B + c·B·ctx`, with B sequences of mean context ctx;
/// * prefill alone: `a + b·max(0, n − knee) + c·n·(n/2 + prefix)`, with n new tokens;
/// * both: the weights are read once, so the linear parts do not add. The tokens of both go through the matrices
///   together, and take what prefill takes for n + B tokens, or decode for B, whichever is longer; the attention parts add.
///
/// The last rule is ours. Against the 144 mixed steps of the same source it is within 11 % at p90 (adding the two forms:
/// 42 %), and it is what makes running prompts slow down the others' tokens.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Aic {
    /// a (ms), b (ms per sequence), c (ms per sequence and token of context) of decode.
    pub decode: [f64; 3],
    /// a (ms), b (ms per token past the knee), c (ms per pair of tokens) of prefill.
    pub prefill: [f64; 3],
    /// Tokens up to which prefill is bound by reading the weights.
    pub knee: f64,
    /// What reading shared blocks costs; `None`: as much as any other.
    #[serde(default)]
    pub shared: Option<Shared>,
}

/// Sequences with a beginning in common share its blocks. Those that are read at the same time read them from memory
/// once; for the others they come from the GPU's second-level cache.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Shared {
    /// The cost of reading a token again, of reading it first; 0 to 1.
    pub again: f64,
    /// Sequences that are read at the same time.
    pub at_once: f64,
}

impl Shared {
    /// Tokens of context that cost as much as reading these.
    fn read(&self, batch: &Batch) -> f64 {
        let all = batch.decode_context as f64;
        let rounds = (f64::from(batch.decodes) / self.at_once).max(1.0);
        let distinct = batch.decode_context.saturating_sub(batch.shared) as f64;
        let first = (distinct * rounds).min(all);
        first + self.again * (all - first)
    }
}

impl Aic {
    /// The time of a step in milliseconds.
    pub fn ms(&self, batch: &Batch) -> f64 {
        let [a, b, c] = self.decode;
        let decode = a + b * f64::from(batch.decode_tokens);
        let decode_attention = c * self.shared.map_or(batch.decode_context as f64, |s| s.read(batch));
        if batch.prefill_tokens == 0 {
            return decode + decode_attention;
        }
        let [a, b, c] = self.prefill;
        let tokens = f64::from(batch.prefill_tokens + batch.decode_tokens);
        let prefill = a + b * (tokens - self.knee).max(0.0);
        let prefill = if batch.decode_tokens == 0 { prefill } else { prefill.max(decode) };
        prefill + c * batch.prefill_attention + decode_attention
    }

    pub(super) fn validate(&self) -> Result<(), &'static str> {
        let all = self.decode.iter().chain(&self.prefill).chain([&self.knee]);
        if self.shared.is_some_and(|s| !(0.0..=1.0).contains(&s.again) || s.at_once.is_nan() || s.at_once < 1.0) {
            return Err("the cost of shared blocks is not 0 to 1, or fewer than one sequence is read at once");
        }
        if !all.clone().all(|x| x.is_finite() && *x >= 0.0) {
            return Err("a coefficient is negative or not a number");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Aic = Aic { decode: [6.0, 0.01, 4e-5], prefill: [7.0, 0.02, 1e-6], knee: 200.0, shared: None };

    #[test]
    fn each_phase_alone_is_its_own_form() {
        let decode = Batch { decodes: 10, decode_tokens: 10, decode_context: 10_000, ..Batch::default() };
        assert!((LAW.ms(&decode) - (6.0 + 0.1 + 0.4)).abs() < 1e-12);
        let n = 1000.0;
        let prefill =
            Batch { prefills: 1, prefill_tokens: 1000, prefill_attention: n * (n / 2.0 + 50.0), ..Batch::default() };
        assert!((LAW.ms(&prefill) - (7.0 + 0.02 * 800.0 + 1e-6 * n * 550.0)).abs() < 1e-12);
    }

    #[test]
    fn blocks_that_sequences_share_are_read_once_a_round() {
        let law = Aic { shared: Some(Shared { again: 0.5, at_once: 50.0 }), ..LAW };
        let batch = |decodes: u32, distinct: u64| Batch {
            decodes,
            decode_tokens: decodes,
            decode_context: 1000 * u64::from(decodes),
            shared: 1000 * u64::from(decodes) - distinct,
            ..Batch::default()
        };
        let alone = |decodes: u32| 6.0 + 0.01 * f64::from(decodes);
        let of = |decodes, distinct| (law.ms(&batch(decodes, distinct)) - alone(decodes)) / 4e-5;
        assert!((of(10, 10_000) - 10_000.0).abs() < 1e-6, "nothing shared");
        assert!((of(10, 2000) - (2000.0 + 0.5 * 8000.0)).abs() < 1e-6);
        assert!((of(100, 20_000) - (40_000.0 + 0.5 * 60_000.0)).abs() < 1e-6, "in two rounds");
    }

    #[test]
    fn a_mixed_step_is_never_shorter_than_either_part_nor_longer_than_both() {
        for decodes in [1, 8, 64, 256] {
            for prefill_tokens in [1, 100, 2000] {
                let n = f64::from(prefill_tokens);
                let decode = Batch {
                    decodes,
                    decode_tokens: decodes,
                    decode_context: 700 * u64::from(decodes),
                    ..Batch::default()
                };
                let prefill = Batch { prefills: 1, prefill_tokens, prefill_attention: n * n / 2.0, ..Batch::default() };
                let both = Batch { prefills: 1, prefill_tokens, prefill_attention: n * n / 2.0, ..decode };
                let (d, p, m) = (LAW.ms(&decode), LAW.ms(&prefill), LAW.ms(&both));
                assert!(m >= d && m >= p && m <= d + p, "{decodes} {prefill_tokens}: {d} {p} {m}");
            }
        }
    }
}
