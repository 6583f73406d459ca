//! Where the real traces and official vectors lie that tests read; they are not part of the repository.
#![allow(clippy::print_stderr, reason = "only tests use it, and a skipped test says so")]

use std::path::PathBuf;

/// The data folder: `TAILBOUND_DATA`, or `../shared/data` beside the checkout.
fn root() -> PathBuf {
    std::env::var_os("TAILBOUND_DATA")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data").into(), PathBuf::from)
}

/// The text of a file of the data folder, `None` (with a line saying so) where there is none.
///
/// # Panics
/// With `CI=true`, where absence is a failure.
pub fn read(path: &str) -> Option<String> {
    let file = root().join(path);
    match std::fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{}: {error}", file.display());
            eprintln!("skipped: {}: {error}", file.display());
            None
        }
    }
}

/// All files of a folder of it whose names end so, by name; none (with a line saying so) where there is no such folder.
///
/// # Panics
/// As [`read`].
pub fn list(folder: &str, ending: &str) -> Vec<(String, String)> {
    let Ok(dir) = std::fs::read_dir(root().join(folder)) else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{folder} is missing");
        eprintln!("skipped: {folder} is missing");
        return Vec::new();
    };
    let mut names: Vec<String> =
        dir.filter_map(|e| e.ok()?.file_name().into_string().ok()).filter(|n| n.ends_with(ending)).collect();
    names.sort();
    names.into_iter().filter_map(|n| Some((n.clone(), read(&format!("{folder}/{n}"))?))).collect()
}

/// Where a folder of it lies, `None` (with a line saying so) if it isn't there.
///
/// # Panics
/// As [`read`].
pub fn folder(path: &str) -> Option<PathBuf> {
    let folder = root().join(path);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{} is missing", folder.display());
    eprintln!("skipped: {} is missing", folder.display());
    None
}
