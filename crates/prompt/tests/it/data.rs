//! Where the shared data is, and what several tests need.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tailbound_clock::Seed;
use tailbound_prompt::{Body, Counting, DataSet, Options, Prompt, PromptSet, build};
use tailbound_token::Tokenizer;

/// A file of the shared data; `None` (with a line on stderr) if it isn't there, which CI doesn't accept.
pub fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("TAILBOUND_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let file = root.join(path);
    if file.exists() {
        return Some(file);
    }
    assert!(std::env::var("CI").is_err(), "{} is missing", file.display());
    eprintln!("skipped: no {}", file.display());
    None
}

/// The byte-level BPE tokenizer of SmolLM2.
pub fn tokenizer() -> Option<&'static Tokenizer> {
    static TOKENIZER: OnceLock<Option<Tokenizer>> = OnceLock::new();
    TOKENIZER.get_or_init(|| Some(Tokenizer::load(&shared("engines/tokenizer.json")?).unwrap())).as_ref()
}

pub fn options<'a>(count: u32, seed: u64, tokenizer: &'a Tokenizer) -> Options<'a> {
    Options::new(Some(count), Seed(seed), Counting::Tokenizer(tokenizer))
}

pub fn text(prompt: &Prompt) -> &str {
    match &prompt.body {
        Body::Text(text) => text,
        other => panic!("not a text: {other:?}"),
    }
}

/// The error of a set that can't be built.
pub fn refused(set: &DataSet, options: &Options<'_>) -> String {
    match build(set, options) {
        Ok(PromptSet { prompts, .. }) => panic!("built {} prompts", prompts.len()),
        Err(error) => error.to_string(),
    }
}

pub fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A file of this test with the given content, in a folder of its own.
pub fn written(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tailbound-prompt-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}
