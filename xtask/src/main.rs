//! Developer chores: `cargo xtask arrows` checks the direction of dependencies, `cargo xtask licences` the licences of everything we link.
#![allow(clippy::print_stdout)]

mod arrows;
mod licences;
mod metadata;

use metadata::Metadata;
use std::process::ExitCode;

fn main() -> ExitCode {
    let chore = std::env::args().nth(1).unwrap_or_default();
    let complaints = match chore.as_str() {
        "arrows" => Metadata::read().map(|m| m.arrow_complaints()),
        "licences" => Metadata::read().map(|m| licences::complaints(&m)),
        _ => Err("usage: cargo xtask arrows|licences".into()),
    };
    match complaints {
        Ok(list) if list.is_empty() => {
            println!("{chore}: ok");
            ExitCode::SUCCESS
        }
        Ok(list) => {
            list.iter().for_each(|line| println!("{chore}: {line}"));
            ExitCode::FAILURE
        }
        Err(why) => {
            println!("{why}");
            ExitCode::from(2)
        }
    }
}
