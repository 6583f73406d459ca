use super::xxh;
use crate::request::Prompt;
use twox_hash::XxHash64;

/// Which of the published inputs a chain is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashInput {
    /// Bytes of the prompt, four to a token (2026-05).
    Chars,
    /// Token ids (2026-08).
    Tokens,
}

/// How a prompt is cut and hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    /// What of.
    pub input: HashInput,
    /// Tokens in a block; of bytes four times as many.
    pub block_tokens: u32,
    /// Most blocks.
    pub most_blocks: usize,
}

/// The published chain: h₀ = xxh64(model ‖ salt), then for each block, a partial last one too,
/// hᵢ = xxh64(bytes ‖ LE8(hᵢ₋₁)), or hᵢ = xxh64(LE8(xxh64(LE4 of the tokens)) ‖ LE8(hᵢ₋₁)).
///
/// A prompt shorter than one block has no hashes. Input that isn't there is replaced by the other.
pub fn hash_chain(how: &Hashing, model: &str, salt: Option<&str>, prompt: Prompt<'_>, out: &mut Vec<u64>) {
    let Prompt { text, tokens } = prompt;
    let block_tokens = how.block_tokens as usize;
    out.clear();
    let mut seed = XxHash64::with_seed(0);
    std::hash::Hasher::write(&mut seed, model.as_bytes());
    std::hash::Hasher::write(&mut seed, salt.unwrap_or("").as_bytes());
    let mut last = std::hash::Hasher::finish(&seed);
    let by_tokens = match how.input {
        HashInput::Chars => text.is_empty(),
        HashInput::Tokens => !tokens.is_empty(),
    };
    if by_tokens {
        if tokens.len() < block_tokens {
            return;
        }
        for block in tokens.chunks(block_tokens).take(how.most_blocks) {
            last = xxh::pair(xxh::tokens(block), last);
            out.push(last);
        }
        return;
    }
    let block_bytes = block_tokens * CHARS_PER_TOKEN;
    if text.len() < block_bytes {
        return;
    }
    for block in text.chunks(block_bytes).take(how.most_blocks) {
        last = bytes_hash(block, last);
        out.push(last);
    }
}

const CHARS_PER_TOKEN: usize = 4;

/// One hash for each item, whatever stands before it: media are found one by one.
pub(crate) fn media_chain(media: &[u64], out: &mut Vec<u64>) {
    out.clear();
    out.extend_from_slice(media);
}

fn bytes_hash(block: &[u8], before: u64) -> u64 {
    if block.len().is_multiple_of(8) {
        return xxh::words_and(block, before);
    }
    let mut hasher = XxHash64::with_seed(0);
    std::hash::Hasher::write(&mut hasher, block);
    std::hash::Hasher::write(&mut hasher, &before.to_le_bytes());
    std::hash::Hasher::finish(&hasher)
}
