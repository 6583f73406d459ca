use crate::clock;
use tailbound_clock::Time;

/// What one stamped receive brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// Bytes received; 0 at the end of the stream.
    pub len: usize,
    /// When the last of them reached the kernel, on the wall clock (ns since 1970); map it with [`StampMap::map`].
    pub wall_ns: Option<u64>,
}

/// Maps the kernel's wall-clock receive stamps to the monotonic clock.
///
/// The two clocks run at the same speed (both are slewed alike), so their difference is constant until somebody *sets* the wall
/// clock. Each reading of the pair brackets the difference in an interval, and what is known is the intersection of these
/// intervals, so jitter in the readings moves no stamp. When a reading lies apart from it, the wall clock was set: the new difference is
/// taken, and the old one is kept for stamps that were taken before the step.
#[derive(Clone, Debug)]
pub struct StampMap {
    offset: Bracket,
    before_step: Option<Bracket>,
    steps: u32,
}

/// wall − monotonic lies in `low..=high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bracket {
    low: i64,
    high: i64,
}

impl Bracket {
    fn width(self) -> i64 {
        self.high - self.low
    }
    fn middle(self) -> i64 {
        self.low + self.width() / 2
    }
}

/// Stamps this much outside the interval that must hold them are still taken, and held at its edge: the uncertainty of the mapping.
const SLACK_NS: i64 = 50_000;
/// A bracket this narrow is as good as it gets; wider ones are re-read.
const NARROW_NS: i64 = 2_000;

impl StampMap {
    /// Reads both clocks a few times and keeps the narrowest bracket.
    pub fn new() -> StampMap {
        StampMap { offset: read_narrow(16), before_step: None, steps: 0 }
    }

    /// Compares the clocks again. Call it once per batch of reads, after the wait and before the reads: about 0.1 µs.
    pub fn refresh(&mut self) {
        let seen = read_once();
        if self.consistent(seen) {
            return;
        }
        self.observe(read_narrow(8));
    }

    fn consistent(&mut self, seen: Bracket) -> bool {
        let both = Bracket { low: seen.low.max(self.offset.low), high: seen.high.min(self.offset.high) };
        let overlap = both.low <= both.high;
        if overlap {
            self.offset = both;
        }
        overlap
    }

    /// Takes a reading that a single look found inconsistent.
    fn observe(&mut self, seen: Bracket) {
        if self.consistent(seen) {
            return;
        }
        // Less than the uncertainty of a mapping is drift, not somebody setting the clock.
        if (seen.middle() - self.offset.middle()).abs() > SLACK_NS {
            self.before_step = Some(self.offset);
            self.steps += 1;
        }
        self.offset = seen;
    }

    /// The monotonic moment of a kernel stamp that must lie in `after..=now` (a response's bytes cannot come before its request
    /// was written, nor later than they were read). `None` if no reading of the clocks puts it there: use the read's own time.
    pub fn map(&self, wall_ns: u64, after: Time, now: Time) -> Option<Time> {
        [Some(self.offset), self.before_step].into_iter().flatten().find_map(|offset| {
            let at = Time(u64::try_from(wall_ns as i64 - offset.middle()).ok()?);
            let plausible = at.minus(after) >= -SLACK_NS && at.minus(now) <= SLACK_NS;
            plausible.then(|| at.max(after).min(now))
        })
    }

    /// How often the wall clock was seen to be set.
    pub fn steps(&self) -> u32 {
        self.steps
    }
}

impl Default for StampMap {
    fn default() -> Self {
        StampMap::new()
    }
}

fn read_once() -> Bracket {
    let before = clock::now().ns() as i64;
    let wall = clock::wall_ns() as i64;
    let after = clock::now().ns() as i64;
    Bracket { low: wall - after, high: wall - before }
}

fn read_narrow(tries: u32) -> Bracket {
    let mut best = read_once();
    for _ in 1..tries {
        if best.width() <= NARROW_NS / 20 {
            break;
        }
        let seen = read_once();
        if seen.width() < best.width() {
            best = seen;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn around(offset: i64, width: i64) -> Bracket {
        Bracket { low: offset - width / 2, high: offset - width / 2 + width }
    }

    #[test]
    fn the_live_clocks_agree_with_themselves() {
        let mut map = StampMap::new();
        for _ in 0..1_000 {
            let after = clock::now();
            let wall = clock::wall_ns();
            let now = clock::now();
            map.refresh();
            let at = map.map(wall, after, now).expect("a stamp taken just now maps");
            assert!(at >= after && at <= now);
        }
    }

    #[test]
    fn a_stamp_outside_its_interval_is_refused() {
        let map = StampMap { offset: around(1_000_000_000, 100), before_step: None, steps: 0 };
        assert_eq!(map.map(1_005_000_000, Time(0), Time(9_000_000)), Some(Time(5_000_000)));
        assert_eq!(map.map(1_005_000_000, Time(0), Time(4_999_990)), Some(Time(4_999_990)), "held at the edge");
        assert_eq!(map.map(1_005_000_000, Time(0), Time(4_000_000)), None, "from the future");
        assert_eq!(map.map(1_005_000_000, Time(6_000_000), Time(9_000_000)), None, "before its request");
        assert_eq!(map.map(5, Time(0), Time(1)), None);
    }

    #[test]
    fn stamps_from_both_sides_of_a_clock_step_map_right() {
        let mut map = StampMap { offset: around(1_000_000_000, 100), before_step: None, steps: 0 };
        map.observe(around(4_600_000_000, 100)); // set forward by 3.6 s
        assert_eq!(map.steps(), 1);
        assert_eq!(
            map.map(1_002_000_000, Time(1_500_000), Time(3_000_000)),
            Some(Time(2_000_000)),
            "taken before the step"
        );
        assert_eq!(map.map(4_602_500_000, Time(1_500_000), Time(3_000_000)), Some(Time(2_500_000)), "taken after it");
    }

    proptest! {
        /// However wide and skewed the brackets are, as long as they hold the true offset no stamp moves by more than the best width.
        #[test]
        fn jitter_in_the_readings_moves_no_stamp(
            offset in 1_000_000_000i64..2_000_000_000_000_000_000,
            readings in proptest::collection::vec((0i64..40_000, 0i64..40_000), 1..50),
            at in 0u64..1_000_000_000_000,
        ) {
            let mut map = StampMap { offset: Bracket { low: offset - 20, high: offset + 30 }, before_step: None, steps: 0 };
            for (below, above) in readings {
                map.observe(Bracket { low: offset - below, high: offset + above });
                prop_assert_eq!(map.steps(), 0);
                let mapped = map.map((at as i64 + offset) as u64, Time(0), Time(at + 100_000)).expect("plausible");
                prop_assert!(mapped.minus(Time(at)).abs() <= 50, "{}", mapped.minus(Time(at)));
            }
        }
    }
}
