use super::scale::{Scale, nines};
use crate::page::number::{brief, tick};

/// Where the ticks of an axis are.
#[derive(Clone, Debug, PartialEq)]
pub enum Ticks {
    /// At round values: steps of 1, 2 or 5.
    Auto,
    /// At multiples of a unit that is not ten to some power: the unit in the axis' own terms, and the step in that unit.
    Unit {
        /// One of the unit.
        unit: f64,
        /// Between ticks, in units.
        step: f64,
    },
    /// Where they are said to be, with what is written there.
    Named(Vec<(f64, String)>),
}

/// Steps people read time by: unit in seconds, its name, steps in it.
const TIME: [(f64, &str, &[f64]); 4] = [
    (1.0, "s", &[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0]),
    (60.0, "min", &[0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0]),
    (3600.0, "h", &[0.5, 1.0, 2.0, 3.0, 4.0, 6.0]),
    (86_400.0, "days", &[0.5, 1.0, 2.0, 7.0, 14.0, 28.0, 56.0, 112.0, 364.0, 1820.0]),
];

/// About so many ticks.
const MANY: f64 = 7.0;

impl Ticks {
    /// Ticks for a range of seconds, and the name of their unit.
    pub(super) fn seconds((low, high): (f64, f64)) -> (Ticks, &'static str) {
        for (unit, name, steps) in TIME {
            if let Some(&step) = steps.iter().find(|step| (high - low) / (unit * **step) <= MANY + 1.0) {
                return (Ticks::Unit { unit, step }, name);
            }
        }
        (Ticks::Unit { unit: 86_400.0, step: 18_200.0 }, "days")
    }

    /// The ticks inside a range and their labels; at most about `most`.
    pub(super) fn within(&self, scale: Scale, (low, high): (f64, f64), most: usize) -> Vec<(f64, String)> {
        let all: Vec<(f64, String)> = match (self, scale) {
            (Ticks::Named(list), _) => list.clone(),
            (Ticks::Unit { unit, step }, _) => {
                multiples(low, high, unit * step).map(|x| (x, tick(rounded(x / unit)))).collect()
            }
            (Ticks::Auto, Scale::Linear) => {
                let step = round_step((high - low) / most.max(2) as f64);
                multiples(low, high, step).map(|x| (x, tick(rounded(x)))).collect()
            }
            // Within a factor of eight there would be a power of ten or two.
            (Ticks::Auto, Scale::Log) if high / low < 8.0 => {
                let step = round_step((high - low) / most.max(2) as f64);
                multiples(low, high, step).map(|x| (x, tick(rounded(x)))).collect()
            }
            (Ticks::Auto, Scale::Log) => decades(low, high),
            (Ticks::Auto, Scale::Nines) => {
                let shares = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999_999];
                shares.into_iter().map(|s| (s, nines(s))).collect()
            }
        };
        let slack = 1e-9 * (high - low).abs();
        let inside: Vec<_> = all.into_iter().filter(|(x, _)| (low - slack..=high + slack).contains(x)).collect();
        let every = inside.len().div_ceil(most.max(1)).max(1);
        inside.into_iter().step_by(every).collect()
    }

    /// A value of the axis in words, in the unit of its label.
    pub(super) fn reading(&self, x: f64) -> String {
        match self {
            Ticks::Unit { unit, .. } => brief(x / unit),
            Ticks::Named(list) => {
                list.iter().find(|(at, _)| *at == x).map_or_else(|| brief(x), |(_, word)| word.clone())
            }
            Ticks::Auto => brief(x),
        }
    }
}

/// What floating point added is taken off.
fn rounded(x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    let unit = 10f64.powf(x.abs().log10().floor() - 9.0);
    (x / unit).round() * unit
}

fn multiples(low: f64, high: f64, step: f64) -> impl Iterator<Item = f64> {
    let step = if step > 0.0 && step.is_finite() { step } else { 1.0 };
    let first = (low / step - 1e-9).ceil();
    let n = ((high / step + 1e-9).floor() - first).clamp(-1.0, 200.0);
    (0..=n as i64).take(if n < 0.0 { 0 } else { 201 }).map(move |i| (first + i as f64) * step)
}

/// The least of 1, 2, 5 times a power of ten that is not under `at_least`.
fn round_step(at_least: f64) -> f64 {
    if at_least <= 0.0 || !at_least.is_finite() {
        return 1.0;
    }
    let unit = 10f64.powf(at_least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * unit).find(|s| *s >= at_least * (1.0 - 1e-9)).unwrap_or(10.0 * unit)
}

/// Powers of ten; with 2 and 5 between them where there are few.
fn decades(low: f64, high: f64) -> Vec<(f64, String)> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let between: &[f64] = if high / low < 2000.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    (first..=last).flat_map(|p| between.iter().map(move |m| m * 10f64.powi(p))).map(|x| (x, tick(rounded(x)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &Ticks, scale: Scale, range: (f64, f64)) -> Vec<String> {
        ticks.within(scale, range, 8).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(&Ticks::Auto, Scale::Linear, (0.0, 339.0)), ["0", "50", "100", "150", "200", "250", "300"]);
        assert_eq!(
            labels(&Ticks::Auto, Scale::Linear, (-0.31, 0.3)),
            ["−0.3", "−0.2", "−0.1", "0", "0.1", "0.2", "0.3"]
        );
        assert_eq!(labels(&Ticks::Auto, Scale::Log, (3.0, 1500.0)), ["5", "10", "20", "50", "100", "200", "500", "1k"]);
        assert_eq!(labels(&Ticks::Auto, Scale::Log, (1.0, 1e5)), ["1", "10", "100", "1k", "10k", "100k"]);
        let nines: Vec<String> = labels(&Ticks::Auto, Scale::Nines, (0.0, 0.9995));
        assert_eq!(nines, ["0\u{202f}%", "50\u{202f}%", "90\u{202f}%", "99\u{202f}%", "99.9\u{202f}%"]);
    }

    #[test]
    fn time_is_read_in_its_own_units() {
        let of = |range| {
            let (ticks, unit) = Ticks::seconds(range);
            (labels(&ticks, Scale::Linear, range), unit)
        };
        assert_eq!(of((0.0, 3501.7)), (["0", "10", "20", "30", "40", "50"].map(String::from).to_vec(), "min"));
        assert_eq!(of((0.0, 0.9)).1, "s");
        assert_eq!(of((0.0, 86_400.0)).1, "h");
        assert_eq!(of((0.0, 121.0 * 86_400.0)).0, ["0", "28", "56", "84", "112"]);
        assert_eq!(of((0.0, 1e12)).1, "days");
    }

    #[test]
    fn odd_ranges_give_few_ticks_and_no_endless_loop() {
        for range in [(0.0, 0.0), (1e-300, 1e300), (5.0, 5.0), (-1e18, 1e18), (f64::MIN_POSITIVE, 1.0)] {
            for scale in [Scale::Linear, Scale::Log] {
                if range.0 > 0.0 || scale == Scale::Linear {
                    assert!(Ticks::Auto.within(scale, range, 8).len() <= 9, "{range:?}");
                }
            }
        }
    }
}
