//! XXH64 with seed 0 of the three forms that chains are made of. Written out, since most of a chain's cost is the call: the
//! hash of a block doesn't wait for that of the one before, and so the processor works on several at once.

const P1: u64 = 0x9e37_79b1_85eb_ca87;
const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P3: u64 = 0x1656_67b1_9e37_79f9;
const P4: u64 = 0x85eb_ca77_c2b2_ae63;
const P5: u64 = 0x27d4_eb2f_1656_67c5;

/// Of token ids, four little-endian bytes each.
pub(super) fn tokens(tokens: &[u32]) -> u64 {
    let pair = |p: &[u32]| u64::from(p[0]) | u64::from(p[1]) << 32;
    let mut stripes = tokens.chunks_exact(8);
    let mut lanes = Lanes::new();
    for s in &mut stripes {
        lanes.eat([pair(&s[0..2]), pair(&s[2..4]), pair(&s[4..6]), pair(&s[6..8])]);
    }
    let mut h = lanes.end(tokens.len() >= 8).wrapping_add(4 * tokens.len() as u64);
    let mut pairs = stripes.remainder().chunks_exact(2);
    for p in &mut pairs {
        h = word(h, pair(p));
    }
    if let [last] = pairs.remainder() {
        h = (h ^ u64::from(*last).wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
    }
    avalanche(h)
}

/// Of bytes, a multiple of eight of them, and a word after them.
pub(super) fn words_and(bytes: &[u8], last: u64) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    debug_assert!(rest.is_empty());
    let mut stripes = words.chunks_exact(4);
    let mut lanes = Lanes::new();
    for s in &mut stripes {
        lanes.eat([s[0], s[1], s[2], s[3]].map(u64::from_le_bytes));
    }
    let rest = stripes.remainder();
    // The word after them may complete a last stripe.
    if let [a, b, c] = rest {
        let [a, b, c] = [*a, *b, *c].map(u64::from_le_bytes);
        lanes.eat([a, b, c, last]);
        return avalanche(lanes.end(true).wrapping_add(bytes.len() as u64 + 8));
    }
    let h = lanes.end(words.len() >= 4).wrapping_add(bytes.len() as u64 + 8);
    let h = rest.iter().fold(h, |h, w| word(h, u64::from_le_bytes(*w)));
    avalanche(word(h, last))
}

/// Of two words.
pub(super) fn pair(a: u64, b: u64) -> u64 {
    avalanche(word(word(P5.wrapping_add(16), a), b))
}

struct Lanes([u64; 4]);

impl Lanes {
    fn new() -> Lanes {
        Lanes([P1.wrapping_add(P2), P2, 0, 0u64.wrapping_sub(P1)])
    }

    #[inline]
    fn eat(&mut self, stripe: [u64; 4]) {
        for (lane, word) in self.0.iter_mut().zip(stripe) {
            *lane = round(*lane, word);
        }
    }

    /// `any`: whether there was a whole stripe.
    #[inline]
    fn end(&self, any: bool) -> u64 {
        if !any {
            return P5;
        }
        let [a, b, c, d] = self.0;
        let mut h = a.rotate_left(1);
        h = h.wrapping_add(b.rotate_left(7)).wrapping_add(c.rotate_left(12)).wrapping_add(d.rotate_left(18));
        for lane in self.0 {
            h = (h ^ round(0, lane)).wrapping_mul(P1).wrapping_add(P4);
        }
        h
    }
}

#[inline]
fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

#[inline]
fn word(h: u64, word: u64) -> u64 {
    (h ^ round(0, word)).rotate_left(27).wrapping_mul(P1).wrapping_add(P4)
}

#[inline]
fn avalanche(h: u64) -> u64 {
    let h = (h ^ h >> 33).wrapping_mul(P2);
    let h = (h ^ h >> 29).wrapping_mul(P3);
    h ^ h >> 32
}

#[cfg(test)]
mod tests {
    use twox_hash::XxHash64;

    #[test]
    fn it_is_xxh64() {
        let bytes: Vec<u8> = (0..400u32).flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        for n in 0..150 {
            let ids: Vec<u32> = bytes.chunks(4).take(n).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            assert_eq!(super::tokens(&ids), XxHash64::oneshot(0, &bytes[..4 * n]), "{n} tokens");
            let last = 0x0123_4567_89ab_cdef_u64 ^ n as u64;
            let more = [&bytes[..8 * n], &last.to_le_bytes()].concat();
            assert_eq!(super::words_and(&bytes[..8 * n], last), XxHash64::oneshot(0, &more), "{n} words");
        }
        assert_eq!(super::pair(7, 8), XxHash64::oneshot(0, &[7u64.to_le_bytes(), 8u64.to_le_bytes()].concat()));
    }
}
