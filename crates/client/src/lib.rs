//! The live load: a measuring client that does not book its own delays as the server's.
//!
//! [`run`] drives a [`Schedule`] (a [`Load`](tailbound_workload::Load), mostly) against a [`Target`] and turns every request into a
//! [`Row`](tailbound_record::Row). Each loop is one thread with its own `epoll` and its own connections:
//!
//! 1. **Pacing.** The pacer's thread wakes the load ahead of each arrival and posts what is due soon; the loop sends it on its nanosecond,
//!    between any two reads. Lateness is noted for every request.
//! 2. **Stamps.** A read is one `recvmsg` whose kernel stamp is mapped to the monotonic clock. Its bytes are parsed at once, so every
//!    event carries the time and number of the read that completed it.
//! 3. **Gathering.** Since the stamp is the kernel's, the loop lets readiness pile up for 200 µs between batches of reads. It waits on
//!    its own letter box meanwhile, so no send is delayed.
//!
//! **Why not hyper.** HTTP/1.1 here is our own reader ([`httparse`] for heads) and writer over our own sockets. What this client exists
//! for is knowing which read brought which byte, at the least cost an event: with hyper and a runtime in between, a read passes through
//! wakers, a task queue and a buffer of theirs, at about twice the cost of the system calls alone. The reader is strict, has no I/O, and
//! is tested over every split of its input. `rustls` is used without I/O of its own for the same reason.
//!
//! HTTP/2 is ours for the same reason, and used the same way.
//!
//! One connection carries one request at a time; there is no cap on connections, no hidden queue, no silent retry, no proxy from the
//! environment. A request is sent a second time only if a kept-alive connection turned out closed before a byte of an answer; that is counted.

mod acks;
mod config;
mod conn;
mod control;
mod error;
mod fetch;
mod h1;
mod h2;
mod http;
mod job;
mod lane;
mod log;
mod pacer;
mod request;
mod run;
mod schedule;
mod target;
mod tls;

pub use config::{Acks, Config, Timeouts};
pub use control::{Control, Progress};
pub use error::ClientError;
pub use fetch::{Limits, Reply, fetch, fetch_within};
pub use log::{Late, RunLog};
pub use request::{Request, Requests};
pub use run::{Probe, one, probe, run};
pub use schedule::Schedule;
pub use target::{Header, Target, Trust};
