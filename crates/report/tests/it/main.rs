//! Integration tests of `tailbound-report`: one binary.

mod explain;
mod json;
mod make;
mod page;
mod text;
