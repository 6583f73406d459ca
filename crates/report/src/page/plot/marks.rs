//! Each kind of mark.

use super::draw::{Canvas, line};
use super::labels::Labels;
use super::{Mark, Plot, Point, Series};
use crate::page::html::Html;
use crate::page::palette::{DASHES, SERIES};

/// Values to pixels.
struct Places<'a> {
    plot: &'a Plot,
    canvas: &'a Canvas,
}

impl Places<'_> {
    fn x(&self, value: f64) -> f64 {
        self.canvas.x.place(self.plot.x.scale.part(value, self.canvas.x.values))
    }

    fn y(&self, value: f64) -> f64 {
        self.canvas.y.place(self.plot.y.scale.part(value, self.canvas.y.values))
    }
}

/// Draws a series in the `colour`-th colour.
pub(super) fn series(
    plot: &Plot,
    canvas: &Canvas,
    series: &Series,
    colour: usize,
    labels: &mut Labels,
    html: &mut Html,
) {
    html.raw(&format!("<g class=\"s{}\">", colour % SERIES + 1));
    let at = Places { plot, canvas };
    let shown = |p: &&Point| plot.shows(series.mark, p);
    match series.mark {
        Mark::Line | Mark::Step | Mark::Frontier => path(&at, series, colour, html),
        Mark::Band => band(&at, series, "band", html),
        Mark::Haze => band(&at, series, "haze", html),
        Mark::Bars(width) => series.points.iter().filter(shown).for_each(|p| bar(&at, p, width, html)),
        Mark::Dots => series.points.iter().filter(shown).for_each(|p| dot(&at, p, colour, labels, html)),
        Mark::Level => {
            for p in series.points.iter().filter(shown) {
                open_path(colour, html);
                html.raw("M").number(canvas.x.pixels.0).raw(" ").number(at.y(p.y));
                html.raw("H").number(canvas.x.pixels.1).raw("\"/>");
            }
        }
        Mark::Upright => {
            for p in series.points.iter().filter(shown) {
                let x = at.x(p.x);
                open_path(colour, html);
                html.raw("M")
                    .number(x)
                    .raw(" ")
                    .number(canvas.y.pixels.1)
                    .raw("V")
                    .number(canvas.y.pixels.0)
                    .raw("\"/>");
                labels.at_top(x, &p.label);
            }
        }
        Mark::Stamp => {
            let ((left, right), (bottom, top)) = (canvas.x.pixels, canvas.y.pixels);
            html.raw("<text class=\"stamp\" text-anchor=\"middle\" x=\"").number((left + right) / 2.0);
            html.raw("\" y=\"").number((top + bottom) / 2.0).raw("\">").text(&series.name).raw("</text>");
        }
        Mark::Zone => {
            for (low, high) in series.points.iter().filter(shown).filter_map(|p| p.x_range) {
                let (from, to, (bottom, top)) = (at.x(low), at.x(high), canvas.y.pixels);
                html.raw("<rect class=\"zone\" x=\"").number(from).raw("\" y=\"").number(top).raw("\" width=\"");
                html.number((to - from).max(0.8)).raw("\" height=\"").number(bottom - top).raw("\"/>");
            }
        }
    }
    html.raw("</g>\n");
}

fn path(at: &Places<'_>, series: &Series, colour: usize, html: &mut Html) {
    open_path(colour, html);
    let mut open = false;
    for p in &series.points {
        if !at.plot.shows(series.mark, p) {
            open = false;
            continue;
        }
        let (x, y) = (at.x(p.x), at.y(p.y));
        match (open, series.mark) {
            // A length of nothing with round ends: a point that stands alone is seen too.
            (false, _) => drop(html.raw("M").number(x).raw(" ").number(y).raw("h0")),
            (true, Mark::Step) => drop(html.raw("H").number(x).raw("V").number(y)),
            (true, Mark::Frontier) => drop(html.raw("V").number(y).raw("H").number(x)),
            (true, _) => drop(html.raw("L").number(x).raw(" ").number(y)),
        }
        open = true;
    }
    html.raw("\"/>");
}

/// Up along the upper ends and back along the lower ones, for each stretch without a gap.
fn band(at: &Places<'_>, series: &Series, class: &str, html: &mut Html) {
    for stretch in series.points.split(|p| !at.plot.shows(series.mark, p)).filter(|s| !s.is_empty()) {
        let corners =
            |pick: fn((f64, f64)) -> f64| move |p: &Point| (at.x(p.x), at.y(pick(p.y_range.unwrap_or((p.y, p.y)))));
        html.raw("<polygon class=\"").raw(class).raw("\" points=\"");
        for (x, y) in stretch.iter().map(corners(|r| r.1)).chain(stretch.iter().rev().map(corners(|r| r.0))) {
            html.number(x).raw(",").number(y).raw(" ");
        }
        html.raw("\"/>");
    }
}

fn bar(at: &Places<'_>, p: &Point, width: f64, html: &mut Html) {
    let ground = at.canvas.y.pixels.0;
    let (from, to, top) = (at.x(p.x - width / 2.0), at.x(p.x + width / 2.0), at.y(p.y));
    html.raw("<rect x=\"").number(from).raw("\" y=\"").number(top).raw("\" width=\"");
    html.number((to - from).max(0.4)).raw("\" height=\"").number((ground - top).max(0.0)).raw("\"/>");
}

fn dot(at: &Places<'_>, p: &Point, colour: usize, labels: &mut Labels, html: &mut Html) {
    let (x, y) = (at.x(p.x), at.y(p.y));
    if let Some((low, high)) = p.x_range {
        line(html, "whisker", (at.x(low), y), (at.x(high), y));
    }
    if let Some((low, high)) = p.y_range {
        line(html, "whisker", (x, at.y(low)), (x, at.y(high)));
    }
    shape(colour, p.hollow, x, y, html);
    labels.keep_free(x, y);
    if !p.label.is_empty() {
        labels.beside(x, y, &p.label);
    }
}

/// A shape of each colour's own: the second channel of dots.
fn shape(colour: usize, hollow: bool, x: f64, y: f64, html: &mut Html) {
    const R: f64 = 4.0;
    let class = if hollow { " class=\"hollow\"" } else { "" };
    let corners: &[(f64, f64)] = match colour % SERIES {
        0 => {
            html.raw("<circle").raw(class).raw(" r=\"3.5\" cx=\"").number(x).raw("\" cy=\"").number(y).raw("\"/>");
            return;
        }
        1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2 => &[(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)],
        3 => &[(0.0, -1.2), (1.2, 0.0), (0.0, 1.2), (-1.2, 0.0)],
        _ => &[(0.0, 1.2), (1.1, -0.9), (-1.1, -0.9)],
    };
    html.raw("<polygon").raw(class).raw(" points=\"");
    for (dx, dy) in corners {
        html.number(x + R * dx).raw(",").number(y + R * dy).raw(" ");
    }
    html.raw("\"/>");
}

/// What a series looks like, for the legend: 28 by 12.
pub(super) fn sample(colour: usize, mark: Mark, html: &mut Html) {
    html.raw(&format!("<g class=\"s{}\">", colour % SERIES + 1));
    match mark {
        Mark::Line | Mark::Step | Mark::Level | Mark::Frontier | Mark::Upright => {
            open_path(colour, html);
            html.raw("M1 6H27\"/>");
        }
        Mark::Bars(_) => drop(html.raw("<rect x=\"6\" y=\"1\" width=\"16\" height=\"10\"/>")),
        Mark::Band => drop(html.raw("<polygon class=\"band\" points=\"1,1 27,1 27,11 1,11\"/>")),
        Mark::Haze => drop(html.raw("<polygon class=\"haze\" points=\"1,1 27,1 27,11 1,11\"/>")),
        Mark::Zone => drop(html.raw("<rect class=\"zone\" x=\"6\" y=\"0\" width=\"16\" height=\"12\"/>")),
        Mark::Stamp => drop(html.raw("<text x=\"9\" y=\"11\">✗</text>")),
        Mark::Dots => shape(colour, false, 14.0, 6.0, html),
    }
    html.raw("</g>");
}

fn open_path(colour: usize, html: &mut Html) {
    html.raw("<path stroke-dasharray=\"").raw(DASHES[colour % DASHES.len()]).raw("\" d=\"");
}
