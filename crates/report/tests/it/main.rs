//! Integration tests of `tailbound-report`: one binary.

mod capacity;
mod compare;
mod explain;
mod json;
mod make;
mod page;
mod rows;
mod run_page;
mod text;
