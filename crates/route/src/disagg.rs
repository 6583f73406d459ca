use crate::prefix::Matches;
use crate::request::Request;

/// How many replicas work on one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Handler {
    /// One, of the profile of that place.
    Single { profile: usize },
    /// One decodes; another may compute the prompt before, and another media before that.
    Disagg { decode: usize, prefill: Option<(usize, Decider)>, encode: Option<(usize, Decider)> },
}

/// Whether another replica is worth its transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decider {
    /// `always-disagg-pd-decider`.
    Always,
    /// `always-disagg-multimodal-decider`: if there are media.
    Media,
    /// `prefix-based-pd-decider`: if at least so many tokens aren't cached where decoding is done; 0: never.
    Uncached { tokens: u32 },
}

impl Decider {
    /// For a request that will be decoded at `slot`.
    pub(crate) fn splits(self, request: &Request, matches: Option<&Matches>, slot: u32) -> bool {
        match self {
            Decider::Always => true,
            Decider::Media => !request.media.is_empty(),
            Decider::Uncached { tokens: 0 } => false,
            Decider::Uncached { tokens } => {
                let cached = matches.map_or(0, |m| m.tokens(slot));
                u64::from(request.prompt_tokens).saturating_sub(cached) >= u64::from(tokens)
            }
        }
    }
}
