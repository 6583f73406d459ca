//! Prompts that are what they claim to be: data sets in, request texts or token ids of known length out.
//!
//! [`build`] turns a [`DataSet`] and [`Options`] into a [`PromptSet`] before the run's clock starts. A synthetic prompt of n tokens is n tokens
//! for the server: it is made of words that are one token each, and counted again by the tokenizer (or by the server) before it is used. What can't be
//! known exactly is said in the set's notes, and its length is `None`.

mod build;
mod burstgpt;
mod count;
mod custom;
mod drawn;
mod error;
mod file;
mod lexicon;
mod make;
mod mt19937;
mod order;
mod prefix_repetition;
mod random;
mod rows;
mod set;
mod sharegpt;

pub use build::build;
pub use burstgpt::BurstGpt;
pub use count::{CountFn, Counting};
pub use custom::Custom;
pub use drawn::{Drawn, LogNormal};
pub use error::{Place, PromptError};
pub use prefix_repetition::PrefixRepetition;
pub use random::{Random, RangeRatio};
pub use rows::{Asked, Content, Rows};
pub use set::{Body, Compat, DataSet, Form, Options, Prompt, PromptSet, TooLong};
pub use sharegpt::ShareGpt;
