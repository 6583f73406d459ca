#!/usr/bin/env python3
"""Makes tests/fixtures/compare.json: samples, and what scipy, statsmodels and arch make of them.

    python3 compare_vectors.py > fixtures/compare.json

Needs numpy, scipy (bootstrap, Student's t), statsmodels (Holm) and arch (block lengths). Values are integer nanoseconds.
"""

import json

import numpy as np
import scipy
from arch.bootstrap import optimal_block_length
from scipy import stats
from statsmodels.stats.multitest import multipletests

RESAMPLES = 20_000


def ar1(rng, n, rho):
    x = np.empty(n)
    x[0] = rng.normal() / np.sqrt(1 - rho * rho)
    for i in range(1, n):
        x[i] = rho * x[i - 1] + rng.normal()
    return x


def log_ratio(statistic):
    return lambda a, b, axis: np.log(statistic(b, axis) / statistic(a, axis))


def bootstraps(rng):
    mean = lambda x, axis: np.mean(x, axis=axis)
    p50 = lambda x, axis: np.percentile(x, 50, axis=axis)
    p90 = lambda x, axis: np.percentile(x, 90, axis=axis)
    out = []
    for name, statistic in [("mean", mean), ("p50", p50), ("p90", p90)]:
        for paired in [False, True]:
            n = 200
            a = np.round(rng.lognormal(17, 0.5, n))
            b = np.round(a * rng.lognormal(0.05, 0.2, n)) if paired else np.round(rng.lognormal(17.1, 0.5, n))
            result = stats.bootstrap((a, b), log_ratio(statistic), n_resamples=RESAMPLES, paired=paired, vectorized=True,
                                     method="percentile", rng=np.random.default_rng(1))
            out.append({
                "measure": name, "paired": paired, "a": a.astype(int).tolist(), "b": b.astype(int).tolist(),
                "value": float(log_ratio(statistic)(a, b, 0)),
                "low": result.confidence_interval.low, "high": result.confidence_interval.high,
            })
    return out


def main():
    rng = np.random.default_rng(20261130)
    blocks = []
    for n, rho in [(50, 0.0), (200, 0.0), (500, 0.3), (1000, 0.6), (1000, 0.9), (250, 0.95), (64, -0.4)]:
        x = ar1(rng, n, rho)
        blocks.append({"series": x.tolist(), "circular": float(optimal_block_length(x)["circular"].iloc[0])})
    p = [sorted(rng.uniform(0, 0.2, k).tolist(), key=lambda _: rng.random()) for k in (1, 2, 5, 17)]
    p.append([0.01, 0.01, 0.04, 0.9])
    holm = [{"p": x, "adjusted": multipletests(x, method="holm")[1].tolist()} for x in p]
    print(json.dumps({"scipy": scipy.__version__, "resamples": RESAMPLES, "bootstrap": bootstraps(rng), "blocks": blocks, "holm": holm}))


main()
