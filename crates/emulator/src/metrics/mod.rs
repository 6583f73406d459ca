//! `/metrics`: what one replica has done, under vLLM's names.

mod exposition;
mod histogram;
mod samples;

pub(crate) use exposition::{Page, Rank as RankPage};

use histogram::Histogram;
use tailbound_clock::{Dur, Time};
use tailbound_engine::{Finish, Finished, Step};

/// The histograms of one replica; plain counters are the engine's own.
#[derive(Clone, Debug)]
pub(crate) struct Histograms {
    pub ttft: Histogram,
    pub itl: Histogram,
    pub tpot: Histogram,
    pub e2e: Histogram,
    pub queue: Histogram,
    pub inference: Histogram,
    pub prefill: Histogram,
    pub decode: Histogram,
    pub prompt: Histogram,
    pub generation: Histogram,
    pub step: Histogram,
    pub max_generation: Histogram,
    pub answers: Histogram,
    pub max_tokens: Histogram,
    pub preemptions: Histogram,
    pub computed: Histogram,
}

impl Histograms {
    pub(crate) fn new(max_model_len: u32) -> Histograms {
        let tokens = Histogram::new(&histogram::tokens(max_model_len));
        let phase = Histogram::new(histogram::PHASE);
        let itl = Histogram::new(histogram::ITL);
        Histograms {
            ttft: Histogram::new(histogram::TTFT),
            itl: itl.clone(),
            tpot: itl,
            e2e: phase.clone(),
            queue: phase.clone(),
            inference: phase.clone(),
            prefill: phase.clone(),
            decode: phase,
            prompt: tokens.clone(),
            generation: tokens.clone(),
            step: Histogram::new(histogram::STEP),
            max_generation: tokens.clone(),
            answers: Histogram::new(histogram::ANSWERS),
            max_tokens: tokens.clone(),
            preemptions: Histogram::new(histogram::PREEMPTIONS),
            computed: tokens,
        }
    }

    /// A step ended.
    pub(crate) fn stepped(&mut self, step: &Step) {
        let tokens = step.prefill_tokens + step.emitted_tokens;
        if tokens > 0 {
            self.step.observe(f64::from(tokens));
        }
    }

    /// A first output came so long after its request.
    pub(crate) fn first_token(&mut self, after: Dur) {
        self.ttft.observe(after.secs());
    }

    /// An output came so long after the one before.
    pub(crate) fn next_token(&mut self, after: Dur) {
        self.itl.observe(after.secs());
    }

    /// A request ended by itself; what was given up is not timed, as in vLLM.
    pub(crate) fn finished(&mut self, f: &Finished, max_tokens: u32) {
        let (Some(scheduled), Some(first), Some(last)) = (f.scheduled, f.first_token, f.last_token) else { return };
        if f.finish == Finish::Abort {
            return;
        }
        let span = |from: Time, to: Time| to.since(from).secs();
        self.e2e.observe(span(f.queued, last));
        self.queue.observe(span(f.queued, scheduled));
        self.inference.observe(span(scheduled, last));
        self.prefill.observe(span(scheduled, first));
        self.decode.observe(span(first, last));
        let gaps = f.generated.saturating_sub(1);
        self.tpot.observe(if gaps == 0 { 0.0 } else { span(first, last) / f64::from(gaps) });
        self.prompt.observe(f64::from(f.prompt));
        self.generation.observe(f64::from(f.generated));
        self.max_generation.observe(f64::from(f.generated));
        self.answers.observe(1.0);
        self.max_tokens.observe(f64::from(max_tokens));
        self.preemptions.observe(f64::from(f.preemptions));
        self.computed.observe(f64::from(f.prompt - f.cached.min(f.prompt)));
    }
}
