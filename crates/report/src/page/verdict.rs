use super::html::Html;

/// The verdict, before any figure: a word with a sign, a sentence, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    /// How it went.
    pub tone: Tone,
    /// `VALID`, `INVALID`, `OBJECTIVE MISSED`.
    pub word: String,
    /// What that means here, in a sentence.
    pub sentence: String,
    /// Every reason, with what would mend it.
    pub reasons: Vec<(String, String)>,
    /// What to bear in mind beside the numbers, likewise.
    pub cautions: Vec<(String, String)>,
}

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It counts, and met what it had to.
    Good,
    /// It counts, and did not.
    Missed,
    /// It does not count.
    Void,
}

impl Strip {
    pub(super) fn html(&self, html: &mut Html) {
        // The sign, the word and the colour say the same: none of them is needed.
        let (class, sign) = match self.tone {
            Tone::Good => ("good", "✓"),
            Tone::Missed => ("missed", "!"),
            Tone::Void => ("void", "✗"),
        };
        html.raw("<section class=\"verdict ")
            .raw(class)
            .raw("\" aria-label=\"Verdict\">\n<p><b><span aria-hidden=\"true\">");
        html.raw(sign).raw("</span> ").text(&self.word).raw("</b> ").text(&self.sentence).raw("</p>\n");
        list(&self.reasons, "reasons", html);
        list(&self.cautions, "cautions", html);
        html.raw("</section>\n");
    }
}

fn list(items: &[(String, String)], class: &str, html: &mut Html) {
    if items.is_empty() {
        return;
    }
    html.raw("<ul class=\"").raw(class).raw("\">\n");
    for (what, mend) in items {
        html.raw("<li>").text(what);
        if !mend.is_empty() {
            html.raw(" <span>→ ").text(mend).raw("</span>");
        }
        html.raw("</li>\n");
    }
    html.raw("</ul>\n");
}
