use crate::page::number::brief;

/// How values become lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Proportionally.
    Linear,
    /// By their logarithm.
    Log,
    /// Shares by the logarithm of what is left to 1.
    Nines,
}

impl Scale {
    /// Whether a value has a place.
    pub(super) fn shows(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Scale::Linear => true,
                Scale::Log => value > 0.0,
                Scale::Nines => (0.0..1.0).contains(&value),
            }
    }

    /// Where in the range a value stands: 0 at its beginning, 1 at its end.
    pub(super) fn part(self, value: f64, (low, high): (f64, f64)) -> f64 {
        let length = self.length(high) - self.length(low);
        if length > 0.0 { (self.length(value) - self.length(low)) / length } else { 0.5 }
    }

    fn length(self, value: f64) -> f64 {
        match self {
            // Halved, so that the longest range there is has a length.
            Scale::Linear => value / 2.0,
            Scale::Log => value.max(f64::MIN_POSITIVE).log10(),
            Scale::Nines => -(1.0 - value).max(1e-12).log10(),
        }
    }

    /// A range that holds the data and ends on something round.
    pub(super) fn round_out(self, low: f64, high: f64, from_zero: bool) -> (f64, f64) {
        match self {
            Scale::Linear => {
                let low = if from_zero && low >= 0.0 { 0.0 } else { low };
                if high > low {
                    let room = (high - low) * 0.04;
                    let least = if low >= 0.0 { (low - room).max(0.0) } else { low - room };
                    let least = if from_zero { low } else { least };
                    let finite = room.is_finite() && least.is_finite() && (high + room).is_finite();
                    return if finite { (least, high + room) } else { (low, high) };
                }
                let half = if low == 0.0 { 1.0 } else { low.abs() / 2.0 };
                (low.min(0.0), low + half)
            }
            Scale::Log if low == high => (low / 2.0, high * 2.0),
            Scale::Log => {
                // A thirtieth of the length on either side, so that no mark sits on the frame.
                let room = (high.log10() - low.log10()) / 30.0;
                let (low, high) = (10f64.powf(low.log10() - room), 10f64.powf(high.log10() + room));
                (low.max(f64::MIN_POSITIVE), high.min(f64::MAX))
            }
            Scale::Nines => (0.0, high.max(0.9)),
        }
    }

    pub(super) fn default_range(self) -> (f64, f64) {
        match self {
            Scale::Linear => (0.0, 1.0),
            Scale::Log => (1.0, 10.0),
            Scale::Nines => (0.0, 0.99),
        }
    }

    /// A value in words.
    pub(super) fn reading(self, value: f64) -> String {
        match self {
            Scale::Linear | Scale::Log => brief(value),
            Scale::Nines => nines(value),
        }
    }
}

/// A share as a percentage that does not round its nines away.
pub(super) fn nines(share: f64) -> String {
    let left = 1.0 - share;
    let digits = if left > 0.0 { (-left.log10() - 1.0).ceil().clamp(0.0, 7.0) as usize } else { 0 };
    let text = format!("{:.digits$}", share * 100.0);
    format!("{}\u{202f}%", if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_their_scale_puts_them() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        near(Scale::Linear.part(15.0, (10.0, 20.0)), 0.5);
        near(Scale::Log.part(10.0, (1.0, 1000.0)), 1.0 / 3.0);
        near(Scale::Nines.part(0.9, (0.0, 0.999)), 1.0 / 3.0);
        near(Scale::Nines.part(0.99, (0.0, 0.999)), 2.0 / 3.0);
        assert!(!Scale::Log.shows(0.0) && !Scale::Nines.shows(1.0) && !Scale::Linear.shows(f64::NAN));
    }

    #[test]
    fn nines_are_not_rounded_away() {
        assert_eq!(
            [0.0, 0.5, 0.9, 0.99, 0.999, 0.99987].map(nines).map(|t| t.replace('\u{202f}', "")),
            ["0%", "50%", "90%", "99%", "99.9%", "99.987%"]
        );
    }
}
