//! Block hashes and KV-cache events.
