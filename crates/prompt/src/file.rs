use crate::{Place, PromptError};
use std::io::ErrorKind;
use std::path::Path;

/// An error about a file.
pub(crate) fn wrong(path: &Path, place: Place, problem: impl Into<String>) -> PromptError {
    PromptError::File { path: path.to_owned(), place, problem: problem.into(), hint: String::new(), missing: false }
}

/// The text of a data file, without a byte order mark. What is commonly saved in its place is recognised and refused.
pub(crate) fn text(path: &Path) -> Result<String, PromptError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let missing = error.kind() == ErrorKind::NotFound;
            let problem = if missing { "no such file".into() } else { error.to_string() };
            return Err(PromptError::File {
                path: path.to_owned(),
                place: Place::Whole,
                problem,
                hint: String::new(),
                missing,
            });
        }
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        if error.as_bytes().starts_with(&[0x1f, 0x8b]) {
            return wrong(path, Place::Whole, "is compressed with gzip").hint("unpack it first");
        }
        wrong(path, Place::Byte(at as u64), "not UTF-8").hint("convert it, e.g. with iconv -t UTF-8")
    })?;
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    let start = text.trim_start();
    if start.is_empty() {
        return Err(wrong(path, Place::Whole, "is empty"));
    }
    if start.starts_with("version https://git-lfs") {
        return Err(
            wrong(path, Place::Whole, "is a Git LFS pointer, not data").hint("fetch the data with git lfs pull")
        );
    }
    if start.starts_with("<!DOCTYPE") || start.starts_with("<!doctype") || start.starts_with("<html") {
        return Err(wrong(path, Place::Whole, "is an HTML page, not data (a failed download?)"));
    }
    Ok(text)
}
