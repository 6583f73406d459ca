/// Most draft tokens per sequence and step.
pub const MAX_DRAFT_TOKENS: usize = 16;

/// What a real engine exports, at this moment. Totals only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sequences that take part in steps.
    pub running: u32,
    /// Requests that wait for a place or for blocks, preempted ones too.
    pub waiting: u32,
    /// Blocks that living sequences hold.
    pub blocks_used: u32,
    /// Blocks there are.
    pub blocks: u32,
    /// Steps that ended.
    pub steps: u64,
    /// Tokens looked up in the prefix cache, once per request.
    pub prefix_queries: u64,
    /// Tokens found there.
    pub prefix_hits: u64,
    /// Tokens looked up in the tiers below, once per request: those that the GPU's cache didn't have.
    pub tier_queries: u64,
    /// Tokens found there, by tier (more than two count as the second).
    pub tier_hits: [u64; 2],
    /// Tokens whose keys and values came from another replica.
    pub transferred: u64,
    /// Adapters brought to the GPU.
    pub lora_loads: u64,
    /// Prompt tokens computed for requests whose first token is out (vLLM's source `local_compute`).
    pub prompt_computed: u64,
    /// Prompt tokens taken from the cache instead (`local_cache_hit`).
    pub prompt_cached: u64,
    /// Tokens generated.
    pub generated: u64,
    /// Requests that ended by themselves.
    pub finished_stop: u64,
    /// Requests that ended at their limit.
    pub finished_length: u64,
    /// Requests given up.
    pub finished_abort: u64,
    /// Requests not taken because too many waited.
    pub rejected_queue_full: u64,
    /// Requests not taken for what they were.
    pub rejected_invalid: u64,
    /// Times a sequence lost its blocks.
    pub preemptions: u64,
    /// Cached blocks evicted to make room.
    pub evictions: u64,
    /// Sequence-steps that drafted.
    pub drafts: u64,
    /// Tokens drafted.
    pub draft_tokens: u64,
    /// Tokens drafted and accepted.
    pub accepted_tokens: u64,
    /// The same by place in the draft.
    pub accepted_per_position: [u64; MAX_DRAFT_TOKENS],
}

impl Counters {
    /// The share of blocks in use, 0 to 1 (vLLM's `kv_cache_usage_perc`).
    pub fn kv_usage(&self) -> f64 {
        f64::from(self.blocks_used) / f64::from(self.blocks.max(1))
    }

    /// All prompt tokens of requests whose first token is out.
    pub fn prompt_tokens(&self) -> u64 {
        self.prompt_computed + self.prompt_cached
    }
}
