use crate::{Chunks, End, Moment, Moments};
use tailbound_clock::Dur;

/// One request: what was asked, when everything happened, how it ended.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its number in the plan, from 0.
    pub id: u64,
    /// Its request class (objectives may differ by class); 0 if there is only one.
    pub class: u16,
    /// The worker (thread, machine or replica) that ran it.
    pub worker: u16,
    /// When everything happened.
    pub at: Moments,
    /// Token counts from every side that counted.
    pub tokens: Counts,
    /// The output events.
    pub chunks: Chunks,
    /// How it ended.
    pub end: End,
    /// Who stamped the receive times.
    pub stamps: StampSource,
    /// What the connection did.
    pub net: Net,
    /// The generated text, if it was asked for.
    pub text: Option<Box<str>>,
}

/// Who took the receive times of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StampSource {
    /// The kernel, when the segment arrived.
    Kernel,
    /// The kernel, except for some reads that had no stamp.
    Mixed,
    /// This process, when it read.
    #[default]
    User,
    /// Nobody: the row is simulated.
    Virtual,
}

/// Token counts of one request. Missing is `None`, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Prompt tokens the plan asked for.
    pub prompt_asked: Option<u32>,
    /// Prompt tokens by the server's usage.
    pub prompt_server: Option<u32>,
    /// Of those, tokens the server took from its prefix cache.
    pub cached_server: Option<u32>,
    /// Output tokens the plan asked for at most.
    pub output_asked: Option<u32>,
    /// Output tokens by the server's usage (its last or largest cumulative count).
    pub output_server: Option<u32>,
    /// Of those, reasoning tokens.
    pub reasoning_server: Option<u32>,
    /// Output tokens by a tokenizer run over the whole text here.
    pub output_tokenized: Option<u32>,
}

/// What the connection did for one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Net {
    /// The response's status; 0 if none came.
    pub status: u16,
    /// Whether the connection had served a request before.
    pub reused: bool,
    /// How many times the request was sent again because a kept-alive connection turned out closed before any byte went either way.
    pub retries: u8,
    /// Reads of the response.
    pub reads: u32,
    /// Bytes of the response body.
    pub body_bytes: u64,
}

impl Row {
    /// A row for a request about which nothing is known yet but its number.
    pub fn new(id: u64) -> Row {
        Row {
            id,
            class: 0,
            worker: 0,
            at: Moments::NONE,
            tokens: Counts::default(),
            chunks: Chunks::default(),
            end: End::NeverSent(crate::Why::Interrupted),
            stamps: StampSource::default(),
            net: Net::default(),
            text: None,
        }
    }

    /// Whether the whole answer came.
    pub fn ok(&self) -> bool {
        matches!(self.end, End::Done(_))
    }

    /// Output tokens: the server's usage, else what its events state, else our own tokenizer's count, else the events.
    pub fn output_tokens(&self) -> u32 {
        let counted =
            self.tokens.output_server.or_else(|| self.chunks.stated_tokens()).or(self.tokens.output_tokenized);
        counted.unwrap_or(self.chunks.len() as u32)
    }

    /// Prompt tokens: the server's usage, else what was asked for.
    pub fn prompt_tokens(&self) -> Option<u32> {
        self.tokens.prompt_server.or(self.tokens.prompt_asked)
    }

    /// From the first byte of the request written to the first token. Connecting is not part of it.
    pub fn ttft(&self) -> Option<Dur> {
        self.at.between(Moment::WriteStart, Moment::FirstToken)
    }

    /// From the scheduled arrival to the first token: includes every wait in this client.
    pub fn ttft_scheduled(&self) -> Option<Dur> {
        self.at.between(Moment::Scheduled, Moment::FirstToken)
    }

    /// From the first byte written to the last token.
    pub fn e2e(&self) -> Option<Dur> {
        self.at.between(Moment::WriteStart, Moment::LastToken)
    }

    /// From the scheduled arrival to the last token.
    pub fn e2e_scheduled(&self) -> Option<Dur> {
        self.at.between(Moment::Scheduled, Moment::LastToken)
    }
}
