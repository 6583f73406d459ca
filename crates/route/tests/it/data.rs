//! Where the measured data lies; it is not part of the repository.

use std::path::PathBuf;

/// The text of a file of the data folder, `None` (with a line saying so) where there is none; in CI that is a failure.
pub fn read(path: &str) -> Option<String> {
    let root = std::env::var_os("TAILBOUND_DATA")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data").into(), PathBuf::from);
    let file = root.join(path);
    match std::fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{}: {error}", file.display());
            eprintln!("skipped: {}: {error}", file.display());
            None
        }
    }
}

/// All files of a folder that end so, by name.
pub fn list(folder: &str, ending: &str) -> Vec<(String, String)> {
    let root = std::env::var_os("TAILBOUND_DATA")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data").into(), PathBuf::from);
    let Ok(dir) = std::fs::read_dir(root.join(folder)) else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{folder} is missing");
        eprintln!("skipped: {folder} is missing");
        return Vec::new();
    };
    let mut names: Vec<String> =
        dir.filter_map(|e| e.ok()?.file_name().into_string().ok()).filter(|n| n.ends_with(ending)).collect();
    names.sort();
    names.into_iter().filter_map(|n| Some((n.clone(), read(&format!("{folder}/{n}"))?))).collect()
}
