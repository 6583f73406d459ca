/// What we have sent to a replica and not seen the end of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests in flight.
    pub requests: u32,
    /// Prompt tokens that were not cached there, of requests without a first token yet.
    pub prefill_tokens: u64,
    /// KV tokens of the requests in flight: prompt, and what was generated as far as reported.
    pub kv_tokens: u64,
}

/// One request's share of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) prefill_tokens: u64,
    pub(crate) kv_tokens: u64,
}

impl Load {
    pub(crate) fn add(&mut self, charge: &Charge) {
        self.requests += 1;
        self.prefill_tokens += charge.prefill_tokens;
        self.kv_tokens += charge.kv_tokens;
    }

    /// Whoever subtracts has added, once; see [`crate::request::Leg`].
    pub(crate) fn sub(&mut self, charge: &Charge) {
        self.requests -= 1;
        self.prefill_tokens -= charge.prefill_tokens;
        self.kv_tokens -= charge.kv_tokens;
    }
}
