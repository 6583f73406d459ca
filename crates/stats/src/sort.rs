/// Digits of 8 bits: as many streams of writes as the first-level cache and the TLB can hold.
const BITS: u32 = 8;
const DIGITS: usize = 8;
const BUCKETS: usize = 1 << BITS;
/// Below this many keys the histograms cost more than they save.
const RADIX_FROM: usize = 20_000;

/// Sorts keys ascending: by least significant digit where there are many (three times faster than comparing on the millions of gaps
/// of a long run), leaving out digits in which all keys agree.
pub(crate) fn ascending(keys: &mut Vec<u64>) {
    if keys.len() < RADIX_FROM {
        keys.sort_unstable();
        return;
    }
    let mut histograms = vec![[0u32; BUCKETS]; DIGITS];
    for key in keys.iter() {
        for (i, histogram) in histograms.iter_mut().enumerate() {
            histogram[digit(*key, i)] += 1;
        }
    }
    let mut scratch = vec![0u64; keys.len()];
    for (i, histogram) in histograms.iter_mut().enumerate() {
        if histogram[digit(keys[0], i)] as usize == keys.len() {
            continue;
        }
        let mut next = 0;
        for count in histogram.iter_mut() {
            next += std::mem::replace(count, next);
        }
        for key in keys.iter() {
            let place = &mut histogram[digit(*key, i)];
            scratch[*place as usize] = *key;
            *place += 1;
        }
        std::mem::swap(keys, &mut scratch);
    }
}

fn digit(key: u64, i: usize) -> usize {
    (key >> (BITS * i as u32)) as usize & (BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_clock::Seed;

    #[test]
    fn many_keys_are_sorted_as_few_are() {
        let mut rng = Seed(5).stream("sort");
        for bits in [1, 12, 33, 64] {
            let mut keys: Vec<u64> = (0..RADIX_FROM + 7).map(|_| rng.u64() >> (64 - bits)).collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            ascending(&mut keys);
            assert_eq!(keys, expected, "{bits} bits");
        }
    }
}
