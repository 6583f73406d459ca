//! The distributions of libstdc++ (GCC 11 and later) that LoadGen draws from, bit for bit.
//!
//! The C++ standard fixes the generator but not the distributions, so a schedule depends on the standard library of the
//! wheel. These are the ones of the official wheels.

use super::rng::Mt19937;

/// `std::generate_canonical<double, 53>`: two draws, the first the low half. In `[0, 1)`.
pub fn canonical(rng: &mut Mt19937) -> f64 {
    const TWO_32: f64 = 4_294_967_296.0;
    let low = f64::from(rng.u32());
    let high = f64::from(rng.u32());
    // The only rounding is in the addition; dividing by a power of two is exact.
    let u = (low + high * TWO_32) / (TWO_32 * TWO_32);
    if u < 1.0 { u } else { 1.0 - f64::EPSILON / 2.0 }
}

/// `std::exponential_distribution(rate)`: seconds between arrivals at `rate` per second.
pub fn exponential(rng: &mut Mt19937, rate: f64) -> f64 {
    -libm::log(1.0 - canonical(rng)) / rate
}

/// `std::uniform_int_distribution(0, n − 1)`, by Lemire's multiply and reject on 32 bits. `n` must not be zero.
pub fn below(rng: &mut Mt19937, n: u32) -> u32 {
    debug_assert!(n > 0);
    let mut product = u64::from(rng.u32()) * u64::from(n);
    if (product as u32) < n {
        let reject_under = n.wrapping_neg() % n;
        while (product as u32) < reject_under {
            product = u64::from(rng.u32()) * u64::from(n);
        }
    }
    (product >> 32) as u32
}

/// `std::shuffle`: one draw serves two swaps while the product of the two ranges still fits the generator's 32 bits.
pub fn shuffle<T>(rng: &mut Mt19937, items: &mut [T]) {
    let n = items.len() as u64;
    if n < 2 {
        return;
    }
    if u64::from(u32::MAX) / n < n {
        for i in 1..items.len() {
            let j = below(rng, i as u32 + 1) as usize;
            items.swap(i, j);
        }
        return;
    }
    let mut i = 1;
    if n.is_multiple_of(2) {
        let j = below(rng, 2) as usize;
        items.swap(1, j);
        i = 2;
    }
    while i < items.len() {
        let range = i as u32 + 1;
        let pair = below(rng, range * (range + 1));
        items.swap(i, (pair / (range + 1)) as usize);
        items.swap(i + 1, (pair % (range + 1)) as usize);
        i += 2;
    }
}
