//! Standard output is the result, and nothing else; this is the one place that writes it.

use crate::failure::{Failure, Outcome};
use std::collections::BTreeSet;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

static COLOR: OnceLock<bool> = OnceLock::new();

/// Decides once whether output is coloured: `auto` means a terminal, no NO_COLOR, and a TERM that isn't `dumb`.
pub fn set_color(choice: &str) {
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    let on = match choice {
        "always" => true,
        "never" => false,
        _ if set("NO_COLOR") => false,
        _ if set("CLICOLOR_FORCE") => true,
        _ => std::io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|t| t != "dumb"),
    };
    COLOR.get_or_init(|| on);
}

/// Whether output is coloured.
pub fn color() -> bool {
    COLOR.get().copied().unwrap_or(false)
}

/// Tells something beside the result, on standard error; each thing once, however many loads a command runs.
pub fn note(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned()) {
        eprintln!("note: {text}");
    }
}

/// Writes to standard output. A reader that went away (`| head`) is no error.
pub fn print(text: &str) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!("failed to write the result: {e}"))),
        _ => Ok(()),
    }
}
