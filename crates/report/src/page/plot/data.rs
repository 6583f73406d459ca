use super::{Mark, Plot, Point, Ticks};
use crate::page::html::Html;

/// Which columns a plot's table has beside x and y.
struct Columns {
    series: bool,
    what: bool,
    extents: bool,
    intervals: bool,
}

impl Plot {
    /// The data behind the plot. `data-f` is the place across the plot, 0 to 1: what the script needs to read under the pointer.
    pub(super) fn data(&self, x_range: (f64, f64), html: &mut Html) {
        let shown = || self.series.iter().flat_map(|s| &s.points);
        let columns = Columns {
            series: self.series.len() > 1,
            what: shown().any(|p| !p.label.is_empty() || p.hollow),
            extents: shown().any(|p| p.x_range.is_some()),
            intervals: shown().any(|p| p.y_range.is_some()),
        };
        html.raw("<details><summary>The data</summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The data of ");
        html.attribute(&self.title).raw("\"><table>\n<thead><tr>");
        self.head(&columns, html);
        html.raw("</tr></thead>\n<tbody>\n");
        for series in &self.series {
            for p in series.points.iter().filter(|p| self.shows(series.mark, p)) {
                html.raw("<tr data-f=\"").raw(&format!("{:.4}", self.x.scale.part(p.x, x_range))).raw("\">");
                if columns.series {
                    html.raw("<td>").text(&series.name).raw("</td>");
                }
                self.row(&columns, series.mark, p, html);
                html.raw("</tr>\n");
            }
        }
        html.raw("</tbody>\n</table></div></details>\n");
    }

    fn head(&self, columns: &Columns, html: &mut Html) {
        let heads = [
            (columns.series, "", "series"),
            (columns.what, "", "what"),
            (true, " class=\"n\"", &self.x.label),
            (columns.extents, " class=\"n\"", "from"),
            (columns.extents, " class=\"n\"", "to"),
            (true, " class=\"n\"", &self.y.label),
            (columns.intervals, " class=\"n\"", "low"),
            (columns.intervals, " class=\"n\"", "high"),
        ];
        for (_, class, text) in heads.into_iter().filter(|head| head.0) {
            html.raw("<th scope=\"col\"").raw(class).raw(">").text(text).raw("</th>");
        }
    }

    fn row(&self, columns: &Columns, mark: Mark, p: &Point, html: &mut Html) {
        if columns.what {
            html.raw("<td>").text(&p.label).raw(if p.hollow { " (INVALID)" } else { "" }).raw("</td>");
        }
        let x = |x: f64| self.x.ticks.reading(x);
        let y =
            |y: f64| if let Ticks::Named(_) = self.y.ticks { self.y.ticks.reading(y) } else { self.y.scale.reading(y) };
        let level = mark == Mark::Level;
        let flat = matches!(mark, Mark::Upright | Mark::Zone);
        let cells = [
            (true, (!level).then(|| x(p.x))),
            (columns.extents, p.x_range.map(|r| x(r.0))),
            (columns.extents, p.x_range.map(|r| x(r.1))),
            (true, (!flat).then(|| y(p.y))),
            (columns.intervals, p.y_range.map(|r| y(r.0))),
            (columns.intervals, p.y_range.map(|r| y(r.1))),
        ];
        for (_, text) in cells.into_iter().filter(|cell| cell.0) {
            html.raw("<td class=\"n\">").text(&text.unwrap_or_default()).raw("</td>");
        }
    }
}
