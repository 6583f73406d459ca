//! Servers and benchmarks as commands: start a server, know when it is ready or dead, leave nothing of it behind; walk the
//! product of parameters in vLLM's folders; choose the levels of load worth measuring.

mod command;
pub mod explore;
pub mod layout;
mod params;
pub mod python;
mod server;
mod split;
mod table;

pub use command::{Step, StepError, complaint};
pub use params::{Links, NAME, Params, ParamsError};
pub use server::{Server, ServerCommand, ServerError, address};
pub use split::{SplitError, join, split};
pub use table::csv;
