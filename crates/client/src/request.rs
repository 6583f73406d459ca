use std::borrow::Cow;
use tailbound_record::Row;
use tailbound_wire::Api;
use tailbound_workload::IntentId;

/// What each planned request says. Prepared before the clock starts: a loop asks for one when it is due.
pub trait Requests: Sync {
    /// The request of that number. Called once per request, on a loop's thread: it must not block.
    fn request(&self, id: IntentId) -> Request<'_>;

    /// A request has ended in whatever way, and nothing that waits for it has been released yet: what follows may be written now, from
    /// the answer's text if [`Request::keep_text`] asked for it. Called on a loop's thread: it must not block.
    fn answered(&self, _row: &Row) {}
}

/// One request, ready to be written.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Which API the answer speaks.
    pub api: Api,
    /// Its path and query, after the target's prefix.
    pub path: &'a str,
    /// Its JSON body.
    pub body: Cow<'a, [u8]>,
    /// Headers of its own (a request id, a session …): names and values that [`Header::new`](crate::Header::new) would accept.
    pub headers: Vec<(&'a str, Cow<'a, str>)>,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Answers asked for (`n`).
    pub choices: u32,
    /// Whether [`Requests::answered`] needs the answer's text.
    pub keep_text: bool,
    /// Its class.
    pub class: u16,
    /// Prompt tokens, as far as they are known.
    pub prompt_tokens: Option<u32>,
    /// Output tokens asked for at most.
    pub output_tokens: Option<u32>,
}

impl<'a> Request<'a> {
    /// A streamed request for one answer.
    pub fn new(api: Api, path: &'a str, body: impl Into<Cow<'a, [u8]>>) -> Request<'a> {
        Request {
            api,
            path,
            body: body.into(),
            headers: Vec::new(),
            stream: true,
            choices: 1,
            keep_text: false,
            class: 0,
            prompt_tokens: None,
            output_tokens: None,
        }
    }
}
