use std::num::NonZeroU64;

/// The identity of a full block: its tokens, everything before them, and what separates caches (salt, adapter).
///
/// Tailbound's own 64-bit chain, the same on every machine and in every version; engines have theirs (vLLM: SHA-256 of
/// CBOR), which a router learns from events. Never zero, so that an `Option` of it is as small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct BlockHash(NonZeroU64);

/// Odd constants with balanced bits (the fractional parts of √2, √3, √5 and √7, made odd).
const K: [u64; 4] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1];

impl BlockHash {
    /// From a number; zero is mapped to another value.
    pub fn new(hash: u64) -> BlockHash {
        BlockHash(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MAX))
    }

    /// The start of a chain: requests share blocks only under the same salt and adapter.
    pub fn root(salt: Option<u64>, lora: Option<u32>) -> BlockHash {
        let salted = salt.map_or(K[0], |s| fold(s ^ K[1], K[2]));
        BlockHash::new(lora.map_or(salted, |l| fold(salted ^ u64::from(l), K[3])))
    }

    /// The next block of the chain, holding `tokens`.
    pub fn child(self, tokens: &[u32]) -> BlockHash {
        let mut h = self.0.get() ^ fold(tokens.len() as u64 ^ K[0], K[1]);
        let pair = |a: u32, b: u32| u64::from(a) | u64::from(b) << 32;
        let mut fours = tokens.chunks_exact(4);
        for four in &mut fours {
            h = fold(h ^ pair(four[0], four[1]), K[2] ^ pair(four[2], four[3]));
        }
        for token in fours.remainder() {
            h = fold(h ^ u64::from(*token), K[3]);
        }
        BlockHash::new(fold(h ^ K[3], K[1]))
    }

    /// The hash as a number.
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

/// Both halves of the 128-bit product, folded; `a` is kept in the result, so that a zero product does not swallow it.
fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ ((wide >> 64) as u64) ^ a.rotate_left(32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn order_length_parent_salt_and_adapter_all_count() {
        let root = BlockHash::root(None, None);
        let hashes = [
            root,
            BlockHash::root(Some(0), None),
            BlockHash::root(Some(1), None),
            BlockHash::root(None, Some(0)),
            BlockHash::root(Some(0), Some(0)),
            root.child(&[]),
            root.child(&[0]),
            root.child(&[0, 0]),
            root.child(&[0, 0, 0]),
            root.child(&[1, 2]),
            root.child(&[2, 1]),
            root.child(&[1]).child(&[2]),
        ];
        assert_eq!(hashes.iter().collect::<BTreeSet<_>>().len(), hashes.len());
    }

    #[test]
    fn small_blocks_do_not_collide() {
        let root = BlockHash::root(None, None);
        let mut seen = BTreeSet::new();
        for a in 0..300 {
            for b in 0..300 {
                assert!(seen.insert(root.child(&[a, b])));
            }
        }
    }

    #[test]
    fn the_chain_is_fixed() {
        let chain = BlockHash::root(Some(7), Some(3)).child(&[1, 2, 3, 4]).child(&[5, 6, 7, 8]);
        assert_eq!(chain, BlockHash::root(Some(7), Some(3)).child(&[1, 2, 3, 4]).child(&[5, 6, 7, 8]));
    }
}
