//! One self-contained HTML page: readable without JavaScript and without a network, light and dark, on paper and on a phone.
//!
//! A page is a list of sections; a section is plots, tables and remarks. Plots are inline SVG drawn here, each with its data
//! behind it as a table. The script only adds a switch for the colours and a reading under the pointer.

mod attachment;
pub mod figure;
mod html;
mod number;
mod palette;
mod plot;
mod table;
mod timeline;
mod verdict;

pub use attachment::{Attachment, Packed};
pub use number::{brief, count, interval, percent};
pub use plot::{Axis, Mark, Plot, Point, Scale, Series, Ticks};
pub use table::{Column, Table};
pub use timeline::Timeline;
pub use verdict::{Strip, Tone};

use base64::Engine;
use html::Html;
use sha2::{Digest, Sha256};

const STYLE: &str = concat!(include_str!("page.css"), include_str!("plot.css"));
const SCRIPT: &str = concat!(include_str!("page.js"), include_str!("downloads.js"), include_str!("timeline.js"));

/// A page. All text is escaped; there is no way to put markup in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What it is about: a file, a run.
    pub title: String,
    /// What sort of thing that is, in a word or two: a badge beside the title.
    pub kind: String,
    /// The result in a sentence or two.
    pub lead: String,
    /// Whether to believe the rest, before the rest.
    pub verdict: Option<Strip>,
    /// The figures to see first.
    pub cards: Vec<Card>,
    /// The rest, in order.
    pub sections: Vec<Section>,
    /// What is not on the page, and why.
    pub absent: Vec<String>,
    /// Files inside the page.
    pub attachments: Vec<Attachment>,
    /// Last line: which program, which input.
    pub footer: String,
}

/// One figure to see first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Card {
    /// What it is.
    pub label: String,
    /// The figure, with its unit.
    pub value: String,
    /// What to know beside it.
    pub detail: String,
    /// The run does not count: the figure is struck out.
    pub void: bool,
}

/// A part of a page, with its place in the list of contents.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its anchor: lower-case letters and dashes.
    pub id: String,
    /// Its heading.
    pub heading: String,
    /// What it holds, in order.
    pub blocks: Vec<Block>,
}

/// What a section can hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A plot; neighbouring plots stand side by side where there is room.
    Plot(Plot),
    /// A timeline of requests.
    Timeline(Timeline),
    /// A table.
    Table(Table),
    /// A long table, folded away until it is asked for.
    Folded(Table),
    /// A command to be copied.
    Command(String),
    /// A remark.
    Note(String),
    /// A remark that changes how figures are to be read.
    Beware(String),
}

impl Page {
    /// The whole page as one file.
    pub fn html(&self) -> String {
        let mut html = Html::default();
        self.head(&mut html);
        html.raw("<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n");
        self.contents(&mut html);
        html.raw("<main id=\"main\">\n<header>\n");
        html.raw("<h1>").text(&self.title).raw("</h1>\n");
        html.raw("<p class=\"badge\">").text(&self.kind).raw("</p>\n");
        html.raw("<p class=\"lead\">").text(&self.lead).raw("</p>\n</header>\n");
        if let Some(verdict) = &self.verdict {
            verdict.html(&mut html);
        }
        self.cards(&mut html);
        for section in &self.sections {
            section.html(&mut html);
        }
        if !self.absent.is_empty() {
            html.raw("<section id=\"absent\">\n<h2>Not on this page</h2>\n<ul>\n");
            for why in &self.absent {
                html.raw("<li>").text(why).raw("</li>\n");
            }
            html.raw("</ul>\n</section>\n");
        }
        html.raw("</main>\n<footer>").text(&self.footer).raw("</footer>\n");
        for attachment in &self.attachments {
            attachment.html(&mut html);
        }
        html.raw("<script>").raw(SCRIPT);
        html.raw("</script>\n</body>\n</html>\n");
        html.done()
    }

    /// Its plots as SVG files for papers: names without their ending, each once, and what is in them.
    pub fn svgs(&self) -> Vec<(String, String)> {
        let plots = self.sections.iter().flat_map(|s| &s.blocks).filter_map(|b| match b {
            Block::Plot(plot) => Some(plot),
            _ => None,
        });
        let mut files: Vec<(String, String)> = Vec::new();
        for plot in plots {
            let name = plain_name(&plot.title);
            let taken = |name: &str| files.iter().any(|(other, _)| other == name);
            let numbered = (2..).map(|n| format!("{name}-{n}"));
            let free = [name.clone()].into_iter().chain(numbered).find(|name| !taken(name));
            files.extend(free.map(|name| (name, plot.svg())));
        }
        files
    }

    /// Nothing may be loaded, and nothing runs or styles but what is ours.
    fn head(&self, html: &mut Html) {
        let style = format!("{}{STYLE}", palette::css());
        html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        html.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
        html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; ");
        html.raw(&format!("style-src '{}'; script-src '{}'\">\n", hash(&style), hash(SCRIPT)));
        html.raw("<link rel=\"icon\" href=\"data:,\">\n<title>").text(&self.title).raw(" · ").text(&self.kind);
        html.raw("</title>\n<style>").raw(&style).raw("</style>\n</head>\n");
    }

    fn contents(&self, html: &mut Html) {
        html.raw("<nav aria-label=\"Contents\">\n<ul>\n");
        for section in &self.sections {
            html.raw("<li><a href=\"#").attribute(&section.id).raw("\">").text(&section.heading).raw("</a></li>\n");
        }
        html.raw(
            "</ul>\n<p class=\"theme\" hidden><label>Colours <select id=\"theme\"><option value=\"auto\">as the system",
        );
        html.raw("</option><option value=\"light\">light</option><option value=\"dark\">dark</option></select></label></p>\n");
        html.raw("</nav>\n");
    }

    fn cards(&self, html: &mut Html) {
        if self.cards.is_empty() {
            return;
        }
        html.raw("<dl class=\"cards\">\n");
        for card in &self.cards {
            html.raw("<div><dt>").text(&card.label).raw("</dt><dd><b>");
            html.raw(if card.void { "<s>" } else { "" }).text(&card.value).raw(if card.void { "</s>" } else { "" });
            html.raw("</b> <span>");
            html.text(&card.detail).raw("</span></dd></div>\n");
        }
        html.raw("</dl>\n");
    }
}

impl Section {
    fn html(&self, html: &mut Html) {
        html.raw("<section id=\"").attribute(&self.id).raw("\">\n<h2>").text(&self.heading).raw("</h2>\n");
        let is_plot = |block: &Block| matches!(block, Block::Plot(_));
        for run in self.blocks.chunk_by(|a, b| is_plot(a) && is_plot(b)) {
            let plots = run.iter().any(is_plot);
            html.raw(if plots { "<div class=\"plots\">\n" } else { "" });
            run.iter().for_each(|block| block.html(html));
            html.raw(if plots { "</div>\n" } else { "" });
        }
        html.raw("</section>\n");
    }
}

impl Block {
    fn html(&self, html: &mut Html) {
        match self {
            Block::Plot(plot) => plot.html(html),
            Block::Timeline(timeline) => timeline.html(html),
            Block::Table(table) => table.html(html),
            Block::Folded(table) => {
                html.raw("<details class=\"folded\"><summary>").text(&table.caption).raw("</summary>\n");
                table.html(html);
                html.raw("</details>\n");
            }
            Block::Command(text) => {
                html.raw("<pre class=\"command\" tabindex=\"0\" role=\"region\" aria-label=\"The command\"><code>")
                    .text(text);
                html.raw("</code></pre>\n");
            }
            Block::Note(text) => drop(html.raw("<p>").text(text).raw("</p>\n")),
            Block::Beware(text) => {
                html.raw("<p class=\"beware\"><b>Beware:</b> ").text(text).raw("</p>\n");
            }
        }
    }
}

/// A title as the name of a file: lower-case letters, digits and dashes, as the page's script names what it saves.
fn plain_name(title: &str) -> String {
    let lower = title.to_lowercase();
    let parts: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "plot".into() } else { parts.join("-") }
}

/// A source expression of a content security policy.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text)))
}
