use super::html::Html;

/// A table. The first column stays in view when the table is wider than the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, a cell a column.
    pub rows: Vec<Vec<String>>,
    /// Rows, from 0, whose run was INVALID: struck out, and said to be so in their first cell.
    pub invalid: Vec<usize>,
}

/// The head of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Words, to the left.
    Text(String),
    /// Figures, to the right.
    Figure(String),
}

impl Table {
    pub(super) fn html(&self, html: &mut Html) {
        html.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"").attribute(&self.caption);
        html.raw("\"><table>\n<caption>").text(&self.caption).raw("</caption>\n<thead><tr>");
        for column in &self.columns {
            html.raw("<th scope=\"col\"").raw(column.class()).raw(">").text(column.head()).raw("</th>");
        }
        html.raw("</tr></thead>\n<tbody>\n");
        for (k, row) in self.rows.iter().enumerate() {
            let invalid = self.invalid.contains(&k);
            html.raw(if invalid { "<tr class=\"void\">" } else { "<tr>" });
            for (i, (cell, column)) in row.iter().zip(&self.columns).enumerate() {
                let (open, close) = if i == 0 { ("<th scope=\"row\"", "</th>") } else { ("<td", "</td>") };
                html.raw(open).raw(column.class()).raw(">").text(cell);
                html.raw(if invalid && i == 0 { " <b>INVALID</b>" } else { "" }).raw(close);
            }
            html.raw("</tr>\n");
        }
        html.raw("</tbody>\n</table></div>\n");
    }
}

impl Column {
    fn head(&self) -> &str {
        match self {
            Column::Text(head) | Column::Figure(head) => head,
        }
    }

    fn class(&self) -> &'static str {
        match self {
            Column::Text(_) => "",
            Column::Figure(_) => " class=\"n\"",
        }
    }
}
