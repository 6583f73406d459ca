"""The capacities of the six queues of crates/stats/tests/it/capacity/queues.rs, by closed form where there is one, else by long
simulation: written apart from the Rust code, with numpy's generators and the Lindley recursion by cumulative minima.

    python benches/capacity_truth.py DATA_FOLDER        needs numpy and mpmath
"""
import sys
import numpy as np
from mpmath import mp, mpf, exp, factorial

SHARE = 0.9


def root(holds, low, high):
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return (low + high) / 2


def md1(service, limit, share):
    """Erlang: P(W <= t) = (1 - rho) sum_j (-(lam (t - jD)))^j / j! e^(lam (t - jD)), jD <= t."""
    mp.dps = 200

    def attained(lam):
        t, total = mpf(limit) - mpf(service), mpf(0)
        for j in range(int(t // mpf(service)) + 1):
            x = mpf(lam) * (j * mpf(service) - t)
            total += x**j / factorial(j) * exp(-x)
        return (1 - mpf(lam) * mpf(service)) * total

    return root(lambda lam: attained(lam) >= share, 0.1 / service, 0.9999 / service)


def gm1(shape, mean, limit):
    """Time in the system is exponential with rate mu (1 - sigma), sigma = A*(mu (1 - sigma)) (Kleinrock I, 6.4)."""
    mu = 1 / mean

    def attained(lam):
        sigma = 0.5
        for _ in range(100000):
            new = (shape * lam / (shape * lam + mu * (1 - sigma))) ** shape
            if abs(new - sigma) < 1e-15:
                break
            sigma = new
        return 1 - np.exp(-mu * (1 - sigma) * limit)

    return root(lambda lam: attained(lam) >= SHARE, 0.01 * mu, 0.999 * mu)


def waits(gaps, services):
    """Lindley: W_n = S_n - min_{k<=n} S_k, S the sums of service minus gap."""
    steps = np.concatenate([[0.0], np.cumsum(services[:-1] - gaps[1:])])
    return steps - np.minimum.accumulate(steps)


def by_simulation(attained, low, high, runs=16):
    """The same random numbers at every rate make attainment smooth in it; independent runs tell the error."""
    found = []
    for seed in range(runs):
        l, h = low, high
        for _ in range(14):
            m = (l + h) / 2
            l, h = (m, h) if attained(m, seed) else (l, m)
        found.append((l + h) / 2)
    return np.mean(found), np.std(found, ddof=1) / np.sqrt(runs)


N = 1_000_000


def single(draw, limit):
    def attained(rate, seed):
        rng = np.random.default_rng(seed)
        gaps, services = rng.exponential(1, N) / rate, draw(rng)
        return np.mean((waits(gaps, services) + services)[1000:] <= limit) >= SHARE

    return attained


def two_classes(rate, seed):
    rng = np.random.default_rng(seed)
    second = rng.random(N) < 0.4
    services = np.where(second, 0.03, rng.exponential(0.01, N))
    took = (waits(rng.exponential(1, N) / rate, services) + services)[1000:]
    second = second[1000:]
    return min(np.mean(took[~second] <= 0.1), np.mean(took[second] <= 0.15)) >= SHARE


def bursty(rate, seed):
    rng = np.random.default_rng(seed)
    services = np.full(N, 0.02)
    return np.mean((waits(rng.gamma(0.5, 2.0, N) / rate, services) + services)[1000:] <= 0.1) >= SHARE


def batch(rate, seed, n=300_000):
    rng = np.random.default_rng(seed)
    at = np.cumsum(rng.exponential(1, n) / rate)
    at_list, free, i, good = at.tolist(), 0.0, 0, 0
    while i < n:
        start = max(free, at_list[i])
        j = min(int(np.searchsorted(at[i : i + 16], start, side="right")) + i, i + 16) if at_list[i] < start else i + 1
        free = start + 0.05 + 0.005 * (j - i)
        good += int(np.count_nonzero(free - at[i:j] <= 0.25))
        i = j
    return good / n >= SHARE


def lognormal(cv):
    sigma = np.sqrt(np.log(1 + cv**2))
    return lambda rng: rng.lognormal(np.log(0.02) - sigma**2 / 2, sigma, N)


def main():
    lengths = np.loadtxt(sys.argv[1] + "/systems/wl/conv2000_r2.csv", delimiter=",", skiprows=1, usecols=1)
    prefill = (7.0 + 0.01802 * np.maximum(0, lengths - 192) + 1.04e-6 * lengths**2 / 2) / 1e3
    tell = lambda name, found: print(f"{name:36} {found[0]:9.3f} +- {found[1]:.3f} (standard error)")
    tell("prefill of conversations (M/G/1)", by_simulation(single(lambda r: r.choice(prefill, N), 0.1), 20, 50))
    print(f"{'fixed service (M/D/1)':36} {float(md1(0.02, 0.1, SHARE)):9.3f} closed form")
    tell("  the same, simulated", by_simulation(single(lambda r: np.full(N, 0.02), 0.1), 25, 49, 4))
    tell("bursty arrivals (G/D/1)", by_simulation(bursty, 15, 49))
    tell("long-tailed service (M/G/1)", by_simulation(single(lognormal(0.8), 0.12), 8, 49))
    tell("batch service", by_simulation(batch, 60, 125, 8))
    tell("two classes", by_simulation(two_classes, 20, 55))
    print(f"{'very bursty (G/M/1)':36} {gm1(0.25, 0.01, 0.15):9.3f} closed form")
    tell("very long-tailed (M/G/1)", by_simulation(single(lognormal(1.5), 0.1), 8, 49))
    print(f"{'2 ms server, p99 under 80 ms':36} {float(md1(0.002, 0.08, 0.99)):9.3f} closed form")


main()
