//! Names that come from outside are kept as 64 bits: clients invent any number of them.

use std::collections::HashMap;
use twox_hash::XxHash64;

/// A map that is the same in every run.
pub(crate) type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// What stands for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(pub(crate) u64);

impl Key {
    pub(crate) fn of(name: &str) -> Key {
        Key(XxHash64::oneshot(0, name.as_bytes()))
    }
}
