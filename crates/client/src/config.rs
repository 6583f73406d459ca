use tailbound_clock::Dur;

/// How the load is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Loops, one thread each; 0 means one for each core this process may use, less one for the pacer and the server beside
    /// it, at least one.
    pub threads: usize,
    /// The most connections the plan can need at once, where it is known (the cap, or the number of requests): descriptors and ports
    /// for so many are made sure of before anything is sent. `None`: not known (an endless open-loop plan).
    pub most_connections: Option<u64>,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Wait up to [`Config::GATHER`] after reading to read many sockets together. The stamps are the kernel's, so no number moves.
    pub gather: bool,
    /// When received bytes are acknowledged.
    pub acks: Acks,
    /// Run the client's threads before every ordinary one (`SCHED_FIFO`).
    pub realtime: bool,
    /// Tie the loops to these cores, in turn.
    pub pin: Vec<usize>,
    /// Connections opened (and TLS handshakes done) before the start.
    pub preconnect: usize,
    /// How long requests in flight may go on once sending has stopped (interrupted, or the run's time over).
    pub grace: Dur,
    /// Keep the generated text in the rows.
    pub keep_text: bool,
    /// Events longer than this many bytes are a failure.
    pub event_limit: usize,
}

impl Config {
    /// Gathering longer than 250 µs gains nothing; shorter than 100 µs, it gathers little.
    pub const GATHER: Dur = Dur::from_us(200);
}

impl Default for Config {
    fn default() -> Config {
        Config {
            threads: 0,
            most_connections: None,
            timeouts: Timeouts::default(),
            gather: true,
            acks: Acks::AtOnce,
            realtime: false,
            pin: Vec::new(),
            preconnect: 0,
            grace: Dur::from_secs(30),
            keep_text: false,
            event_limit: 16 << 20,
        }
    }
}

/// When received bytes are acknowledged to the peer. An acknowledgement at every read, the kernel's way with one that only sends, is
/// two fifths of what an event costs here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acks {
    /// As the kernel does by itself.
    #[default]
    AtOnce,
    /// Every second small segment. Right for peers that [`crate::probe`] has seen to send without waiting for acknowledgements; it
    /// would slow others down.
    Delayed,
    /// Delayed as well, at the cost of two more calls a read that tell whether the peer waits for them.
    Watched,
}

/// Time limits of each request. Every wait has one, so that no run hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For connecting, TLS included.
    pub connect: Dur,
    /// From the write to the first token.
    pub first_token: Dur,
    /// Between two reads of a response.
    pub gap: Dur,
    /// For the request as a whole, from its release.
    pub request: Dur,
}

impl Default for Timeouts {
    /// Thirty seconds to connect; otherwise the six hours of `vllm bench serve`.
    fn default() -> Timeouts {
        let long = Dur::from_secs(6 * 3600);
        Timeouts { connect: Dur::from_secs(30), first_token: long, gap: long, request: long }
    }
}
