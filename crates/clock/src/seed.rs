use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng};

/// The root of a run's randomness.
///
/// Each use takes its own stream by name, so that drawing one more number in one place moves nothing in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream called `name`: ChaCha8 keyed by the seed, on the stream number FNV-1a(name). The same on every machine
    /// and in every version.
    pub fn stream(self, name: &str) -> Rng {
        self.numbered(name, 0)
    }

    /// The `index`-th stream of that name (one per client, per request …), independent of all the others.
    pub fn numbered(self, name: &str, index: u64) -> Rng {
        let mut key = [0u8; 32];
        key[..8].copy_from_slice(&self.0.to_le_bytes());
        key[8..16].copy_from_slice(&index.to_le_bytes());
        let mut inner = ChaCha8Rng::from_seed(key);
        inner.set_stream(fnv1a(name.as_bytes()));
        Rng { inner }
    }
}

/// A seeded stream of random numbers. Floating-point results use only + − × ÷ √ and `libm`, so they are the same everywhere.
#[derive(Clone, Debug)]
pub struct Rng {
    inner: ChaCha8Rng,
}

impl Rng {
    /// 64 uniform bits.
    pub fn u64(&mut self) -> u64 {
        self.inner.next_u64()
    }

    /// Uniform in `[0, 1)`, 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..n` without bias (Lemire's multiply and reject). `n` must not be zero.
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        let reject_under = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.u64()) * u128::from(n);
            if wide as u64 >= reject_under {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Uniform in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high);
        match (high - low).checked_add(1) {
            Some(span) => low + self.below(span),
            None => self.u64(),
        }
    }

    /// Exponential with mean 1, by inversion.
    pub fn exponential(&mut self) -> f64 {
        -libm::log1p(-self.unit())
    }

    /// Standard normal, by Marsaglia's polar method (the second value of each pair is dropped, so that a stream has no hidden state).
    pub fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.unit() - 1.0;
            let y = 2.0 * self.unit() - 1.0;
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(s) / s);
            }
        }
    }

    /// Gamma with the given shape (> 0) and mean `shape` (scale 1): Marsaglia and Tsang (2000); shapes under 1 by their boost.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        debug_assert!(shape > 0.0);
        if shape < 1.0 {
            let boost = libm::pow(1.0 - self.unit(), 1.0 / shape);
            return self.gamma(shape + 1.0) * boost;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            if v <= 0.0 {
                continue;
            }
            let v = v * v * v;
            let u = 1.0 - self.unit();
            if libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }

    /// Fisher–Yates, in place.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

const fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(mut draw: impl FnMut() -> f64, n: usize) -> (f64, f64) {
        let xs: Vec<f64> = (0..n).map(|_| draw()).collect();
        let mean = xs.iter().sum::<f64>() / n as f64;
        let var = xs.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n as f64;
        (mean, var)
    }

    #[test]
    fn a_stream_is_fixed_by_seed_and_name() {
        let a: Vec<u64> = std::iter::repeat_with({
            let mut r = Seed(7).stream("arrivals");
            move || r.u64()
        })
        .take(4)
        .collect();
        let b: Vec<u64> = std::iter::repeat_with({
            let mut r = Seed(7).stream("arrivals");
            move || r.u64()
        })
        .take(4)
        .collect();
        assert_eq!(a, b);
        assert_ne!(a[0], Seed(7).stream("lengths").u64());
        assert_ne!(a[0], Seed(8).stream("arrivals").u64());
        assert_ne!(a[0], Seed(7).numbered("arrivals", 1).u64());
    }

    #[test]
    fn gamma_has_its_mean_and_variance() {
        for shape in [0.3, 1.0, 4.5] {
            let mut rng = Seed(1).stream("gamma");
            let (mean, var) = moments(|| rng.gamma(shape), 200_000);
            assert!((mean / shape - 1.0).abs() < 0.02, "{shape}: mean {mean}");
            assert!((var / shape - 1.0).abs() < 0.05, "{shape}: variance {var}");
        }
    }

    #[test]
    fn normal_and_exponential_have_their_moments() {
        let mut rng = Seed(2).stream("n");
        let (mean, var) = moments(|| rng.normal(), 200_000);
        assert!(mean.abs() < 0.01 && (var - 1.0).abs() < 0.02);
        let (mean, var) = moments(|| rng.exponential(), 200_000);
        assert!((mean - 1.0).abs() < 0.01 && (var - 1.0).abs() < 0.03);
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut rng = Seed(3).stream("below");
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[rng.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (9_500..10_500).contains(&n)), "{seen:?}");
    }
}
