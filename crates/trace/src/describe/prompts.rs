use crate::describe::lengths::{Histogram, LengthFigures};
use crate::hash::FixedMap;
use crate::row::{Body, Name, Row};
use serde::Serialize;

/// Prompts that the trace carries as text. Lengths are Unicode characters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PromptFigures {
    /// Characters of the prompt.
    pub input_chars: Option<LengthFigures>,
    /// Characters of the recorded answer.
    pub output_chars: Option<LengthFigures>,
    /// The share of a prompt that repeats the beginning of the session's previous prompt in the file; mean over all requests
    /// that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_char_prefix_share_with_previous: Option<f64>,
}

#[derive(Default)]
pub(crate) struct Prompts {
    input: Histogram,
    output: Histogram,
    previous: FixedMap<Name, Box<str>>,
    shares: (f64, u64),
}

impl Prompts {
    pub(crate) fn row(&mut self, row: &Row) {
        let Some(more) = &row.more else { return };
        if let Some(answer) = &more.answer {
            self.output.add(answer.chars().count() as u64);
        }
        match &more.body {
            Body::Text(text) => self.text(text, row.session),
            Body::Messages(list) | Body::Added(list) => {
                self.input.add(list.iter().map(|m| m.content.chars().count() as u64).sum());
            }
            Body::None | Body::Payload(_) => {}
        }
    }

    fn text(&mut self, text: &str, session: Option<Name>) {
        let length = text.chars().count();
        self.input.add(length as u64);
        let Some(session) = session else { return };
        if let Some(previous) = self.previous.insert(session, text.into())
            && length > 0
        {
            let shared = text.chars().zip(previous.chars()).take_while(|(a, b)| a == b).count();
            self.shares = (self.shares.0 + shared as f64 / length as f64, self.shares.1 + 1);
        }
    }

    pub(crate) fn figures(&self) -> Option<PromptFigures> {
        if self.input.n() == 0 && self.output.n() == 0 {
            return None;
        }
        let (sum, n) = self.shares;
        Some(PromptFigures {
            input_chars: self.input.figures(),
            output_chars: self.output.figures(),
            mean_char_prefix_share_with_previous: (n > 0).then(|| sum / n as f64),
        })
    }
}
