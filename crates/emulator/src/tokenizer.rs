//! Text to token ids and back: the built-in scheme, or a Hugging Face file.

use tailbound_token::TokenError;

use crate::builtin;

/// A tokenizer.
pub(crate) enum Tokenizer {
    Builtin,
    File(Box<tailbound_token::Tokenizer>),
}

impl Tokenizer {
    /// The ids of `text`; with `specials`, including what a file's tokenizer puts around a text (the built-in one puts nothing).
    pub(crate) fn encode(&self, text: &str, specials: bool) -> Result<Vec<u32>, TokenError> {
        match self {
            Tokenizer::Builtin => {
                let mut ids = Vec::new();
                builtin::encode(text, &mut ids);
                Ok(ids)
            }
            Tokenizer::File(tokenizer) => tokenizer.encode(text, specials),
        }
    }

    pub(crate) fn decode(&self, ids: &[u32]) -> Result<String, TokenError> {
        match self {
            Tokenizer::Builtin => Ok(builtin::decode(ids)),
            Tokenizer::File(tokenizer) => tokenizer.decode(ids, false),
        }
    }

    /// Every id is below this.
    pub(crate) fn vocabulary(&self) -> u32 {
        match self {
            Tokenizer::Builtin => builtin::VOCABULARY,
            Tokenizer::File(tokenizer) => {
                let added = tokenizer.special_ids().last().map_or(0, |id| id + 1);
                tokenizer.vocab_size().max(added)
            }
        }
    }
}
