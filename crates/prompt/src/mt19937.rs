//! MT19937 and what CPython and numpy draw from it, for orders that equal vLLM's.
//! Sources: Matsumoto & Nishimura 1998; CPython's `random` module; numpy's legacy `RandomState`.

const N: usize = 624;
const M: usize = 397;

pub(crate) struct Mt19937 {
    state: [u32; N],
    next: usize,
}

impl Mt19937 {
    /// As `random.seed(seed)`: the seed's 32-bit words as an array key.
    pub(crate) fn python(seed: u64) -> Mt19937 {
        let key: &[u32] = match (seed as u32, (seed >> 32) as u32) {
            (low, 0) => &[low],
            (low, high) => &[low, high],
        };
        let mut mt = Mt19937::from_word(19_650_218);
        let state = &mut mt.state;
        let (mut i, mut j) = (1, 0);
        for _ in 0..N.max(key.len()) {
            state[i] = (state[i] ^ (state[i - 1] ^ (state[i - 1] >> 30)).wrapping_mul(1_664_525))
                .wrapping_add(key[j])
                .wrapping_add(j as u32);
            i += 1;
            j = (j + 1) % key.len();
            if i == N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        for _ in 0..N - 1 {
            state[i] =
                (state[i] ^ (state[i - 1] ^ (state[i - 1] >> 30)).wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
            i += 1;
            if i == N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        mt
    }

    /// As `numpy.random.RandomState(seed)` for a seed of one word.
    pub(crate) fn numpy(seed: u32) -> Mt19937 {
        Mt19937::from_word(seed)
    }

    fn from_word(word: u32) -> Mt19937 {
        let mut state = [0; N];
        state[0] = word;
        for i in 1..N {
            let previous: u32 = state[i - 1];
            state[i] = (previous ^ (previous >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Mt19937 { state, next: N }
    }

    pub(crate) fn u32(&mut self) -> u32 {
        if self.next == N {
            self.refill();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn refill(&mut self) {
        for i in 0..N {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ odd;
        }
        self.next = 0;
    }

    /// `random._randbelow(n)`: the top bits, drawn again while they are too large.
    pub(crate) fn python_below(&mut self, n: u32) -> u32 {
        let bits = u32::BITS - n.leading_zeros();
        loop {
            let value = self.u32() >> (u32::BITS - bits);
            if value < n {
                return value;
            }
        }
    }

    /// `random.shuffle`.
    pub(crate) fn python_shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.python_below(i as u32 + 1) as usize);
        }
    }

    /// numpy's legacy `random_interval(most)`, in `0..=most`: the low bits under a mask, drawn again while they are too large.
    pub(crate) fn numpy_to(&mut self, most: u32) -> u32 {
        if most == 0 {
            return 0;
        }
        let mask = u32::MAX >> most.leading_zeros();
        loop {
            let value = self.u32() & mask;
            if value <= most {
                return value;
            }
        }
    }

    /// `RandomState.permutation(n)`.
    pub(crate) fn numpy_permutation(&mut self, n: u32) -> Vec<u32> {
        let mut items: Vec<u32> = (0..n).collect();
        for i in (1..items.len()).rev() {
            items.swap(i, self.numpy_to(i as u32) as usize);
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `random.seed(seed); l = list(range(20)); random.shuffle(l)` in CPython.
    #[test]
    fn shuffles_as_python() {
        #[rustfmt::skip]
        let expected: [(u64, [u32; 20]); 5] = [
            (0, [10, 18, 16, 14, 0, 17, 11, 2, 3, 9, 5, 7, 4, 19, 6, 15, 8, 1, 13, 12]),
            (1, [11, 5, 17, 19, 9, 0, 16, 1, 15, 6, 10, 13, 14, 12, 7, 3, 8, 2, 18, 4]),
            (42, [19, 5, 14, 4, 9, 13, 15, 18, 6, 12, 17, 10, 1, 11, 2, 16, 7, 8, 0, 3]),
            (4294967301, [16, 13, 8, 4, 1, 6, 18, 17, 3, 19, 7, 14, 12, 2, 10, 11, 0, 9, 15, 5]),
            (123456789012, [11, 17, 16, 5, 18, 15, 1, 10, 9, 6, 14, 7, 19, 2, 3, 13, 4, 8, 0, 12]),
        ];
        for (seed, want) in expected {
            let mut list: Vec<u32> = (0..20).collect();
            Mt19937::python(seed).python_shuffle(&mut list);
            assert_eq!(list, want, "seed {seed}");
        }
    }

    /// `random.seed(0); l = list(range(1000)); random.shuffle(l)`: past the first refill.
    #[test]
    fn shuffles_a_thousand_as_python() {
        let mut list: Vec<u64> = (0..1000).collect();
        Mt19937::python(0).python_shuffle(&mut list);
        assert_eq!((1..).zip(&list).map(|(i, x)| i * x).sum::<u64>(), 251_792_070);
    }

    /// `random.seed(0); [random.choice(range(7)) for _ in range(12)]`, and four `getrandbits(32)` of seed 42.
    #[test]
    fn draws_as_python() {
        let mut mt = Mt19937::python(0);
        let drawn: Vec<u32> = (0..12).map(|_| mt.python_below(7)).collect();
        assert_eq!(drawn, [6, 3, 6, 3, 0, 2, 4, 3, 3, 6, 6, 2]);
        let mut mt = Mt19937::python(42);
        assert_eq!([mt.u32(), mt.u32(), mt.u32(), mt.u32()], [2746317213, 478163327, 107420369, 3184935163]);
    }

    /// `RandomState(seed).choice(17, size=9, replace=False)` and `.choice(n, size=12, replace=True)` in numpy.
    #[test]
    fn draws_as_numpys_random_state() {
        let permuted = |seed| Mt19937::numpy(seed).numpy_permutation(17)[..9].to_vec();
        assert_eq!(permuted(0), [1, 6, 8, 9, 13, 4, 2, 14, 10]);
        assert_eq!(permuted(42), [0, 1, 5, 15, 11, 14, 8, 13, 2]);
        let drawn = |seed, n: u32| {
            let mut mt = Mt19937::numpy(seed);
            (0..12).map(|_| mt.numpy_to(n - 1)).collect::<Vec<u32>>()
        };
        assert_eq!(drawn(0, 5), [4, 0, 3, 3, 3, 1, 3, 2, 4, 0, 0, 4]);
        assert_eq!(drawn(0, 8), [4, 7, 5, 0, 3, 3, 3, 7, 1, 3, 5, 2]);
        assert_eq!(drawn(42, 8), [6, 3, 4, 6, 2, 7, 4, 4, 6, 1, 2, 6]);
    }
}
