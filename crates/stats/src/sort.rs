//! Sorting millions of integers: the gaps and token times of a long run are most of the work of summing it up.

/// Digits of 8 bits: as many streams of writes as the first-level cache and the TLB can hold.
const BITS: u32 = 8;
const BUCKETS: usize = 1 << BITS;
/// Below this many keys, comparing costs less.
const RADIX_FROM: usize = 5_000;

/// Sorts keys ascending: by least significant digit where there are many, over those bits only in which they differ.
pub(crate) fn ascending(keys: &mut Vec<u64>) {
    if keys.len() < RADIX_FROM {
        keys.sort_unstable();
        return;
    }
    let first = keys[0];
    let differing = keys.iter().fold(0, |bits, key| bits | (key ^ first));
    let (mut shift, end) = (differing.trailing_zeros(), u64::BITS - differing.leading_zeros());
    let mut scratch = vec![0u64; if differing == 0 { 0 } else { keys.len() }];
    while shift < end {
        scatter(keys, &mut scratch, |key| (key >> shift) as usize & (BUCKETS - 1), BUCKETS);
        std::mem::swap(keys, &mut scratch);
        shift += BITS;
    }
}

/// Sorts keys that are spread evenly and lie near their places already, as the times of successive requests do: dealt into narrow
/// ranges in one pass, and each range by itself.
pub(crate) fn times(keys: &mut Vec<u64>) {
    let (Some(low), Some(high)) = (keys.iter().copied().min(), keys.iter().copied().max()) else { return };
    if keys.len() < RADIX_FROM {
        keys.sort_unstable();
        return;
    }
    // About a dozen keys a range, were they even.
    let ranges = (keys.len() as u64 / 12).next_power_of_two();
    let shift = (u64::BITS - (high - low).leading_zeros()).saturating_sub(ranges.trailing_zeros());
    let ranges = ((high - low) >> shift) as usize + 1;
    let mut dealt = vec![0u64; keys.len()];
    let ends = scatter(keys, &mut dealt, |key| ((key - low) >> shift) as usize, ranges);
    let mut from = 0;
    for end in ends {
        dealt[from..end as usize].sort_unstable();
        from = end as usize;
    }
    *keys = dealt;
}

/// Copies keys by bucket, in order within each; gives where each bucket ends.
fn scatter(keys: &[u64], into: &mut [u64], bucket: impl Fn(u64) -> usize, buckets: usize) -> Vec<u32> {
    let mut places = vec![0u32; buckets];
    for key in keys {
        places[bucket(*key)] += 1;
    }
    let mut next = 0;
    for count in &mut places {
        next += std::mem::replace(count, next);
    }
    for key in keys {
        let place = &mut places[bucket(*key)];
        into[*place as usize] = *key;
        *place += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_clock::Seed;

    #[test]
    fn many_keys_are_sorted_as_few_are() {
        let mut rng = Seed(5).stream("sort");
        for (low, bits) in [(0, 1), (4, 12), (0, 33), (60, 4), (0, 64)] {
            let mut keys: Vec<u64> = (0..RADIX_FROM + 7).map(|_| (rng.u64() >> (64 - bits)) << low).collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            let mut dealt = keys.clone();
            ascending(&mut keys);
            times(&mut dealt);
            assert!(keys == expected && dealt == expected, "{bits} bits from {low}");
        }
    }

    #[test]
    fn equal_keys_and_few_keys_are_sorted_too() {
        for n in [0, 1, 2, RADIX_FROM] {
            let mut keys = vec![7; n];
            ascending(&mut keys);
            times(&mut keys);
            assert_eq!(keys, vec![7; n]);
        }
        let mut outlier: Vec<u64> = (0..RADIX_FROM as u64).rev().chain([u64::MAX]).collect();
        times(&mut outlier);
        assert!(outlier.is_sorted());
    }
}
