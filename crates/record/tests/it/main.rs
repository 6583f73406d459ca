//! The log of a run, read back after every kind of death.

mod log;
