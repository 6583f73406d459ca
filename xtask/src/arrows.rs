//! Which of our crates may use which. The table is the architecture; `cargo xtask arrows` and a test hold the code to it.

/// `(crate, what it may depend on)`, without the `tailbound-` prefix. A crate that isn't listed fails the check.
pub const ALLOWED: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("kv", &[]),
    ("parquet", &[]),
    ("token", &[]),
    ("testdata", &[]),
    ("record", &["clock"]),
    ("wire", &["record"]),
    ("os", &["clock"]),
    ("workload", &["clock", "record"]),
    ("stats", &["clock", "record"]),
    ("engine", &["clock", "kv"]),
    ("route", &["clock", "kv"]),
    ("trace", &["clock", "workload"]),
    ("prompt", &["clock", "workload", "token"]),
    ("sim", &["clock", "record", "workload", "trace", "kv", "engine", "route"]),
    ("report", &["clock", "record", "stats"]),
    ("client", &["clock", "record", "workload", "wire", "os"]),
    ("sweep", &["clock", "os", "client"]),
    ("emulator", &["clock", "record", "engine", "kv", "wire", "token", "os"]),
];

/// Crates that decide and so must not be able to do I/O: none of these may appear among their dependencies, however deep.
pub const PURE: &[&str] =
    &["clock", "record", "workload", "trace", "stats", "wire", "kv", "engine", "route", "sim", "prompt"];

/// What "I/O" means for [`PURE`].
pub const IO_CRATES: &[&str] = &["tokio", "hyper", "mio", "socket2", "rustix", "tailbound-os", "rand"];
