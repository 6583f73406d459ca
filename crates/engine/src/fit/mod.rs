//! Learning a step law from what a real engine was seen to do: the same requests go through the model, and the law is moved
//! until the model's times are the measured ones.

mod closed;
mod open;
mod replay;
mod squares;

pub use closed::{Closed, Means};
pub use open::{Asked, Errors, FitError, Learnt, learn};
pub use squares::{Fitted, Stop, least_squares};
