use crate::Compat;
use crate::mt19937::Mt19937;
use tailbound_clock::Seed;

/// Shuffles what was read.
pub(crate) fn shuffle<T>(items: &mut [T], seed: Seed, compat: Compat) {
    match compat {
        Compat::Own => seed.stream("prompt order").shuffle(items),
        Compat::Vllm => Mt19937::python(seed.0).python_shuffle(items),
    }
}

/// `needed` indices below `have` (> 0), for repeating prompts.
pub(crate) fn repeats(have: usize, needed: usize, seed: Seed, compat: Compat) -> Vec<usize> {
    match compat {
        Compat::Own => {
            let mut rng = seed.stream("prompt repeats");
            (0..needed).map(|_| rng.below(have as u64) as usize).collect()
        }
        Compat::Vllm => {
            let mut mt = Mt19937::python(seed.0);
            (0..needed).map(|_| mt.python_below(have as u32) as usize).collect()
        }
    }
}

/// `n` of `have` rows in random order: each at most once if there are enough, else drawn with replacement (as pandas' `sample`).
pub(crate) fn sample(have: usize, n: usize, seed: Seed, compat: Compat) -> Vec<usize> {
    match compat {
        Compat::Own if n <= have => {
            let mut rows: Vec<usize> = (0..have).collect();
            seed.stream("prompt order").shuffle(&mut rows);
            rows.truncate(n);
            rows
        }
        Compat::Own => repeats(have, n, seed, compat),
        Compat::Vllm => {
            let mut mt = Mt19937::numpy(seed.0 as u32);
            if n <= have {
                return mt.numpy_permutation(have as u32).into_iter().take(n).map(|i| i as usize).collect();
            }
            (0..n).map(|_| mt.numpy_to(have as u32 - 1) as usize).collect()
        }
    }
}
