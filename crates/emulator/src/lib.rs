//! A real HTTP/1.1 server around [`tailbound_engine`]: what a client of vLLM would meet, without a GPU.
//!
//! One thread and one `epoll` hold ten thousand streams; a token is one write. The engine's plan decides when each token
//! leaves; [`Config::truth_log`] tells when it was planned and when it left, so that a client's own figures can be checked.
//! What an answer says means nothing: it is short common words whose token count is known.

mod answer;
mod api;
mod builtin;
mod config;
mod error;
mod fault;
mod http;
mod kv_events;
mod metrics;
mod server;
mod stream;
mod tokenizer;
mod truth;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

pub use answer::AnswerLength;
pub use config::Config;
pub use error::EmulatorError;
pub use fault::Faults;
pub use kv_events::KvEventsConfig;
pub use tailbound_kv::Encoding;
pub use truth::{Quantiles, Summary};

use server::{Control, Server};

/// An emulator: [`Emulator::start`] for one on a thread of its own, [`Emulator::bind`] and [`Emulator::run`] for one on this thread.
pub struct Emulator {
    server: Server,
}

impl Emulator {
    /// Listens without answering yet. Clients may connect from now on; they are answered by [`Emulator::run`].
    ///
    /// # Errors
    /// A setting that is no good, an address that cannot be listened on, a truth log that cannot be made.
    pub fn bind(config: Config) -> Result<Emulator, EmulatorError> {
        Ok(Emulator { server: Server::bind(config)? })
    }

    /// Where it listens: the port is the real one where 0 was asked for.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Serves on this thread until `stop`, asked four times a second, says so; then gives up what is in flight.
    ///
    /// # Errors
    /// A truth log that could not be written.
    pub fn run(self, stop: impl Fn() -> bool) -> Result<Summary, EmulatorError> {
        self.server.run(stop)
    }

    /// Binds, and serves on a thread of its own until [`Handle::stop`].
    ///
    /// # Errors
    /// As [`Emulator::bind`].
    pub fn start(config: Config) -> Result<Handle, EmulatorError> {
        let server = Server::bind(config)?;
        let (addr, control) = (server.addr(), server.control());
        let thread = std::thread::Builder::new()
            .name("emulator".to_owned())
            .spawn(move || server.run(|| false))
            .map_err(|source| EmulatorError::System { what: "start the emulator's thread", source })?;
        Ok(Handle { addr, control, thread: Some(thread) })
    }
}

/// An emulator on a thread of its own. Dropping it stops it.
pub struct Handle {
    addr: SocketAddr,
    control: Arc<Control>,
    thread: Option<JoinHandle<Result<Summary, EmulatorError>>>,
}

impl Handle {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://host:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Stops it, gives up what is in flight, completes the truth log, and tells how late tokens were.
    ///
    /// # Errors
    /// A truth log that could not be written, or a panic of the emulator.
    pub fn stop(mut self) -> Result<Summary, EmulatorError> {
        self.control.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(EmulatorError::Panicked),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(thread) = self.thread.take() {
            // Nobody is left to hear how it went.
            let _ = thread.join();
        }
    }
}
