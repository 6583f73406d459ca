use crate::TokenError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where the Hugging Face cache is, by the rules of `huggingface_hub`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hub {
    /// The folder that holds `models--ORG--NAME`; `None` if there is no home folder.
    pub cache: Option<PathBuf>,
    /// `HF_HUB_OFFLINE`: nothing may be downloaded.
    pub offline: bool,
}

/// Where a tokenizer comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A `tokenizer.json` given by path.
    File(PathBuf),
    /// The `tokenizer.json` of a folder.
    Folder(PathBuf),
    /// The `tokenizer.json` of a repository in the hub cache.
    Cached {
        /// `org/name`.
        name: String,
        /// The file.
        file: PathBuf,
    },
}

impl Source {
    /// The file itself.
    pub fn file(&self) -> &Path {
        match self {
            Source::File(file) | Source::Folder(file) | Source::Cached { file, .. } => file,
        }
    }
}

impl Hub {
    /// By this process's environment: `HF_HUB_CACHE` (or the older `HUGGINGFACE_HUB_CACHE`), else `HF_HOME/hub`, else
    /// `XDG_CACHE_HOME/huggingface/hub`, else `~/.cache/huggingface/hub`.
    pub fn from_env() -> Hub {
        Hub::from_vars(|name| std::env::var_os(name))
    }

    /// By any environment.
    pub fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Hub {
        let home = var("HOME").filter(|v| !v.is_empty()).map(PathBuf::from);
        let folder = |name: &str| {
            let value = PathBuf::from(var(name).filter(|v| !v.is_empty())?);
            match (value.strip_prefix("~"), &home) {
                (Ok(rest), Some(home)) => Some(home.join(rest)),
                _ => Some(value),
            }
        };
        let cache = folder("HF_HUB_CACHE")
            .or_else(|| folder("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| folder("HF_HOME").map(|home| home.join("hub")))
            .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("huggingface/hub")))
            .or_else(|| home.as_ref().map(|home| home.join(".cache/huggingface/hub")));
        let offline = var("HF_HUB_OFFLINE")
            .and_then(|v| v.into_string().ok())
            .is_some_and(|v| matches!(v.to_ascii_uppercase().as_str(), "1" | "ON" | "YES" | "TRUE"));
        Hub { cache, offline }
    }

    /// Where the cache keeps the repository `name`, if `name` can be one.
    pub fn folder(&self, name: &str) -> Option<PathBuf> {
        let cache = self.cache.as_ref().filter(|_| is_repository(name))?;
        Some(cache.join(format!("models--{}", name.replace('/', "--"))))
    }

    /// Finds what `--tokenizer` (or `--model`) names: a file, a folder with `tokenizer.json` in it, or a hub repository in the cache. What exists as
    /// a path is a path. Nothing is downloaded.
    ///
    /// # Errors
    /// With every place that was looked at.
    pub fn find(&self, name: &str) -> Result<Source, TokenError> {
        let path = Path::new(name);
        if path.is_dir() {
            let file = path.join("tokenizer.json");
            if file.is_file() {
                return Ok(Source::Folder(file));
            }
            let sentencepiece = path.join("tokenizer.model").is_file();
            return Err(TokenError::NoTokenizerJson { folder: path.to_owned(), sentencepiece });
        }
        if path.exists() {
            return Ok(Source::File(path.to_owned()));
        }
        if !is_repository(name) {
            return Err(TokenError::NoSuchPath(path.to_owned()));
        }
        let mut looked = Vec::new();
        if let Some(folder) = self.folder(name) {
            if let Some(file) = snapshot(&folder) {
                return Ok(Source::Cached { name: name.to_owned(), file });
            }
            looked.push(folder.join("snapshots/<revision>/tokenizer.json"));
        }
        Err(TokenError::NotFound { name: name.to_owned(), looked, offline: self.offline })
    }
}

/// The tokenizer of the revision `main`; without that ref, of the only snapshot there is.
fn snapshot(folder: &Path) -> Option<PathBuf> {
    let snapshots = folder.join("snapshots");
    if let Ok(revision) = std::fs::read_to_string(folder.join("refs/main")) {
        let file = snapshots.join(revision.trim()).join("tokenizer.json");
        return file.is_file().then_some(file);
    }
    let mut files = std::fs::read_dir(snapshots)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join("tokenizer.json")))
        .filter(|file| file.is_file());
    let only = files.next()?;
    files.next().is_none().then_some(only)
}

/// `name` or `org/name`, of the characters the hub allows.
fn is_repository(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let part_ok = |part: &&str| {
        !part.is_empty()
            && !part.starts_with(['.', '-', '~'])
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    parts.len() <= 2 && parts.iter().all(part_ok) && !name.ends_with(".json") && !name.contains("--")
}
