//! What goes wrong on purpose, drawn per request from a seed: the same requests in the same order fail the same way.

use tailbound_clock::{Dur, Seed};

/// Which share of requests meets which fault; shares are 0 to 1. At most one of error, cut and stall befalls a request,
/// in this order; a slow first byte comes on top.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Refused with an error object: half with status 500, half with 503.
    pub error_rate: f64,
    /// Closed in the middle of its stream.
    pub cut_rate: f64,
    /// Held back in the middle of its stream.
    pub stall_rate: f64,
    /// For this long; what came out meanwhile is then sent at once.
    pub stall: Dur,
    /// Kept waiting before the engine gets it.
    pub slow_first_byte_rate: f64,
    /// For this long.
    pub slow_first_byte: Dur,
}

/// What befalls one request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fate {
    pub trouble: Option<Trouble>,
    /// How long the engine does not get it.
    pub delay: Dur,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Trouble {
    Error(u16),
    /// The connection is closed instead of sending the token with this index.
    Cut(u32),
    /// The token with this index, and those after it, are held for so long.
    Stall(u32, Dur),
}

impl Trouble {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Trouble::Error(_) => "error",
            Trouble::Cut(_) => "cut",
            Trouble::Stall(..) => "stall",
        }
    }
}

impl Faults {
    /// The fate of the `number`-th request, whose answer will have `tokens` tokens.
    pub(crate) fn draw(&self, seed: Seed, number: u64, tokens: u32) -> Fate {
        if *self == Faults::default() {
            return Fate::default();
        }
        let mut rng = seed.numbered("faults", number);
        let (kind, place, slow) = (rng.unit(), rng.unit(), rng.unit());
        // In the middle: never before the second token, where there is one.
        let middle = 1 + (place * f64::from(tokens.saturating_sub(1))) as u32;
        let trouble = if kind < self.error_rate {
            Some(Trouble::Error(if place < 0.5 { 500 } else { 503 }))
        } else if kind < self.error_rate + self.cut_rate {
            Some(Trouble::Cut(middle.min(tokens.saturating_sub(1))))
        } else if kind < self.error_rate + self.cut_rate + self.stall_rate {
            Some(Trouble::Stall(middle.min(tokens.saturating_sub(1)), self.stall))
        } else {
            None
        };
        let delay = if slow < self.slow_first_byte_rate { self.slow_first_byte } else { Dur::ZERO };
        Fate { trouble, delay }
    }

    pub(crate) fn complaint(&self) -> Option<String> {
        for (rate, name) in [
            (self.error_rate, "error_rate"),
            (self.cut_rate, "cut_rate"),
            (self.stall_rate, "stall_rate"),
            (self.slow_first_byte_rate, "slow_first_byte_rate"),
        ] {
            if !(0.0..=1.0).contains(&rate) {
                return Some(format!("{name} must be 0 to 1, got {rate}"));
            }
        }
        let sum = self.error_rate + self.cut_rate + self.stall_rate;
        if sum > 1.0 + 1e-9 {
            return Some(format!("error_rate, cut_rate and stall_rate together must not pass 1, got {sum}"));
        }
        if self.stall_rate > 0.0 && self.stall.is_zero() {
            return Some("stall_rate needs a stall longer than zero".to_owned());
        }
        if self.slow_first_byte_rate > 0.0 && self.slow_first_byte.is_zero() {
            return Some("slow_first_byte_rate needs a slow_first_byte longer than zero".to_owned());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Faults = Faults {
        error_rate: 0.2,
        cut_rate: 0.3,
        stall_rate: 0.1,
        stall: Dur::from_ms(5),
        slow_first_byte_rate: 0.5,
        slow_first_byte: Dur::from_ms(7),
    };

    #[test]
    fn shares_are_kept_and_places_lie_in_the_middle() {
        let fates: Vec<Fate> = (0..20_000).map(|n| ALL.draw(Seed(1), n, 10)).collect();
        let share = |f: &dyn Fn(&Fate) -> bool| fates.iter().filter(|x| f(x)).count() as f64 / fates.len() as f64;
        assert!((share(&|f| matches!(f.trouble, Some(Trouble::Error(_)))) - 0.2).abs() < 0.01);
        assert!((share(&|f| matches!(f.trouble, Some(Trouble::Error(503)))) - 0.1).abs() < 0.01);
        assert!((share(&|f| matches!(f.trouble, Some(Trouble::Cut(1..=9)))) - 0.3).abs() < 0.015);
        assert!((share(&|f| matches!(f.trouble, Some(Trouble::Stall(1..=9, _)))) - 0.1).abs() < 0.01);
        assert!((share(&|f| f.delay == Dur::from_ms(7)) - 0.5).abs() < 0.015);
    }

    #[test]
    fn fate_is_fixed_by_seed_and_number() {
        assert_eq!(ALL.draw(Seed(1), 3, 10), ALL.draw(Seed(1), 3, 10));
        assert!((0..50).any(|n| ALL.draw(Seed(1), n, 10) != ALL.draw(Seed(2), n, 10)));
        assert_eq!(Faults::default().draw(Seed(1), 3, 10), Fate::default());
    }

    #[test]
    fn impossible_shares_are_named() {
        for bad in [
            Faults { error_rate: 1.5, ..Faults::default() },
            Faults { cut_rate: f64::NAN, ..Faults::default() },
            Faults { error_rate: 0.6, cut_rate: 0.6, ..Faults::default() },
            Faults { stall_rate: 0.1, ..Faults::default() },
            Faults { slow_first_byte_rate: 0.1, ..Faults::default() },
        ] {
            assert!(bad.complaint().is_some(), "{bad:?}");
        }
        assert_eq!(ALL.complaint(), None);
    }
}
