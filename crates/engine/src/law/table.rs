use crate::Batch;

/// Step times from measured layers, in milliseconds: what depends on the number of tokens (the matrices), on the number of
/// sequences (sampling), and on the shape of attention, is looked up apart and added.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Every step: launch and host work.
    pub fixed_ms: f64,
    /// By tokens in the step.
    pub tokens: Curve,
    /// By sequences that sample.
    pub sequences: Curve,
    /// Attention by new prompt tokens, their prefix, decoding sequences and their mean context.
    pub attention: Grid,
}

/// Measured points of one variable, straight lines between them and on from the last two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    points: Vec<(f64, f64)>,
}

/// Measured points of four variables on a full grid, interpolated linearly in each and held at the edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    axes: [Vec<f64>; 4],
    /// The last axis varies fastest.
    values: Vec<f64>,
}

impl Table {
    /// The time of a step in milliseconds.
    pub fn ms(&self, batch: &Batch) -> f64 {
        let tokens = f64::from(batch.prefill_tokens + batch.decode_tokens);
        let sequences = f64::from(batch.decodes + batch.prefills);
        let context = batch.decode_context as f64 / f64::from(batch.decodes.max(1));
        let n = f64::from(batch.prefill_tokens);
        // Several chunks in a step count as one that looks at as many pairs: of all their tokens, with a prefix; or, if
        // even without a prefix that would be more pairs, of fewer tokens.
        let pairs = batch.prefill_attention;
        let (n, prefix) =
            if pairs < n * n / 2.0 { ((2.0 * pairs).sqrt(), 0.0) } else { (n, pairs / n.max(1.0) - n / 2.0) };
        self.fixed_ms
            + self.tokens.at(tokens)
            + self.sequences.at(sequences)
            + self.attention.at([n, prefix, f64::from(batch.decodes), context])
    }

    pub(super) fn validate(&self) -> Result<(), &'static str> {
        if !(self.fixed_ms.is_finite() && self.fixed_ms >= 0.0) {
            return Err("the fixed part is negative or not a number");
        }
        if self.tokens.points.is_empty() && self.attention.values.is_empty() {
            return Err("the table is empty");
        }
        Ok(())
    }
}

impl Curve {
    /// From (x, ms) in any order; of equal x the last counts. `None` if a number is not finite.
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>) -> Option<Curve> {
        let mut points: Vec<_> = points.into_iter().collect();
        if !points.iter().all(|(x, y)| x.is_finite() && y.is_finite()) {
            return None;
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.reverse();
        points.dedup_by(|a, b| a.0 == b.0);
        points.reverse();
        Some(Curve { points })
    }

    /// The value at `x`; 0 of no points.
    pub fn at(&self, x: f64) -> f64 {
        let p = &self.points;
        match p.len() {
            0 => return 0.0,
            1 => return p[0].1,
            _ => {}
        }
        let upper = p.partition_point(|(at, _)| *at < x).clamp(1, p.len() - 1);
        let ((x0, y0), (x1, y1)) = (p[upper - 1], p[upper]);
        // Below the first point there is nothing to go by but its value.
        let share = ((x - x0) / (x1 - x0)).max(0.0);
        y0 + (y1 - y0) * share
    }
}

impl Grid {
    /// From (coordinates, ms). Where the measurements have a hole, the value of the nearest measured point along the later
    /// axes, then the earlier ones, stands in. `None` if there is no point or a number is not finite.
    pub fn new(points: impl IntoIterator<Item = ([f64; 4], f64)>) -> Option<Grid> {
        let points: Vec<_> = points.into_iter().collect();
        let finite = points.iter().all(|(at, y)| y.is_finite() && at.iter().all(|x| x.is_finite()));
        if points.is_empty() || !finite {
            return None;
        }
        let axes: [Vec<f64>; 4] = std::array::from_fn(|axis| {
            let mut xs: Vec<f64> = points.iter().map(|(at, _)| at[axis]).collect();
            xs.sort_by(f64::total_cmp);
            xs.dedup();
            xs
        });
        let mut values = vec![f64::NAN; axes.iter().map(Vec::len).product()];
        let grid = Grid { axes, values: Vec::new() };
        for (at, y) in &points {
            let index: [usize; 4] = std::array::from_fn(|a| grid.axes[a].partition_point(|x| *x < at[a]));
            values[grid.index(index)] = *y;
        }
        Some(Grid { values: grid.filled(values), ..grid })
    }

    fn index(&self, at: [usize; 4]) -> usize {
        at.iter().zip(&self.axes).fold(0, |index, (i, axis)| index * axis.len() + i)
    }

    /// Fills holes from their nearest neighbour along one axis after the other, the last axis first.
    fn filled(&self, mut values: Vec<f64>) -> Vec<f64> {
        let mut stride = 1;
        for axis in self.axes.iter().rev() {
            let n = axis.len();
            let before = values.clone();
            for (i, value) in values.iter_mut().enumerate().filter(|(_, v)| v.is_nan()) {
                let (line, place) = (i - i / stride % n * stride, i / stride % n);
                let nearest = (0..n).filter(|k| !before[line + k * stride].is_nan()).min_by_key(|k| k.abs_diff(place));
                if let Some(k) = nearest {
                    *value = before[line + k * stride];
                }
            }
            stride *= n;
        }
        values
    }

    /// The value at a point; 0 of an empty grid.
    pub fn at(&self, at: [f64; 4]) -> f64 {
        if self.values.is_empty() {
            return 0.0;
        }
        let mut lower = [0; 4];
        let mut share = [0.0; 4];
        for (a, axis) in self.axes.iter().enumerate() {
            let x = at[a].clamp(axis[0], axis[axis.len() - 1]);
            let upper = axis.partition_point(|p| *p < x).max(1).min(axis.len() - 1);
            lower[a] = upper.saturating_sub(1);
            share[a] = if upper == 0 { 0.0 } else { (x - axis[upper - 1]) / (axis[upper] - axis[upper - 1]) };
        }
        let mut sum = 0.0;
        for corner in 0..16 {
            let mut weight = 1.0;
            let index: [usize; 4] = std::array::from_fn(|a| {
                let up = corner >> a & 1 == 1;
                weight *= if up { share[a] } else { 1.0 - share[a] };
                (lower[a] + usize::from(up)).min(self.axes[a].len() - 1)
            });
            if weight > 0.0 {
                sum += weight * self.values[self.index(index)];
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_through_its_points_and_on() {
        let curve = Curve::new([(4.0, 8.0), (1.0, 2.0), (2.0, 3.0), (2.0, 4.0)]).unwrap();
        assert_eq!([0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0].map(|x| curve.at(x)), [2.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(Curve::new([(f64::NAN, 1.0)]), None);
        assert_eq!(Curve::default().at(3.0), 0.0);
    }

    #[test]
    fn a_grid_is_exact_for_a_linear_function_and_holds_its_edges() {
        let f = |[a, b, c, d]: [f64; 4]| 1.0 + a + 2.0 * b + 3.0 * c + 4.0 * d;
        let mut points = Vec::new();
        for a in [0.0, 2.0, 8.0] {
            for b in [0.0, 1.0] {
                for c in [5.0] {
                    for d in [0.0, 16.0, 32.0] {
                        points.push(([a, b, c, d], f([a, b, c, d])));
                    }
                }
            }
        }
        let grid = Grid::new(points).unwrap();
        for at in [[0.0, 0.0, 5.0, 0.0], [1.0, 0.5, 5.0, 20.0], [8.0, 1.0, 5.0, 32.0]] {
            assert!((grid.at(at) - f(at)).abs() < 1e-9, "{at:?}");
        }
        assert_eq!(grid.at([99.0, 9.0, 0.0, 99.0]), f([8.0, 1.0, 5.0, 32.0]));
    }

    #[test]
    fn a_hole_takes_its_nearest_neighbour() {
        let points = [([0.0; 4], 1.0), ([0.0, 0.0, 1.0, 0.0], 2.0), ([0.0, 0.0, 1.0, 7.0], 3.0)];
        let grid = Grid::new(points).unwrap();
        assert_eq!(grid.at([0.0, 0.0, 0.0, 7.0]), 1.0);
    }
}
