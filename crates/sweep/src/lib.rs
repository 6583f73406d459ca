//! Servers and benchmarks as commands: start a server, know when it is ready or dead, leave nothing of it behind; walk the
//! product of parameters; know what of it is done.

mod server;

pub use server::Server;
pub use server::{ServerCommand, ServerError, address};
