use tailbound_clock::{Dur, Time};

/// A sequence's name, chosen by the driver; not to be used again while the sequence lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqId(pub u64);

/// What can happen to an engine.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// [`crate::Engine::next_wake`] has come.
    Wake,
    /// A request arrives.
    Submit(Submit<'a>),
    /// A request is given up (its client left); unknown and ended sequences are ignored.
    Abort(SeqId),
    /// The keys and values of a sequence that ended with [`Submit::hold`] are no longer needed here.
    Release(SeqId),
    /// Forget all cached blocks; refused, as vLLM does, while any block is in use.
    ResetPrefixCache,
}

/// A request. The driver knows in advance what will be generated: an engine model has no model.
#[derive(Clone, Copy, Debug)]
pub struct Submit<'a> {
    /// Its name.
    pub id: SeqId,
    /// Token ids of the prompt; at least one.
    pub prompt: &'a [u32],
    /// Token ids of the answer as far as they matter (they are what makes a next turn hit the cache). Where it is shorter
    /// than `output_tokens`, the rest is [`crate::invented_token`].
    pub answer: &'a [u32],
    /// How many tokens will be generated; at least one. Cut at the model's context length.
    pub output_tokens: u32,
    /// Why generation ends there.
    pub finish: Finish,
    /// Lower goes first, under [`crate::Policy::Priority`].
    pub priority: i32,
    /// Separates prefix caches (of tenants).
    pub salt: Option<u64>,
    /// The adapter; separates prefix caches too.
    pub lora: Option<u32>,
    /// How many of the prompt's tokens another replica has computed: their keys and values are fetched from there
    /// ([`crate::Config::transfer`]), as far as they aren't cached here. The decoding half of a disaggregated request.
    pub remote: u32,
    /// Keep its blocks when it ends, until [`Event::Release`]: somebody will fetch them. The prefilling half.
    pub hold: bool,
}

impl<'a> Submit<'a> {
    /// A request that generates `output_tokens` tokens nobody else knows, up to its limit, at priority 0.
    pub fn new(id: SeqId, prompt: &'a [u32], output_tokens: u32) -> Submit<'a> {
        Submit {
            id,
            prompt,
            answer: &[],
            output_tokens,
            finish: Finish::Length,
            priority: 0,
            salt: None,
            lora: None,
            remote: 0,
            hold: false,
        }
    }
}

/// What an engine tells its driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// A step ended: [`crate::Engine::emitted`] has its output (perhaps none), [`crate::Engine::finished`] what it ended.
    Stepped(Step),
    /// A request was not taken.
    Rejected {
        /// Which.
        id: SeqId,
        /// Why.
        why: WhyRejected,
    },
    /// A sequence was given up; [`crate::Engine::finished`] has its record.
    Aborted {
        /// Which.
        id: SeqId,
    },
    /// The answer to [`Event::ResetPrefixCache`].
    PrefixCacheReset {
        /// Whether it was done.
        done: bool,
    },
}

/// A step that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// When it began.
    pub start: Time,
    /// When its output came out. In live driving this is the planned moment, which may be a little before `now`.
    pub end: Time,
    /// Prompt tokens computed (recomputed ones too).
    pub prefill_tokens: u32,
    /// Sequences that were decoding.
    pub decodes: u32,
    /// Tokens that came out.
    pub emitted_tokens: u32,
    /// Sequences that lost their blocks when it began.
    pub preempted: u32,
}

impl Step {
    /// How long it took.
    pub fn duration(&self) -> Dur {
        self.end.since(self.start)
    }
}

/// One sequence's output of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emit {
    /// Whose.
    pub id: SeqId,
    /// The index in the answer of the first token; 0 is the answer's first.
    pub first: u32,
    /// How many tokens; more than one only under speculative decoding.
    pub tokens: u32,
    /// How many tokens of the prompt came from the prefix cache.
    pub cached: u32,
    /// Set on the last output.
    pub finish: Option<Finish>,
}

/// Why generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// End of sequence or a stop string.
    Stop,
    /// The token limit, or the model's context length.
    Length,
    /// Given up.
    Abort,
}

/// The life of a sequence that ended: what vLLM fills its per-request histograms with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Which.
    pub id: SeqId,
    /// How it ended.
    pub finish: Finish,
    /// When it was submitted.
    pub queued: Time,
    /// When a step first took it.
    pub scheduled: Option<Time>,
    /// When its first token came out.
    pub first_token: Option<Time>,
    /// When its last token came out.
    pub last_token: Option<Time>,
    /// Prompt tokens.
    pub prompt: u32,
    /// Prompt tokens that came from the prefix cache when it was first scheduled.
    pub cached: u32,
    /// Tokens generated.
    pub generated: u32,
    /// How often it lost its blocks.
    pub preemptions: u32,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WhyRejected {
    /// No prompt.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// Nothing to generate.
    #[error("no token is to be generated")]
    NoOutput,
    /// No room for a single generated token.
    #[error("the prompt has {prompt} tokens, but the model's context length is {max_model_len}, answer included")]
    PromptTooLong {
        /// Tokens of the prompt.
        prompt: usize,
        /// [`crate::Config::max_model_len`].
        max_model_len: u32,
    },
    /// Too many wait already.
    #[error("{waiting} requests wait already")]
    QueueFull {
        /// How many.
        waiting: u32,
    },
    /// A living sequence has that name.
    #[error("a sequence of that id is being served")]
    IdInUse,
}
