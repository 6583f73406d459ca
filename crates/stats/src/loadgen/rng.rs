//! mt19937, the generator behind every random choice LoadGen makes (Matsumoto and Nishimura, 1998).

const N: usize = 624;
const M: usize = 397;

/// The 32-bit Mersenne Twister, seeded as `std::mt19937` is.
#[derive(Clone, Debug)]
pub struct Mt19937 {
    state: [u32; N],
    next: usize,
}

impl Mt19937 {
    /// `std::mt19937(seed)`: LoadGen's seeds have 64 bits and the constructor keeps the low 32.
    pub fn new(seed: u64) -> Mt19937 {
        let mut state = [0u32; N];
        state[0] = seed as u32;
        for i in 1..N {
            let previous = state[i - 1];
            state[i] = (previous ^ (previous >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Mt19937 { state, next: N }
    }

    /// The generator seeded with an array of words, as the reference `init_by_array` does (CPython's `random.seed`).
    pub fn from_key(key: &[u32]) -> Mt19937 {
        let mut rng = Mt19937::new(19_650_218);
        let state = &mut rng.state;
        let (mut i, mut j) = (1, 0);
        for _ in 0..N.max(key.len()) {
            let mixed = (state[i - 1] ^ (state[i - 1] >> 30)).wrapping_mul(1_664_525);
            state[i] = (state[i] ^ mixed).wrapping_add(key[j]).wrapping_add(j as u32);
            i += 1;
            j += 1;
            if i >= N {
                state[0] = state[N - 1];
                i = 1;
            }
            if j >= key.len() {
                j = 0;
            }
        }
        for _ in 1..N {
            let mixed = (state[i - 1] ^ (state[i - 1] >> 30)).wrapping_mul(1_566_083_941);
            state[i] = (state[i] ^ mixed).wrapping_sub(i as u32);
            i += 1;
            if i >= N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        rng
    }

    /// The next 32 tempered bits.
    pub fn u32(&mut self) -> u32 {
        if self.next == N {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn twist(&mut self) {
        for i in 0..N {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_thousandth_number_is_the_one_the_c_plus_plus_standard_names() {
        let mut rng = Mt19937::new(5489);
        let last = (0..10_000).map(|_| rng.u32()).last();
        assert_eq!(last, Some(4_123_659_995));
    }

    #[test]
    fn only_the_low_32_bits_of_a_seed_count() {
        assert_eq!(Mt19937::new(7).u32(), Mt19937::new(7 + (9 << 32)).u32());
        assert_ne!(Mt19937::new(7).u32(), Mt19937::new(8).u32());
    }
}
