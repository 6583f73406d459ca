use std::net::SocketAddr;

/// Why a run or a single request could not even begin. What goes wrong with one request of a run is in its row instead.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The base URL cannot be used.
    #[error("read the URL {url:?}: {problem}")]
    Url {
        /// As given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A header cannot be sent. The value is not shown: it may be a key.
    #[error("use the header {name:?}: {problem}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The host name has no address.
    #[error("find an address for {host}: {problem}")]
    Resolve {
        /// The host name.
        host: String,
        /// What the resolver said.
        problem: String,
    },
    /// Certificates could not be read, or TLS not set up.
    #[error("set up TLS: {0}")]
    Tls(String),
    /// The plan needs more connections at once than this process may have descriptors.
    #[error(
        "open {needed} connections at once: this process may have {limit} file descriptors, and {reserved} are needed for other things \
         (raise it with `ulimit -n {suggested}`, or set --max-concurrency to {most} at most)"
    )]
    Descriptors {
        /// Connections the load may need at once.
        needed: u64,
        /// The limit after raising it as far as allowed.
        limit: u64,
        /// Descriptors in use, with some room.
        reserved: u64,
        /// What to raise it to.
        suggested: u64,
        /// The most that fit.
        most: u64,
    },
    /// The plan needs more connections at once than there are local ports to one address.
    #[error(
        "open {needed} connections at once to one address: there are {ports} local ports \
         (widen net.ipv4.ip_local_port_range, or set --max-concurrency to {ports} at most)"
    )]
    Ports {
        /// Connections the load may need at once.
        needed: u64,
        /// Local ports there are.
        ports: u64,
    },
    /// The system would not give a thread, an epoll instance or the like.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Something asked for is not permitted on this machine.
    #[error("{0}")]
    NotPermitted(String),
    /// A single request failed.
    #[error("{phase} {addr}: {problem}")]
    Exchange {
        /// What was being done: "connect to", "write to", "read from".
        phase: &'static str,
        /// The address.
        addr: SocketAddr,
        /// What happened.
        problem: String,
    },
}

pub(crate) fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> ClientError {
    move |source| ClientError::System { what, source }
}
