use crate::TokenError;
use std::path::{Path, PathBuf};
use tokenizers::PostProcessor;

/// A Hugging Face tokenizer. Shared between threads by reference.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    path: PathBuf,
    vocab_size: u32,
    special_ids: Vec<u32>,
    specials_added: u32,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`. Its own truncation and padding are switched off: a text's tokens are all of its tokens.
    ///
    /// # Errors
    /// When the file can't be read or isn't a tokenizer.
    pub fn load(path: &Path) -> Result<Tokenizer, TokenError> {
        let bytes = std::fs::read(path).map_err(|source| TokenError::Read { path: path.to_owned(), source })?;
        Tokenizer::parse(&bytes, path)
    }

    /// As [`Tokenizer::load`], from the file's bytes; `path` is for messages.
    ///
    /// # Errors
    /// When the bytes aren't a tokenizer.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Tokenizer, TokenError> {
        let wrong = |message: String| TokenError::Parse { path: path.to_owned(), message };
        let mut inner = tokenizers::Tokenizer::from_bytes(bytes).map_err(|e| wrong(e.to_string()))?;
        inner.with_truncation(None).map_err(|e| wrong(e.to_string()))?;
        inner.with_padding(None);
        let mut special_ids: Vec<u32> =
            inner.get_added_tokens_decoder().into_iter().filter(|(_, token)| token.special).map(|(id, _)| id).collect();
        special_ids.sort_unstable();
        let specials_added = inner.get_post_processor().map_or(0, |post| post.added_tokens(false)) as u32;
        let vocab_size = inner.get_vocab_size(false) as u32;
        Ok(Tokenizer { inner, path: path.to_owned(), vocab_size, special_ids, specials_added })
    }

    /// The ids of `text`; with `specials`, including those the tokenizer puts around a text (BOS …).
    ///
    /// # Errors
    /// When the tokenizer's model refuses the text (an unknown word without an unknown token).
    pub fn encode(&self, text: &str, specials: bool) -> Result<Vec<u32>, TokenError> {
        match self.inner.encode_fast(text, specials) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(e) => Err(self.wrong("encode a text", e.to_string())),
        }
    }

    /// How many ids `text` has.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn count(&self, text: &str, specials: bool) -> Result<u32, TokenError> {
        match self.inner.encode_fast(text, specials) {
            Ok(encoding) => Ok(encoding.len() as u32),
            Err(e) => Err(self.wrong("encode a text", e.to_string())),
        }
    }

    /// The text of `ids`; special tokens are left out if `skip_specials`. Ids the vocabulary doesn't have are left out.
    ///
    /// # Errors
    /// When the decoder refuses.
    pub fn decode(&self, ids: &[u32], skip_specials: bool) -> Result<String, TokenError> {
        self.inner.decode(ids, skip_specials).map_err(|e| self.wrong("decode ids", e.to_string()))
    }

    /// Entries of the model's vocabulary, without tokens added to it (transformers' `vocab_size`).
    pub fn vocab_size(&self) -> u32 {
        self.vocab_size
    }

    /// Ids of the special tokens, ascending.
    pub fn special_ids(&self) -> &[u32] {
        &self.special_ids
    }

    /// How many tokens a single text gets around it when encoded with specials.
    pub fn num_special_tokens_to_add(&self) -> u32 {
        self.specials_added
    }

    /// The id of a token by its exact text (`<s>`).
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The vocabulary's own spelling of an id (`Ġthe`, `▁the`).
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// Where it came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn wrong(&self, what: &'static str, message: String) -> TokenError {
        TokenError::Use { what, path: self.path.clone(), message }
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("path", &self.path)
            .field("vocab_size", &self.vocab_size)
            .finish_non_exhaustive()
    }
}
