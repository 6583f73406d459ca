use super::{Mark, Plot, Series};
use crate::page::html::Html;
use crate::page::palette::{DASHES, SERIES};

/// One drawing of a plot: its size, its frame, the values at the frame's edges. Pixels of the SVG's own.
pub(super) struct Canvas {
    class: &'static str,
    size: (f64, f64),
    x: Edge,
    y: Edge,
    ticks: (usize, usize),
}

/// One direction: from where to where in pixels, and in values.
struct Edge {
    pixels: (f64, f64),
    values: (f64, f64),
}

impl Canvas {
    /// Beside another, or alone on a tablet.
    pub(super) fn wide(x: (f64, f64), y: (f64, f64)) -> Canvas {
        Canvas::new("wide", (640.0, 300.0), x, y, (8, 6))
    }

    /// On a phone.
    pub(super) fn narrow(x: (f64, f64), y: (f64, f64)) -> Canvas {
        Canvas::new("narrow", (340.0, 260.0), x, y, (5, 5))
    }

    fn new(class: &'static str, size: (f64, f64), x: (f64, f64), y: (f64, f64), ticks: (usize, usize)) -> Canvas {
        let x = Edge { pixels: (58.0, size.0 - 14.0), values: x };
        let y = Edge { pixels: (size.1 - 42.0, 26.0), values: y };
        Canvas { class, size, x, y, ticks }
    }
}

impl Edge {
    fn place(&self, part: f64) -> f64 {
        self.pixels.0 + part.clamp(0.0, 1.0) * (self.pixels.1 - self.pixels.0)
    }
}

/// The drawing.
pub(super) fn svg(plot: &Plot, canvas: &Canvas, html: &mut Html) {
    let (width, height) = canvas.size;
    html.raw(&format!("<svg class=\"{}\" viewBox=\"0 0 {width} {height}\" role=\"img\" tabindex=\"0\" ", canvas.class));
    html.raw(&format!("data-left=\"{}\" data-right=\"{}\" ", canvas.x.pixels.0, canvas.x.pixels.1));
    html.raw("aria-label=\"").attribute(&plot.title).raw(": ").attribute(&plot.finding).raw("\">\n");
    frame(plot, canvas, html);
    for (i, series) in plot.series.iter().enumerate() {
        let points: Vec<(f64, f64)> = series.points.iter().copied().filter(|p| plot.shows(*p)).collect();
        html.raw(&format!("<g class=\"s{}\">", i % SERIES + 1));
        draw(plot, canvas, series, &points, i, html);
        html.raw("</g>\n");
    }
    let (top, bottom) = (canvas.y.pixels.1, canvas.y.pixels.0);
    html.raw(&format!("<line class=\"cursor\" y1=\"{top}\" y2=\"{bottom}\" visibility=\"hidden\"/></svg>\n"));
}

/// Rules, ticks and labels.
fn frame(plot: &Plot, canvas: &Canvas, html: &mut Html) {
    let ((left, right), (bottom, top)) = (canvas.x.pixels, canvas.y.pixels);
    for (value, label) in plot.y.ticks.within(plot.y.scale, canvas.y.values, canvas.ticks.1) {
        let y = canvas.y.place(plot.y.scale.part(value, canvas.y.values));
        line(html, "rule", (left, y), (right, y));
        text(html, "end", (left - 7.0, y + 4.0), &label);
    }
    for (value, label) in plot.x.ticks.within(plot.x.scale, canvas.x.values, canvas.ticks.0) {
        let x = canvas.x.place(plot.x.scale.part(value, canvas.x.values));
        line(html, "tick", (x, bottom), (x, bottom + 5.0));
        text(html, "middle", (x, bottom + 18.0), &label);
    }
    line(html, "axis", (left, bottom), (right, bottom));
    text(html, "end", (right, bottom + 36.0), &plot.x.label);
    text(html, "start", (4.0, top - 13.0), &plot.y.label);
}

fn draw(plot: &Plot, canvas: &Canvas, series: &Series, points: &[(f64, f64)], i: usize, html: &mut Html) {
    let x = |value: f64| canvas.x.place(plot.x.scale.part(value, canvas.x.values));
    let y = |value: f64| canvas.y.place(plot.y.scale.part(value, canvas.y.values));
    match series.mark {
        Mark::Line | Mark::Step => {
            open_path(i, html);
            for (k, point) in points.iter().enumerate() {
                let (px, py) = (x(point.0), y(point.1));
                if k == 0 {
                    html.raw("M").number(px).raw(" ").number(py);
                } else if series.mark == Mark::Step {
                    html.raw("H").number(px).raw("V").number(py);
                } else {
                    html.raw("L").number(px).raw(" ").number(py);
                }
            }
            html.raw("\"/>");
        }
        Mark::Bars(width) => {
            let ground = canvas.y.pixels.0;
            for point in points {
                let (from, to, py) = (x(point.0 - width / 2.0), x(point.0 + width / 2.0), y(point.1));
                html.raw("<rect x=\"").number(from).raw("\" y=\"").number(py).raw("\" width=\"");
                html.number((to - from).max(0.4)).raw("\" height=\"").number((ground - py).max(0.0)).raw("\"/>");
            }
        }
        Mark::Dots => {
            for point in points {
                html.raw("<circle r=\"3\" cx=\"").number(x(point.0)).raw("\" cy=\"").number(y(point.1)).raw("\"/>");
            }
        }
        Mark::Level => {
            for point in points {
                open_path(i, html);
                html.raw("M").number(canvas.x.pixels.0).raw(" ").number(y(point.1));
                html.raw("H").number(canvas.x.pixels.1).raw("\"/>");
            }
        }
    }
}

/// What a series looks like, for the legend: 28 by 12.
pub(super) fn sample(i: usize, mark: Mark, html: &mut Html) {
    html.raw(&format!("<g class=\"s{}\">", i % SERIES + 1));
    match mark {
        Mark::Line | Mark::Step | Mark::Level => {
            open_path(i, html);
            html.raw("M1 6H27\"/>");
        }
        Mark::Bars(_) => drop(html.raw("<rect x=\"6\" y=\"1\" width=\"16\" height=\"10\"/>")),
        Mark::Dots => drop(html.raw("<circle cx=\"14\" cy=\"6\" r=\"3\"/>")),
    }
    html.raw("</g>");
}

fn open_path(i: usize, html: &mut Html) {
    html.raw("<path stroke-dasharray=\"").raw(DASHES[i % DASHES.len()]).raw("\" d=\"");
}

fn line(html: &mut Html, class: &str, from: (f64, f64), to: (f64, f64)) {
    html.raw("<line class=\"").raw(class).raw("\" x1=\"").number(from.0).raw("\" y1=\"").number(from.1);
    html.raw("\" x2=\"").number(to.0).raw("\" y2=\"").number(to.1).raw("\"/>");
}

fn text(html: &mut Html, anchor: &str, at: (f64, f64), label: &str) {
    html.raw("<text text-anchor=\"").raw(anchor).raw("\" x=\"").number(at.0).raw("\" y=\"").number(at.1).raw("\">");
    html.text(label).raw("</text>\n");
}
