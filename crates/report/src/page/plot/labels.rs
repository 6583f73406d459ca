use super::draw::{Canvas, LETTER, cut, text};
use crate::page::html::Html;

/// Labels inside a plot: each where there is room for it, or left out (the table behind the plot has it).
pub(super) struct Labels {
    x: (f64, f64),
    y: (f64, f64),
    taken: Vec<[f64; 4]>,
    written: Vec<(f64, f64, String)>,
}

const HEIGHT: f64 = 14.0;

impl Labels {
    pub(super) fn new(canvas: &Canvas) -> Labels {
        let y = (canvas.y.pixels.1, canvas.y.pixels.0);
        Labels { x: canvas.x.pixels, y, taken: Vec::new(), written: Vec::new() }
    }

    /// Keeps a mark's own place free.
    pub(super) fn keep_free(&mut self, x: f64, y: f64) {
        self.taken.push([x - 4.0, y - 4.0, x + 4.0, y + 4.0]);
    }

    /// A label beside a mark: to the right, to the left, above or below.
    pub(super) fn beside(&mut self, x: f64, y: f64, label: &str) {
        let width = label.chars().count() as f64 * LETTER;
        let places =
            [(x + 8.0, y + 4.0), (x - 8.0 - width, y + 4.0), (x - width / 2.0, y - 8.0), (x - width / 2.0, y + 18.0)];
        if let Some(place) = places.into_iter().find(|at| self.free(*at, width)) {
            self.put(place, width, label.to_owned());
        }
    }

    /// A label at the top of an upright line, lower where the place is taken.
    pub(super) fn at_top(&mut self, x: f64, label: &str) {
        let label = cut(label, ((self.x.1 - self.x.0) / LETTER / 2.0) as usize);
        let width = label.chars().count() as f64 * LETTER;
        for step in 0..6 {
            let y = self.y.0 + HEIGHT * (1.0 + f64::from(step));
            let places = [(x + 5.0, y), (x - 5.0 - width, y)];
            if let Some(place) = places.into_iter().find(|at| self.free(*at, width)) {
                return self.put(place, width, label);
            }
        }
    }

    fn free(&self, (x, y): (f64, f64), width: f64) -> bool {
        let [left, top, right, bottom] = area(x, y, width);
        let inside = left >= self.x.0 && right <= self.x.1 && top >= self.y.0 && bottom <= self.y.1;
        inside && self.taken.iter().all(|t| right < t[0] || left > t[2] || bottom < t[1] || top > t[3])
    }

    fn put(&mut self, (x, y): (f64, f64), width: f64, label: String) {
        self.taken.push(area(x, y, width));
        self.written.push((x, y, label));
    }

    pub(super) fn write(self, html: &mut Html) {
        for (x, y, label) in self.written {
            text(html, "start", (x, y), &label);
        }
    }
}

fn area(x: f64, y: f64, width: f64) -> [f64; 4] {
    [x, y - HEIGHT + 3.0, x + width, y + 3.0]
}
