//! Traces of LLM serving traffic: read exactly, described, fitted, generated, transformed, written.
//!
//! Every format becomes the same [`Row`]s, and every row read is accounted for ([`Accounting`]). Readers stream: a trace
//! needs no more memory than its rows, and [`describe()`] needs less. What a format does not tell stays unknown.

mod account;
mod collect;
mod context;
mod conversations;
pub mod describe;
mod detect;
mod error;
mod formats;
pub mod generate;
mod hash;
mod items;
mod num;
mod options;
mod parents;
mod reader;
mod row;
pub mod servegen;
mod source;
mod stamp;
pub mod transform;
mod turns;
mod write;

pub use account::{Accounting, Drop, Notice, Seen};
pub use collect::Trace;
pub use conversations::{ConversationFigures, Conversations};
pub use describe::{Description, describe, describe_rows};
pub use detect::Format;
pub use error::{Error, Refusal};
pub use formats::PerMinute;
pub use options::{Columns, Failures, Options, Unit};
pub use reader::{Reader, open, read};
pub use row::{Body, Clock, Media, MediaKind, Message, More, Name, Names, Row};
pub use source::FileBytes;
pub use write::{Output, write};
