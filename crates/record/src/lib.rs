//! The waist: one [`Row`] per request.
//!
//! A live client, a gateway and a simulation all end in rows of this one shape, and statistics, verdicts, comparisons and
//! pages are made from rows alone: they never know who measured.

mod chunks;
mod end;
pub mod log;
mod moments;
mod row;
pub mod server;

pub use chunks::{Chunk, Chunks};
pub use end::{Blame, Cause, End, Finish, Limit, Phase, Why};
pub use moments::{Moment, Moments};
pub use row::{Counts, Net, Row, StampSource};
