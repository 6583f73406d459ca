use tailbound_clock::{Dur, Time};

/// An engine's own time beside the world's: slower while it is slow, standing while it stalls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// A moment, and the same in the engine's time.
    world: Time,
    own: Time,
    /// How many times slower its time goes; infinite: it stands.
    factor: f64,
}

impl Pace {
    pub(crate) const EVEN: Pace = Pace { world: Time::ZERO, own: Time::ZERO, factor: 1.0 };

    /// From now on, `factor` times slower than the world.
    pub(crate) fn change(&mut self, now: Time, factor: f64) {
        *self = Pace { world: now, own: self.own(now), factor };
    }

    /// Whether its time is the world's.
    pub(crate) fn is_even(&self) -> bool {
        self.factor == 1.0 && self.world == self.own
    }

    pub(crate) fn stands(&self) -> bool {
        self.factor == f64::INFINITY
    }

    /// The engine's time at `now`.
    pub(crate) fn own(&self, now: Time) -> Time {
        let passed = now.since(self.world);
        if self.factor == 1.0 {
            return self.own + passed;
        }
        self.own + Dur((passed.ns() as f64 / self.factor) as u64)
    }

    /// The first moment at which the engine's time is `own`; `None` while it stands.
    pub(crate) fn world(&self, own: Time) -> Option<Time> {
        let ahead = own.since(self.own);
        if self.factor == 1.0 {
            return Some(self.world + ahead);
        }
        if self.stands() {
            return None;
        }
        let mut at = self.world + Dur(libm::ceil(ahead.ns() as f64 * self.factor) as u64);
        while self.own(at) < own {
            at += Dur::from_ns(1);
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let mut pace = Pace::EVEN;
        pace.change(Time(1000), 3.7);
        for own in [1000, 1001, 1234, 987_654_321] {
            let at = pace.world(Time(own)).unwrap();
            assert!(pace.own(at) >= Time(own) && pace.own(at) <= Time(own + 1), "{own}");
        }
        pace.change(Time(4700), f64::INFINITY);
        assert_eq!((pace.own(Time(9999)), pace.world(Time(3000))), (Time(2000), None));
        pace.change(Time(10_000), 1.0);
        assert_eq!((pace.own(Time(10_500)), pace.world(Time(2500))), (Time(2500), Some(Time(10_500))));
    }
}
