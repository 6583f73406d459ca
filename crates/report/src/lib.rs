//! What people and programs read: the text report, result JSON, per-request files.
