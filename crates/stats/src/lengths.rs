use crate::request::output_tokens;
use tailbound_record::Row;

/// Who counted a request's output tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenSource {
    /// The server's usage object.
    Server,
    /// Our own tokenizer, over the whole text.
    Tokenizer,
    /// Nobody: each event counts as one token.
    Events,
}

impl TokenSource {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            TokenSource::Server => "server_usage",
            TokenSource::Tokenizer => "tokenizer",
            TokenSource::Events => "events",
        }
    }
}

/// Token totals of the completed requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tokens {
    /// Prompt tokens, as the server counted them where it did, else as asked for. `None` if nobody knows any.
    pub input: Option<u64>,
    /// Prompt tokens that the server says came from its prefix cache. `None` if it never says.
    pub cached: Option<u64>,
    /// Output tokens.
    pub output: u64,
    /// Output tokens the server calls reasoning. `None` if it never says.
    pub reasoning: Option<u64>,
    /// Output events (chunks of the stream).
    pub events: u64,
    /// Completed requests whose output the server, the tokenizer, and nobody counted.
    pub output_from: [usize; 3],
    /// Completed requests whose prompt the server counted.
    pub input_from_server: usize,
}

impl Tokens {
    /// Counts a completed request in.
    pub(crate) fn add(&mut self, row: &Row) {
        let (n, source) = output_tokens(row);
        self.output += u64::from(n);
        self.output_from[source as usize] += 1;
        self.events += row.chunks.len() as u64;
        add(&mut self.input, row.prompt_tokens());
        add(&mut self.cached, row.tokens.cached_server);
        add(&mut self.reasoning, row.tokens.reasoning_server);
        self.input_from_server += usize::from(row.tokens.prompt_server.is_some());
    }

    /// The least trustworthy source that counted any of the output; `None` of no requests.
    pub fn output_source(&self) -> Option<TokenSource> {
        [TokenSource::Events, TokenSource::Tokenizer, TokenSource::Server]
            .into_iter()
            .find(|source| self.output_from[*source as usize] > 0)
    }

    /// Tokens per event: 1 for a plain stream, more where the server bundles or speculates.
    pub fn per_event(&self) -> Option<f64> {
        (self.events > 0).then(|| self.output as f64 / self.events as f64)
    }
}

/// How the lengths that came compare with those asked for: sums over completed requests for which both are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lengths {
    /// Prompts: asked, and by the server.
    pub prompt: Pair,
    /// Output: asked at most, and by the server.
    pub output: Pair,
    /// Output: by our tokenizer, and by the server.
    pub recount: Pair,
}

/// Two counts of the same thing, over the same requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pair {
    /// Requests that have both.
    pub requests: usize,
    /// Requests whose counts differ.
    pub differing: usize,
    /// Sum of what was expected.
    pub expected: u64,
    /// Sum of what came.
    pub counted: u64,
}

impl Pair {
    fn add(&mut self, expected: Option<u32>, counted: Option<u32>) {
        let (Some(expected), Some(counted)) = (expected, counted) else { return };
        self.requests += 1;
        self.differing += usize::from(expected != counted);
        self.expected += u64::from(expected);
        self.counted += u64::from(counted);
    }

    /// How far the counted sum is off the expected one, as a share of it (negative: fewer). `None` where there is nothing to compare.
    pub fn off(&self) -> Option<f64> {
        (self.expected > 0).then(|| self.counted as f64 / self.expected as f64 - 1.0)
    }
}

impl Lengths {
    /// Counts a completed request in.
    pub(crate) fn add(&mut self, row: &Row) {
        let t = &row.tokens;
        self.prompt.add(t.prompt_asked, t.prompt_server);
        self.output.add(t.output_asked, t.output_server);
        self.recount.add(t.output_tokenized, t.output_server);
    }
}

fn add(sum: &mut Option<u64>, n: Option<u32>) {
    if let Some(n) = n {
        *sum = Some(sum.unwrap_or(0) + u64::from(n));
    }
}
