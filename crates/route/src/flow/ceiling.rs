/// How full the pool may be for a priority to go on: its ceiling, by its rank among those that wait or may come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum UsageLimit {
    /// The same for all.
    Static(f64),
    /// `priority-holdback-policy`: from `max` for the highest down to `min` for the lowest.
    Holdback { max: f64, min: f64 },
    /// `soft-reflective-ceiling-policy`: the fuller, the rarer lower priorities go, never the highest. Per priority, how
    /// often it was asked.
    SoftReflective { asked: Vec<(i32, u64)> },
}

impl UsageLimit {
    /// The ceiling of the `rank`-th of `count` priorities, 0 the highest. Asking counts as a turn.
    pub(crate) fn ceiling(&mut self, saturation: f64, priority: i32, rank: usize, count: usize) -> f64 {
        let below = rank as f64 / (count.max(2) - 1) as f64;
        match self {
            UsageLimit::Static(ceiling) => *ceiling,
            UsageLimit::Holdback { max, min } => *max - below * (*max - *min),
            UsageLimit::SoftReflective { .. } if rank == 0 => 1.0,
            UsageLimit::SoftReflective { asked } => {
                if saturation < 1.0 - below * saturation {
                    return 1.0;
                }
                if saturation >= 1.0 {
                    return 0.0;
                }
                let period = libm::round(saturation / (1.0 - saturation + 1e-9)).max(1.0) as u64;
                let place = asked.iter().position(|(p, _)| *p == priority).unwrap_or_else(|| {
                    asked.push((priority, 0));
                    asked.len() - 1
                });
                asked[place].1 += 1;
                f64::from(asked[place].1.is_multiple_of(period))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holdback_falls_evenly() {
        let mut limit = UsageLimit::Holdback { max: 1.0, min: 0.5 };
        let ceilings: Vec<f64> = (0..3).map(|rank| limit.ceiling(0.9, 0, rank, 3)).collect();
        assert_eq!(ceilings, [1.0, 0.75, 0.5]);
        assert_eq!(limit.ceiling(0.9, 0, 0, 1), 1.0);
    }

    #[test]
    fn the_soft_ceiling_opens_in_proportion() {
        let mut limit = UsageLimit::SoftReflective { asked: Vec::new() };
        // At 0.8 the lower of two opens in one of round(0.8 / 0.2) = 4 turns.
        let open = (0..400).filter(|_| limit.ceiling(0.8, -1, 1, 2) == 1.0).count();
        assert_eq!(open, 100);
        assert_eq!(limit.ceiling(0.3, -1, 1, 2), 1.0, "below its ceiling it is open");
        assert_eq!(limit.ceiling(1.0, -1, 1, 2), 0.0);
        assert_eq!(limit.ceiling(1.0, 5, 0, 2), 1.0, "the highest is never gated by it");
    }
}
