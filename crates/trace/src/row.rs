use crate::hash::FixedMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use tailbound_clock::Dur;

/// One request of a trace: the superset of what every format knows. Unknown is `None`, never a default.
///
/// The fields nearly every format has are inline (a plain row takes about 80 bytes); the rest is behind [`Row::more`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Arrival in nanoseconds on the file's own clock (see [`Clock`]) while streaming; after [`crate::Trace::collect`],
    /// nanoseconds since the earliest arrival.
    pub at: Option<i64>,
    /// Prompt tokens.
    pub input: Option<u32>,
    /// Output tokens.
    pub output: Option<u32>,
    /// Submission to last token, as the source measured it.
    pub took: Option<Dur>,
    /// Whether the source's own request succeeded.
    pub ok: Option<bool>,
    /// The conversation it belongs to.
    pub session: Option<Name>,
    /// Who sent it (a tenant, an application, a function).
    pub client: Option<Name>,
    /// The model the source asked.
    pub model: Option<Name>,
    /// A class of request: a log type, a trigger, a category.
    pub class: Option<Name>,
    /// What few formats know.
    pub more: Option<Box<More>>,
}

/// The rarer half of a [`Row`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct More {
    /// The request's own name, which others call their parent.
    pub id: Option<Name>,
    /// The request it follows from.
    pub parent: Option<Name>,
    /// Its place in the session, from 1.
    pub turn: Option<u32>,
    /// Wait after the previous answer of the session.
    pub think: Option<Dur>,
    /// Content hashes of the prompt's blocks, first to last; equal ids mean equal content up to and including that block.
    /// The block size belongs to the trace ([`crate::Reader::block_tokens`]).
    pub blocks: Option<Vec<u64>>,
    /// Scheduling priority, as the source states it.
    pub priority: Option<i64>,
    /// Reasoning tokens within the output.
    pub reasoning: Option<u32>,
    /// Image, audio and video parts.
    pub media: Vec<Media>,
    /// What was asked.
    pub body: Body,
    /// What the source's model answered.
    pub answer: Option<Box<str>>,
    /// Tool definitions, as JSON text.
    pub tools: Option<Box<str>>,
}

/// One non-text part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Media {
    /// What it is.
    pub kind: MediaKind,
    /// Its size in tokens; 0 is not unknown here: a part without a size has `None`.
    pub tokens: Option<u32>,
}

/// What a [`Media`] part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaKind {
    /// A still picture.
    Image,
    /// Sound.
    Audio,
    /// Moving pictures.
    Video,
}

/// The prompt itself, where the format carries it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body {
    /// Only lengths are known.
    #[default]
    None,
    /// The whole prompt as one text.
    Text(Box<str>),
    /// The whole prompt as chat messages.
    Messages(Vec<Message>),
    /// The messages added since the session's previous answer (the whole prompt for its first turn).
    Added(Vec<Message>),
    /// A request body to be sent as it is, as JSON text.
    Payload(Box<str>),
}

/// One chat message.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Message {
    /// OpenAI's word for the speaker: `system`, `user`, `assistant`, `tool` …
    pub role: Box<str>,
    /// Its text; JSON text for tool calls.
    pub content: Box<str>,
}

impl Row {
    /// The rarer half, made if it isn't there.
    pub fn more_mut(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// The content hashes of the prompt's blocks, if the format has them.
    pub fn blocks(&self) -> Option<&[u64]> {
        self.more.as_ref()?.blocks.as_deref()
    }
}

/// What a trace's time stamps count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The Unix epoch (UTC): hour of day and day of week are known.
    Wall,
    /// Local midnight of day 0: hour of day is known, the weekday is not.
    Day,
    /// Some moment: neither is known.
    Offset,
    /// There are no times.
    None,
}

/// An interned string of one trace ([`Names`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(NonZeroU32);

impl Name {
    /// Its place in order of first appearance, from 0.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The strings that a trace's rows name: models, sessions, clients.
#[derive(Clone, Debug, Default)]
pub struct Names {
    known: FixedMap<Arc<str>, Name>,
    list: Vec<Arc<str>>,
}

impl Names {
    /// The name for `text`, made if it is new.
    pub fn intern(&mut self, text: &str) -> Name {
        if let Some(&name) = self.known.get(text) {
            return name;
        }
        let index = u32::try_from(self.list.len() + 1).expect("fewer than 2^32 names");
        let name = Name(NonZeroU32::new(index).expect("counted from one"));
        let text: Arc<str> = text.into();
        self.list.push(text.clone());
        self.known.insert(text, name);
        name
    }

    /// As [`Names::intern`]; blank text is unknown.
    pub fn intern_some(&mut self, text: &str) -> Option<Name> {
        let text = text.trim();
        (!text.is_empty()).then(|| self.intern(text))
    }

    /// The string behind a name of this trace.
    pub fn text(&self, name: Name) -> &str {
        &self.list[name.index()]
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
