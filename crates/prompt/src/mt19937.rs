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
