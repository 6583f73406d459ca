//! Block hashes that other programs have published, for talking to them. Our own is [`crate::BlockHash`].

use sha2::{Digest, Sha256};

/// vLLM's `sha256_cbor`: SHA-256 of the canonical CBOR of (parent, tokens, extra keys).
pub mod sha256_cbor {
    use super::*;

    /// What stands for the parent of a first block: the hash of `PYTHONHASHSEED` as a text.
    pub fn none_hash(seed: &str) -> [u8; 32] {
        let mut cbor = Vec::new();
        text(&mut cbor, seed);
        Sha256::digest(&cbor).into()
    }

    /// The hash of a block; `extra` are adapter, media and salt.
    pub fn block(parent: &[u8; 32], tokens: &[u32], extra: &[&str]) -> [u8; 32] {
        let mut cbor = vec![0x83];
        head(&mut cbor, 2, parent.len() as u64);
        cbor.extend_from_slice(parent);
        self::tokens(&mut cbor, tokens);
        self::extra(&mut cbor, extra);
        Sha256::digest(&cbor).into()
    }

    /// What events with integer hashes carry of it.
    pub fn short(hash: &[u8; 32]) -> u64 {
        hash[24..].iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
    }
}

/// llm-d's keys (2025-12): 64-bit FNV-1a of the canonical CBOR of (parent, tokens, extra).
pub mod fnv_cbor {
    use super::*;

    /// What stands for the parent of a first block.
    pub fn init(seed: &str) -> u64 {
        fnv1a(seed.as_bytes())
    }

    /// The key of a block.
    pub fn block(parent: u64, tokens: &[u32], extra: &[&str]) -> u64 {
        let mut cbor = vec![0x83];
        head(&mut cbor, 0, parent);
        self::tokens(&mut cbor, tokens);
        self::extra(&mut cbor, extra);
        fnv1a(&cbor)
    }

    fn fnv1a(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
    }
}

fn tokens(out: &mut Vec<u8>, tokens: &[u32]) {
    head(out, 4, tokens.len() as u64);
    for token in tokens {
        head(out, 0, u64::from(*token));
    }
}

fn extra(out: &mut Vec<u8>, extra: &[&str]) {
    if extra.is_empty() {
        return out.push(0xf6);
    }
    head(out, 4, extra.len() as u64);
    for one in extra {
        text(out, one);
    }
}

fn text(out: &mut Vec<u8>, t: &str) {
    head(out, 3, t.len() as u64);
    out.extend_from_slice(t.as_bytes());
}

/// CBOR's shortest head: a major type and a number.
fn head(out: &mut Vec<u8>, major: u8, n: u64) {
    let major = major << 5;
    match n {
        0..24 => out.push(major | n as u8),
        24..0x100 => out.extend_from_slice(&[major | 24, n as u8]),
        0x100..0x1_0000 => {
            out.push(major | 25);
            out.extend_from_slice(&(n as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(major | 26);
            out.extend_from_slice(&(n as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend_from_slice(&n.to_be_bytes());
        }
    }
}
