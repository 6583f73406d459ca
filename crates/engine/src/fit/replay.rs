//! A measured run's requests through the model, and what its steps had to compute for each of them.

use super::Asked;
use crate::{Aic, Batch, Config, ConfigError, Effect, Engine, Event, Law, SeqId, Submit};
use tailbound_clock::{Dur, Time};

/// What a law's five numbers are multiplied by: steps, decoding sequences, tokens of their contexts, tokens through the
/// matrices, pairs in attention to prompts. Where decoding sequences go through the matrices together with prompts, they count as
/// tokens, or else as sequences, as [`Aic`] has it.
pub(super) type Work = [f64; 5];

/// A request in the model.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Time to first token in milliseconds.
    pub(super) ttft: f64,
    /// Time per output token after the first in milliseconds; 0 of a single one.
    pub(super) tpot: f64,
    /// What was computed until its first token, from when it was sent.
    pub(super) first: Work,
    /// What was computed per token after it.
    pub(super) next: Work,
}

/// Every request, as it goes under a law; the engine's own law is not looked at.
pub(super) fn simulate(asked: &[Asked], config: &Config, law: &Aic) -> Result<Vec<Seen>, ConfigError> {
    let mut engine = Engine::new(Config { law: Law::Aic(*law), ..config.clone() })?;
    let mut seen = vec![Seen::default(); asked.len()];
    let mut done = Done::default();
    let mut out: Vec<Effect> = Vec::new();
    let mut wake = |engine: &mut Engine, at: Time, out: &mut Vec<Effect>| {
        out.clear();
        engine.on(at, Event::Wake, out);
        if let Some(step) = engine.step {
            done.begin(step.start, step.end, work(law, &engine.batch));
        }
        for f in engine.finished() {
            let (Some(first), Some(last)) = (f.first_token, f.last_token) else { continue };
            let gaps = f64::from(f.generated.max(2) - 1);
            seen[f.id.0 as usize] = Seen {
                ttft: first.since(f.queued).ms(),
                tpot: last.since(first).ms() / gaps,
                first: done.between(f.queued, first),
                next: done.between(first, last).map(|w| w / gaps),
            };
        }
    };
    let longest = asked.iter().map(|a| a.input).max().unwrap_or(1);
    let prompt = vec![0; longest as usize];
    for (id, a) in asked.iter().enumerate() {
        let at = Time::ZERO + a.at;
        while let Some(next) = engine.next_wake().filter(|next| *next < at) {
            wake(&mut engine, next, &mut out);
        }
        let prompt = &prompt[..a.input as usize];
        let submit = Submit { remote: a.cached, ..Submit::new(SeqId(id as u64), prompt, a.output.max(1)) };
        engine.on(at, Event::Submit(submit), &mut out);
    }
    while let Some(next) = engine.next_wake() {
        wake(&mut engine, next, &mut out);
    }
    Ok(seen)
}

/// A step's work: its product with the law's numbers is its time.
fn work(law: &Aic, batch: &Batch) -> Work {
    let (decodes, prompts) = (f64::from(batch.decode_tokens), f64::from(batch.prefill_tokens));
    let context = batch.decode_context as f64;
    let together = batch.prefill_tokens > 0 && law.prefill[1] * (decodes + prompts) >= law.decode[1] * decodes;
    match together {
        true => [1.0, 0.0, context, decodes + prompts, batch.prefill_attention],
        false => [1.0, decodes, context, 0.0, batch.prefill_attention],
    }
}

/// The work of all steps so far.
#[derive(Default)]
struct Done {
    /// Begin, end, the work of all steps before, and its own.
    steps: Vec<(Time, Time, Work, Work)>,
}

impl Done {
    fn begin(&mut self, start: Time, end: Time, work: Work) {
        let before = match self.steps.last() {
            Some((last, ..)) if *last == start => return,
            Some((.., before, own)) => add(*before, *own, 1.0),
            None => Work::default(),
        };
        self.steps.push((start, end, before, work));
    }

    /// Up to a moment, of the step in flight the part that has passed.
    fn until(&self, at: Time) -> Work {
        let Some((start, end, before, own)) =
            self.steps.partition_point(|s| s.0 <= at).checked_sub(1).map(|i| self.steps[i])
        else {
            return Work::default();
        };
        let length = end.since(start).max(Dur::from_ns(1)).ms();
        add(before, own, (at.since(start).ms() / length).min(1.0))
    }

    fn between(&self, from: Time, to: Time) -> Work {
        add(self.until(to), self.until(from), -1.0)
    }
}

fn add(a: Work, b: Work, times: f64) -> Work {
    std::array::from_fn(|i| a[i] + times * b[i])
}
