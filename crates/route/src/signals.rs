use tailbound_clock::Time;

/// What a replica's metrics said, and when they were true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signals<'a> {
    /// The moment they describe (when the scrape was answered, not when it was read).
    pub at: Time,
    /// Requests waiting in the engine.
    pub waiting: u32,
    /// Requests in its batch.
    pub running: u32,
    /// Share of KV blocks in use, 0 to 1.
    pub kv_usage: f64,
    /// Tokens in a KV block, where exported.
    pub block_size: Option<u32>,
    /// KV blocks there are, where exported.
    pub blocks: Option<u32>,
    /// Adapters, where exported.
    pub lora: Option<Loras<'a>>,
    /// Other figures by name, those a configured plugin reads.
    pub attributes: &'a [(&'a str, f64)],
}

impl Signals<'_> {
    /// Of an idle engine, at `at`.
    pub fn idle(at: Time) -> Signals<'static> {
        Signals {
            at,
            waiting: 0,
            running: 0,
            kv_usage: 0.0,
            block_size: None,
            blocks: None,
            lora: None,
            attributes: &[],
        }
    }
}

/// The adapters of an engine (`vllm:lora_requests_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loras<'a> {
    /// How many fit.
    pub max: u32,
    /// Loaded and in use.
    pub running: &'a [&'a str],
    /// Waited for.
    pub waiting: &'a [&'a str],
}
