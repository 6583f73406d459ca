//! How long a first token and each one after it will take, learnt from those that were.

mod learner;

use crate::load::Load;
use crate::request::Slo;
use learner::Learner;
use tailbound_clock::Dur;

/// What is expected of one replica for one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    pub(crate) ttft_ms: f64,
    pub(crate) tpot_ms: f64,
    /// What would be left of the SLO; positive where there is none.
    pub(crate) headroom_ttft_ms: f64,
    pub(crate) headroom_tpot_ms: f64,
}

impl Prediction {
    pub(crate) fn keeps_the_slo(&self) -> bool {
        self.headroom_ttft_ms >= 0.0 && self.headroom_tpot_ms >= 0.0
    }
}

/// Predictions by slot; none for any, as long as too little was learnt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forecast(pub(crate) Vec<Option<Prediction>>);

impl Forecast {
    pub(crate) fn of(&self, slot: u32) -> Option<Prediction> {
        self.0.get(slot as usize).copied().flatten()
    }
}

/// What was known of a replica when a request was sent there: the published predictor's features, with prompts counted in
/// tokens where that one counts words.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Features {
    pub(crate) kv: f64,
    pub(crate) prompt: f64,
    pub(crate) uncached: f64,
    pub(crate) waiting: f64,
    pub(crate) running: f64,
    pub(crate) prefill_in_flight: f64,
    pub(crate) kv_in_flight: f64,
    pub(crate) requests_in_flight: f64,
}

const TTFT: usize = 8;
const TPOT: usize = 5;

impl Features {
    pub(crate) fn with_load(mut self, load: &Load) -> Features {
        self.prefill_in_flight = load.prefill_tokens as f64;
        self.kv_in_flight = load.kv_tokens as f64;
        self.requests_in_flight = f64::from(load.requests);
        self
    }

    /// Scaled to be of the order of 1.
    fn ttft(&self) -> [f64; TTFT] {
        [
            1.0,
            self.uncached / 1e3,
            self.uncached * self.prompt / 1e7,
            self.prefill_in_flight / 1e3,
            self.waiting / 10.0,
            self.requests_in_flight / 10.0,
            self.kv_in_flight / 1e5,
            self.kv,
        ]
    }

    fn tpot(&self) -> [f64; TPOT] {
        [1.0, self.requests_in_flight / 10.0, self.kv_in_flight / 1e5, self.prefill_in_flight / 1e4, self.kv]
    }
}

/// How good the predictions have been lately.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Accuracy {
    /// First tokens learnt from.
    pub ttft_samples: u64,
    /// Mean absolute error of the TTFT, relative to what it was, of about the last thousand predictions.
    pub ttft_error: Option<f64>,
    /// Answers learnt from.
    pub tpot_samples: u64,
    /// The same of the time per output token.
    pub tpot_error: Option<f64>,
}

/// Two linear models over all replicas, and a factor of each replica's own.
#[derive(Debug)]
pub(crate) struct Predictor {
    ttft: Learner<TTFT>,
    tpot: Learner<TPOT>,
    slots: Vec<Own>,
    slo_buffer: f64,
}

/// One replica's own.
#[derive(Clone, Debug)]
struct Own {
    ttft: f64,
    tpot: f64,
    /// TPOT objectives of requests in flight there, in nanoseconds.
    slos: Vec<u64>,
}

/// No prediction is given before so much was learnt.
const ENOUGH: u64 = 30;
const OWN_RATE: f64 = 0.05;

impl Predictor {
    pub(crate) fn new(slo_buffer: f64) -> Predictor {
        Predictor { ttft: Learner::new(), tpot: Learner::new(), slots: Vec::new(), slo_buffer }
    }

    pub(crate) fn joined(&mut self, slot: u32) {
        let fresh = Own { ttft: 1.0, tpot: 1.0, slos: Vec::new() };
        if self.slots.len() <= slot as usize {
            self.slots.resize(slot as usize + 1, fresh);
        } else {
            self.slots[slot as usize] = fresh;
        }
    }

    /// What a request that has waited for `waited` is to expect.
    pub(crate) fn predict(&self, slot: u32, features: &Features, slo: Slo, waited: Dur) -> Option<Prediction> {
        if self.ttft.samples() < ENOUGH || self.tpot.samples() < ENOUGH {
            return None;
        }
        let own = self.slots.get(slot as usize)?;
        let ttft_ms = self.ttft.predict(&features.ttft()) * own.ttft;
        let tpot_ms = self.tpot.predict(&features.tpot()) * own.tpot;
        let tightest = own.slos.iter().min().map(|ns| Dur(*ns));
        let tpot_slo = slo.tpot.into_iter().chain(tightest).min();
        let left = |slo: Option<Dur>, used: f64| slo.map_or(f64::MAX, |s| s.ms() - used);
        Some(Prediction {
            ttft_ms,
            tpot_ms,
            headroom_ttft_ms: left(slo.ttft, waited.ms() + ttft_ms),
            headroom_tpot_ms: tpot_slo.map_or(f64::MAX, |s| s.ms() * self.slo_buffer - tpot_ms),
        })
    }

    pub(crate) fn sent(&mut self, slot: u32, slo: Slo) {
        if let (Some(own), Some(tpot)) = (self.slots.get_mut(slot as usize), slo.tpot) {
            own.slos.push(tpot.ns());
        }
    }

    pub(crate) fn over(&mut self, slot: u32, slo: Slo) {
        let Some(own) = self.slots.get_mut(slot as usize) else { return };
        if let Some(place) = slo.tpot.and_then(|t| own.slos.iter().position(|s| *s == t.ns())) {
            own.slos.swap_remove(place);
        }
    }

    pub(crate) fn first_token(&mut self, slot: u32, features: &Features, took: Dur) {
        let raw = self.ttft.learn(&features.ttft(), took.ms(), self.slots[slot as usize].ttft);
        adapt(&mut self.slots[slot as usize].ttft, raw, took.ms());
    }

    /// An answer of `tokens` took `took` from its first token to its last.
    pub(crate) fn answered(&mut self, slot: u32, features: &Features, took: Dur, tokens: u32) {
        if tokens < 2 {
            return;
        }
        let tpot = took.ms() / f64::from(tokens - 1);
        let raw = self.tpot.learn(&features.tpot(), tpot, self.slots[slot as usize].tpot);
        adapt(&mut self.slots[slot as usize].tpot, raw, tpot);
    }

    pub(crate) fn accuracy(&self) -> Accuracy {
        Accuracy {
            ttft_samples: self.ttft.samples(),
            ttft_error: self.ttft.error(),
            tpot_samples: self.tpot.samples(),
            tpot_error: self.tpot.error(),
        }
    }
}

fn adapt(own: &mut f64, raw: f64, was: f64) {
    if raw > 0.0 {
        *own = (*own + OWN_RATE * ((was / raw).clamp(0.1, 10.0) - *own)).clamp(0.2, 5.0);
    }
}
