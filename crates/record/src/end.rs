use std::fmt;

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The whole answer came.
    Done(Finish),
    /// It went wrong.
    Failed {
        /// How far it had come.
        phase: Phase,
        /// Whose side it was.
        blame: Blame,
        /// What happened.
        cause: Cause,
        /// The message for people: the server's own words where it had any. Never contains a key.
        detail: Box<str>,
    },
    /// We gave up on it.
    Cancelled(Why),
    /// It was planned and never sent.
    NeverSent(Why),
}

/// Why generation ended, as the server stated it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// End of sequence or a stop string.
    Stop,
    /// The token limit.
    Length,
    /// It called a tool.
    ToolCalls,
    /// A content filter.
    ContentFilter,
    /// Some other stated reason.
    Other,
    /// The stream ended in good order (`[DONE]`, a terminal event) without a reason.
    Unstated,
}

/// How far a request had come when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Resolving the name.
    Resolve,
    /// Connecting (a socket, a port, TCP).
    Connect,
    /// The TLS handshake.
    Tls,
    /// Writing the request.
    Write,
    /// Waiting for the response's head.
    Headers,
    /// Waiting for the first token.
    FirstToken,
    /// In the middle of the stream.
    Stream,
}

/// Whose side a failure was on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The server answered, and wrongly.
    Server,
    /// Something between.
    Network,
    /// This machine: limits, memory, configuration.
    Client,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The name has no address.
    NoAddress,
    /// The connection was refused.
    Refused,
    /// The connection was reset, or closed in the middle of a message.
    Reset,
    /// The TLS handshake failed, or the certificate wasn't trusted.
    Tls,
    /// A time limit passed.
    Timeout(Limit),
    /// A status other than 2xx.
    Status(u16),
    /// Bytes that break HTTP, server-sent events or JSON.
    Protocol,
    /// An error object inside a 2xx response.
    ErrorObject,
    /// The body ended in good order, but before the answer did.
    EndedEarly,
    /// The answer ended without a single token.
    NoTokens,
    /// File descriptors, ports or memory ran out here.
    LocalLimit,
    /// Anything else the operating system said.
    Io,
}

/// Which time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// For connecting.
    Connect,
    /// For the first token.
    FirstToken,
    /// Between two reads of a stream.
    Gap,
    /// For the request as a whole.
    Request,
}

/// Why a request was cancelled or never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The user interrupted the run.
    Interrupted,
    /// The run's time was over.
    Duration,
    /// A rule of the run ended it (too many errors, over-saturation).
    Rule,
    /// The plan itself asked for the cancellation.
    Planned,
    /// An earlier turn of its session failed, and it can't be asked without that answer.
    Session,
}

impl Cause {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Cause::NoAddress => "no_address",
            Cause::Refused => "refused",
            Cause::Reset => "reset",
            Cause::Tls => "tls",
            Cause::Timeout(_) => "timeout",
            Cause::Status(_) => "status",
            Cause::Protocol => "protocol",
            Cause::ErrorObject => "error_object",
            Cause::EndedEarly => "ended_early",
            Cause::NoTokens => "no_tokens",
            Cause::LocalLimit => "local_limit",
            Cause::Io => "io",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::NoAddress => f.write_str("no address for the host name"),
            Cause::Refused => f.write_str("connection refused"),
            Cause::Reset => f.write_str("connection closed by the server in the middle"),
            Cause::Tls => f.write_str("TLS failed"),
            Cause::Timeout(Limit::Connect) => f.write_str("timed out connecting"),
            Cause::Timeout(Limit::FirstToken) => f.write_str("timed out waiting for the first token"),
            Cause::Timeout(Limit::Gap) => f.write_str("timed out between two tokens"),
            Cause::Timeout(Limit::Request) => f.write_str("timed out"),
            Cause::Status(code) => write!(f, "HTTP status {code}"),
            Cause::Protocol => f.write_str("the response could not be parsed"),
            Cause::ErrorObject => f.write_str("the server reported an error inside the response"),
            Cause::EndedEarly => f.write_str("the stream ended before the answer was complete"),
            Cause::NoTokens => f.write_str("the answer had no tokens"),
            Cause::LocalLimit => f.write_str("a limit of this machine was hit"),
            Cause::Io => f.write_str("I/O error"),
        }
    }
}

impl Finish {
    /// From an API's `finish_reason` or `stop_reason`.
    pub fn from_reason(reason: &str) -> Finish {
        match reason {
            "stop" | "end_turn" | "stop_sequence" | "eos_token" | "eos" | "completed" => Finish::Stop,
            "length" | "max_tokens" | "max_output_tokens" | "incomplete" => Finish::Length,
            "tool_calls" | "function_call" | "tool_use" => Finish::ToolCalls,
            "content_filter" | "refusal" => Finish::ContentFilter,
            _ => Finish::Other,
        }
    }

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::Length => "length",
            Finish::ToolCalls => "tool_calls",
            Finish::ContentFilter => "content_filter",
            Finish::Other => "other",
            Finish::Unstated => "unstated",
        }
    }
}
