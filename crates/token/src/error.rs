use std::path::PathBuf;

/// Why there is no tokenizer.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Neither a path nor a name in the hub cache.
    #[error("find a tokenizer called {name:?}: no such file or folder, and {}", not_cached(.looked, .offline))]
    NotFound {
        /// What the user gave.
        name: String,
        /// Where the hub cache would have had it.
        looked: Vec<PathBuf>,
        /// Whether `HF_HUB_OFFLINE` forbids a download.
        offline: bool,
    },
    /// A path that isn't there, and can't be a hub name.
    #[error("find a tokenizer at {}: no such file or folder", .0.display())]
    NoSuchPath(PathBuf),
    /// A folder without `tokenizer.json`.
    #[error(
        "find tokenizer.json in {}: {}",
        .folder.display(),
        if *.sentencepiece { "it has only a SentencePiece tokenizer.model, which must be converted first (transformers' save_pretrained writes tokenizer.json)" } else { "no such file" }
    )]
    NoTokenizerJson {
        /// The folder.
        folder: PathBuf,
        /// Whether it holds a `tokenizer.model`.
        sentencepiece: bool,
    },
    /// The file could not be read.
    #[error("read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a tokenizer.
    #[error("parse {} as a Hugging Face tokenizer: {message}", .path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        message: String,
    },
    /// A text could not be encoded or ids not decoded.
    #[error("{what} with {}: {message}", .path.display())]
    Use {
        /// `encode a text` or `decode ids`.
        what: &'static str,
        /// The tokenizer's file.
        path: PathBuf,
        /// What was wrong.
        message: String,
    },
}

fn not_cached(looked: &[PathBuf], offline: &bool) -> String {
    let places: Vec<String> = looked.iter().map(|path| path.display().to_string()).collect();
    let offline = if *offline { " (HF_HUB_OFFLINE is set, so nothing is downloaded)" } else { "" };
    match places.is_empty() {
        true => format!("no home folder to look for a Hugging Face cache in{offline}"),
        false => format!("not in the Hugging Face cache: looked for {}{offline}", places.join(", ")),
    }
}
