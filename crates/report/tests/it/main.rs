//! Integration tests of `tailbound-report`: one binary.

mod compare;
mod explain;
mod json;
mod make;
mod page;
mod text;
