//! Why an emulator could not be started, or stopped by itself.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why there is no emulator. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// A setting that is no good.
    #[error("use these settings: {0}")]
    Config(String),
    /// The replica's settings are no good.
    #[error("set up the engine: {0}")]
    Engine(#[from] tailbound_engine::ConfigError),
    /// The tokenizer could not be used.
    #[error(transparent)]
    Tokenizer(#[from] tailbound_token::TokenError),
    /// The address could not be listened on.
    #[error("listen on {addr}: {source}")]
    Listen {
        /// Which.
        addr: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The truth log could not be made.
    #[error("create the truth log {}: {source}", path.display())]
    TruthLog {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system refused something else that it needs.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The emulator's thread panicked: a defect.
    #[error("keep the emulator running: its thread ended in a panic")]
    Panicked,
}
