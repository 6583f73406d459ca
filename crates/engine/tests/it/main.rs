//! The engine from outside.

mod scheduling;
