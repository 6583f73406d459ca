/// One line, band, set of bars or of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is. Shown where a plot has several.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Ascending in x. Points an axis cannot show (a logarithm's zero) are left out, and a line is broken there.
    pub points: Vec<Point>,
    /// Which of the colours (and dashes, and shapes) it has, from 0; `None`: its own, by its place among the series. A band takes the
    /// colour of the line it belongs to.
    pub colour: Option<usize>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// Straight lines from point to point.
    Line,
    /// y holds until the next x: distributions, counts per window.
    Step,
    /// A frontier: y holds from the x before, since what reaches a point reaches everything below and to the left of it.
    Frontier,
    /// A bar of this width (in units of x), centred on x, from zero.
    Bars(f64),
    /// A dot each, of a shape of the series' own; with whiskers over its ranges, hollow where it does not count, its label beside it.
    Dots,
    /// A level line across at each y: an objective, a mean.
    Level,
    /// An upright line at each x, with its label at the top: an objective, a zero.
    Upright,
    /// The area between the two ends of each point's `y_range`: an interval, percentiles.
    Band,
    /// The same, fainter: of two bands of one colour the outer one.
    Haze,
    /// The whole height of the plot over each point's `x_range`: a warm-up, a window, an interval of what is across.
    Zone,
    /// The series' name in large letters across the plot: that nothing in it counts.
    Stamp,
}

/// One point of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// An interval of x: whiskers, or a zone's extent.
    pub x_range: Option<(f64, f64)>,
    /// An interval of y: whiskers, or a band's extent.
    pub y_range: Option<(f64, f64)>,
    /// It does not count (its run was INVALID): drawn hollow.
    pub hollow: bool,
    /// What it is, for the table behind the plot, and beside the point where there is room.
    pub label: String,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Point {
        Point { x, y, ..Point::default() }
    }
}

impl Series {
    /// A series of plain points or of [`Point`]s.
    pub fn new<P: Into<Point>>(name: impl Into<String>, mark: Mark, points: impl IntoIterator<Item = P>) -> Series {
        Series { name: name.into(), mark, points: points.into_iter().map(Into::into).collect(), colour: None }
    }

    /// The area between two lines over x: `(x, low, high)`.
    pub fn band(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64, f64)>) -> Series {
        let point = |(x, low, high)| Point { x, y: high, y_range: Some((low, high)), ..Point::default() };
        Series::new(name, Mark::Band, points.into_iter().map(point))
    }

    /// A band drawn fainter, beside another of its colour.
    pub fn fainter(self) -> Series {
        Series { mark: if self.mark == Mark::Band { Mark::Haze } else { self.mark }, ..self }
    }

    /// The whole height of the plot from one x to another.
    pub fn zone(name: impl Into<String>, from: f64, until: f64) -> Series {
        let middle = from + (until - from) / 2.0;
        let point = Point { x: middle, x_range: Some((from, until)), ..Point::default() };
        Series::new(name, Mark::Zone, [point])
    }

    /// An upright line with its label.
    pub fn upright(name: impl Into<String>, x: f64, label: impl Into<String>) -> Series {
        Series::new(name, Mark::Upright, [Point { x, label: label.into(), ..Point::default() }])
    }

    /// A level line.
    pub fn level(name: impl Into<String>, y: f64) -> Series {
        Series::new(name, Mark::Level, [(0.0, y)])
    }

    /// Says across the plot that its run was INVALID.
    pub fn invalid_run() -> Series {
        Series::new("INVALID run", Mark::Stamp, [(0.0, 0.0); 0])
    }

    /// In the colour of the `i`-th series, from 0.
    pub fn coloured(self, i: usize) -> Series {
        Series { colour: Some(i), ..self }
    }

    /// The values that the axis across must have room for.
    pub(super) fn xs(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        let half = if let Mark::Bars(width) = self.mark { width / 2.0 } else { 0.0 };
        let skipped = matches!(self.mark, Mark::Level);
        self.points.iter().filter(move |_| !skipped).flat_map(move |p| {
            let (low, high) = p.x_range.unwrap_or((p.x, p.x));
            [low.min(p.x) - half, high.max(p.x) + half]
        })
    }

    /// The values that the axis up must have room for.
    pub(super) fn ys(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        let skipped = matches!(self.mark, Mark::Upright | Mark::Zone);
        self.points.iter().filter(move |_| !skipped).flat_map(|p| {
            let (low, high) = p.y_range.unwrap_or((p.y, p.y));
            [low.min(p.y), high.max(p.y)]
        })
    }
}
