/// HTML being written. Everything but [`Html::raw`] is escaped.
#[derive(Default)]
pub(super) struct Html {
    out: String,
}

impl Html {
    /// Markup of our own.
    pub(super) fn raw(&mut self, markup: &str) -> &mut Html {
        self.out.push_str(markup);
        self
    }

    /// Text from anywhere. Characters that would be invisible or turn the line around are shown as boxes.
    pub(super) fn text(&mut self, text: &str) -> &mut Html {
        for c in text.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                '\t' | '\n' => self.out.push(' '),
                c if c.is_control()
                    || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
                {
                    self.out.push('\u{fffd}');
                }
                c => self.out.push(c),
            }
        }
        self
    }

    /// The value of a quoted attribute; escaped as text is.
    pub(super) fn attribute(&mut self, text: &str) -> &mut Html {
        self.text(text)
    }

    /// A coordinate, to a hundredth.
    pub(super) fn number(&mut self, x: f64) -> &mut Html {
        let text = format!("{x:.2}");
        self.out.push_str(text.trim_end_matches('0').trim_end_matches('.'));
        self
    }

    pub(super) fn done(self) -> String {
        self.out
    }
}
