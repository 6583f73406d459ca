use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// A moment: nanoseconds since an origin the driver chose (live: the monotonic clock's own; virtual: the run's start).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Time(pub u64);

/// A length of time in nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Dur(pub u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// Later than any moment that can happen.
    pub const MAX: Time = Time(u64::MAX);

    /// Nanoseconds since the origin.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after.
    pub const fn since(self, earlier: Time) -> Dur {
        Dur(self.0.saturating_sub(earlier.0))
    }

    /// `self − other` in nanoseconds, negative if `self` is earlier.
    pub const fn minus(self, other: Time) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }

    /// This moment moved by a signed number of nanoseconds, held at the origin.
    pub const fn offset(self, ns: i64) -> Time {
        Time(self.0.saturating_add_signed(ns))
    }
}

impl Dur {
    /// No time at all.
    pub const ZERO: Dur = Dur(0);
    /// Longer than any run.
    pub const MAX: Dur = Dur(u64::MAX);

    /// From whole nanoseconds.
    pub const fn from_ns(ns: u64) -> Dur {
        Dur(ns)
    }
    /// From whole microseconds.
    pub const fn from_us(us: u64) -> Dur {
        Dur(us * 1_000)
    }
    /// From whole milliseconds.
    pub const fn from_ms(ms: u64) -> Dur {
        Dur(ms * 1_000_000)
    }
    /// From whole seconds.
    pub const fn from_secs(s: u64) -> Dur {
        Dur(s * 1_000_000_000)
    }

    /// From seconds, rounded to the nearest nanosecond; negative and NaN give zero, too long gives [`Dur::MAX`].
    pub fn from_secs_f64(s: f64) -> Dur {
        // `as` saturates at both ends and maps NaN to zero.
        Dur((s * 1e9 + 0.5) as u64)
    }
    /// From milliseconds, as [`Dur::from_secs_f64`].
    pub fn from_ms_f64(ms: f64) -> Dur {
        Dur::from_secs_f64(ms * 1e-3)
    }

    /// Whole nanoseconds.
    pub const fn ns(self) -> u64 {
        self.0
    }
    /// Seconds.
    pub fn secs(self) -> f64 {
        self.0 as f64 * 1e-9
    }
    /// Milliseconds.
    pub fn ms(self) -> f64 {
        self.0 as f64 * 1e-6
    }
    /// Whether it is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add<Dur> for Time {
    type Output = Time;
    fn add(self, d: Dur) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}
impl AddAssign<Dur> for Time {
    fn add_assign(&mut self, d: Dur) {
        *self = *self + d;
    }
}
impl Sub<Dur> for Time {
    type Output = Time;
    fn sub(self, d: Dur) -> Time {
        Time(self.0.saturating_sub(d.0))
    }
}
impl Add for Dur {
    type Output = Dur;
    fn add(self, d: Dur) -> Dur {
        Dur(self.0.saturating_add(d.0))
    }
}
impl AddAssign for Dur {
    fn add_assign(&mut self, d: Dur) {
        *self = *self + d;
    }
}
impl Sub for Dur {
    type Output = Dur;
    fn sub(self, d: Dur) -> Dur {
        Dur(self.0.saturating_sub(d.0))
    }
}
impl Mul<u64> for Dur {
    type Output = Dur;
    fn mul(self, k: u64) -> Dur {
        Dur(self.0.saturating_mul(k))
    }
}
impl Div<u64> for Dur {
    type Output = Dur;
    fn div(self, k: u64) -> Dur {
        Dur(self.0 / k)
    }
}
impl std::iter::Sum for Dur {
    fn sum<I: Iterator<Item = Dur>>(iter: I) -> Dur {
        iter.fold(Dur::ZERO, |a, b| a + b)
    }
}

impl fmt::Display for Dur {
    /// The unit that keeps the figure readable: `340ns`, `12.5us`, `250ms`, `1.5s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        let (value, unit) = match ns {
            0 => return f.write_str("0s"),
            1..1_000 => (ns as f64, "ns"),
            1_000..1_000_000 => (ns as f64 / 1e3, "us"),
            1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
            _ => (ns as f64 / 1e9, "s"),
        };
        let rounded = (value * 1e3).round() / 1e3;
        write!(f, "{rounded}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_signed_only_when_asked() {
        assert_eq!(Time(5).since(Time(9)), Dur::ZERO);
        assert_eq!(Time(5).minus(Time(9)), -4);
        assert_eq!(Time(5).offset(-9), Time::ZERO);
    }

    #[test]
    fn seconds_round_to_the_nearest_nanosecond_and_saturate() {
        assert_eq!(Dur::from_secs_f64(0.1), Dur(100_000_000));
        assert_eq!(Dur::from_secs_f64(-1.0), Dur::ZERO);
        assert_eq!(Dur::from_secs_f64(f64::NAN), Dur::ZERO);
        assert_eq!(Dur::from_secs_f64(f64::INFINITY), Dur::MAX);
    }

    #[test]
    fn display_picks_the_unit() {
        assert_eq!(Dur(340).to_string(), "340ns");
        assert_eq!(Dur::from_us(12).to_string(), "12us");
        assert_eq!(Dur::from_ms(250).to_string(), "250ms");
        assert_eq!(Dur::from_ms(1500).to_string(), "1.5s");
    }
}
