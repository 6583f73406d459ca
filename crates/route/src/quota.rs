use crate::names::{Key, Map};
use serde::{Deserialize, Serialize};
use tailbound_clock::{Dur, Time};

/// What a tenant may send: two token buckets, of requests and of tokens (prompt and answer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Requests per second in the long run.
    pub requests_per_s: Option<f64>,
    /// Requests at once; a second's worth, if not given.
    pub request_burst: Option<f64>,
    /// Tokens per second in the long run.
    pub tokens_per_s: Option<f64>,
    /// Tokens at once; a minute's worth, if not given.
    pub token_burst: Option<f64>,
}

/// Limits of tenants by name, and of all others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quotas {
    named: Vec<(Key, Limits)>,
    others: Option<Limits>,
    tenants: Map<Key, Buckets>,
    /// With so many tenants, those whose buckets are full again are looked for next.
    sweep_at: usize,
}

#[derive(Clone, Copy, Debug)]
struct Buckets {
    requests: f64,
    tokens: f64,
    at: Time,
}

/// Tenants whose buckets are full again are forgotten when there are more than these.
const REMEMBERED: usize = 10_000;

impl Quotas {
    pub(crate) fn new(named: &[(String, Limits)], others: Option<Limits>) -> Quotas {
        let named = named.iter().map(|(name, limits)| (Key::of(name), *limits)).collect();
        Quotas { named, others, tenants: Map::default(), sweep_at: REMEMBERED }
    }

    /// Other limits from now on; what was spent is.
    pub(crate) fn limit(&mut self, named: &[(String, Limits)], others: Option<Limits>) {
        self.named = Quotas::new(named, None).named;
        self.others = others;
    }

    fn limits(&self, tenant: Key) -> Option<Limits> {
        self.named.iter().find(|(k, _)| *k == tenant).map(|(_, l)| *l).or(self.others)
    }

    /// Takes a request and the tokens it is known to need, or says how long until it could.
    pub(crate) fn take(&mut self, now: Time, tenant: Key, tokens: u64) -> Result<(), Dur> {
        let Some(limits) = self.limits(tenant) else { return Ok(()) };
        if self.tenants.len() >= self.sweep_at {
            self.forget_full(now);
        }
        let buckets = self.tenants.entry(tenant).or_insert_with(|| Buckets::full(now, &limits));
        buckets.fill(now, &limits);
        let wait = |level: f64, need: f64, burst: f64, rate: Option<f64>| match rate {
            // What is more than fits goes as soon as the bucket is full.
            Some(rate) if level < need.min(burst) => Dur::from_secs_f64((need.min(burst) - level) / rate),
            _ => Dur::ZERO,
        };
        let tokens = tokens as f64;
        let requests_wait = wait(buckets.requests, 1.0, limits.request_burst(), limits.requests_per_s);
        let tokens_wait = wait(buckets.tokens, tokens, limits.token_burst(), limits.tokens_per_s);
        let longest = requests_wait.max(tokens_wait);
        if !longest.is_zero() {
            return Err(longest);
        }
        buckets.requests -= 1.0;
        buckets.tokens -= tokens;
        Ok(())
    }

    /// Takes (or gives back) the difference to what a request really was; the bucket may owe.
    pub(crate) fn settle(&mut self, tenant: Key, tokens: i64) {
        let Some(limits) = self.limits(tenant) else { return };
        if let Some(buckets) = self.tenants.get_mut(&tenant) {
            buckets.tokens = (buckets.tokens - tokens as f64).min(limits.token_burst());
        }
    }

    fn forget_full(&mut self, now: Time) {
        let Quotas { named, others, tenants, .. } = self;
        tenants.retain(|tenant, buckets| {
            let Some(limits) = named.iter().find(|(k, _)| k == tenant).map(|(_, l)| *l).or(*others) else {
                return false;
            };
            buckets.fill(now, &limits);
            buckets.requests < limits.request_burst() || buckets.tokens < limits.token_burst()
        });
        self.sweep_at = (2 * self.tenants.len()).max(REMEMBERED);
    }
}

impl Limits {
    fn request_burst(&self) -> f64 {
        self.request_burst.or(self.requests_per_s).unwrap_or(0.0).max(1.0)
    }

    fn token_burst(&self) -> f64 {
        self.token_burst.or(self.tokens_per_s.map(|r| 60.0 * r)).unwrap_or(0.0)
    }
}

impl Buckets {
    fn full(now: Time, limits: &Limits) -> Buckets {
        Buckets { requests: limits.request_burst(), tokens: limits.token_burst(), at: now }
    }

    fn fill(&mut self, now: Time, limits: &Limits) {
        let passed = now.since(self.at).secs();
        self.at = self.at.max(now);
        self.requests = (self.requests + passed * limits.requests_per_s.unwrap_or(0.0)).min(limits.request_burst());
        self.tokens = (self.tokens + passed * limits.tokens_per_s.unwrap_or(0.0)).min(limits.token_burst());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_says_when_and_fills() {
        let limits = Limits { requests_per_s: Some(2.0), request_burst: Some(3.0), ..Limits::default() };
        let mut quotas = Quotas::new(&[("a".into(), limits)], None);
        let (a, b) = (Key::of("a"), Key::of("b"));
        for _ in 0..3 {
            assert_eq!(quotas.take(Time::ZERO, a, 10), Ok(()));
        }
        assert_eq!(quotas.take(Time::ZERO, a, 10), Err(Dur::from_ms(500)));
        assert_eq!(quotas.take(Time::ZERO, b, 10), Ok(()), "others have no limit");
        assert_eq!(quotas.take(Time::ZERO + Dur::from_ms(500), a, 10), Ok(()));
    }

    #[test]
    fn tokens_are_settled_by_what_they_were() {
        let limits = Limits { tokens_per_s: Some(100.0), token_burst: Some(1000.0), ..Limits::default() };
        let mut quotas = Quotas::new(&[], Some(limits));
        let a = Key::of("a");
        assert_eq!(quotas.take(Time::ZERO, a, 600), Ok(()));
        quotas.settle(a, 500);
        assert_eq!(quotas.take(Time::ZERO, a, 100), Err(Dur::from_secs(2)), "owes 100, wants 100");
    }
}
