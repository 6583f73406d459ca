use super::html::Html;

/// The timeline of single requests, drawn by the page's script from packed rows: lanes where there is room, density where there is not.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Its heading.
    pub title: String,
    /// What it shows in a sentence.
    pub finding: String,
    /// The attachment with the rows: columns `due_us` (rising), `wait_us`, `ttft_us`, `decode_us`, `life_us`, `outcome`, `id`.
    pub rows: String,
}

impl Timeline {
    pub(super) fn html(&self, html: &mut Html) {
        html.raw("<figure class=\"timeline\" data-rows=\"").attribute(&self.rows).raw("\">\n<figcaption><h3>");
        html.text(&self.title).raw("</h3><p>").text(&self.finding);
        html.raw(" Drag or use the arrow keys to move, the wheel, + and − to zoom, 0 for all, click a request to read it.</p></figcaption>\n");
        html.raw("<div class=\"bar\" hidden></div>\n<canvas role=\"img\" tabindex=\"0\" aria-label=\"")
            .attribute(&self.title);
        html.raw(": ").attribute(&self.finding).raw("\" hidden></canvas>\n<ul class=\"legend\" hidden></ul>\n");
        html.raw("<output class=\"reading\" aria-live=\"polite\"></output>\n");
        html.raw("<p class=\"without\">The timeline needs the page's script. The plots over time show the same in sum, and the tables below the requests that matter most.</p>\n");
        html.raw("</figure>\n");
    }
}
