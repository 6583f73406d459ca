//! Whole passes over a data set in an order of their own, each request made different by a salt.

use crate::failure::{Failure, Outcome};
use serde_json::Value;
use std::borrow::Cow;
use tailbound_clock::Seed;
use tailbound_prompt::{Body, Prompt};

/// Stands in a body where a request's own 64 bits go.
const PLACE: &str = "5a17c0de5a17c0de";

/// Which prompt each request sends.
pub struct Passes {
    /// The prompt of each measured request.
    pub order: Vec<u32>,
    /// What salts are drawn from, if the prompts have a [`salted`] place for them.
    pub salt: Option<Seed>,
}

impl Passes {
    /// The prompt of a request; warm-ups, which come after the measured ones, take the data set in its own order.
    pub fn item(&self, id: u32) -> usize {
        let warmup = || (id as usize).saturating_sub(self.order.len());
        self.order.get(id as usize).map_or_else(warmup, |&item| item as usize)
    }

    /// A body as this request sends it.
    pub fn body<'a>(&self, id: u32, body: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(seed) = self.salt else { return Cow::Borrowed(body) };
        let Some(at) = body.windows(PLACE.len()).position(|w| w == PLACE.as_bytes()) else {
            return Cow::Borrowed(body);
        };
        let salt = format!("{:016x}", Seed(seed.0.wrapping_add(u64::from(id))).stream("salt").u64());
        let mut own = body.to_vec();
        own[at..at + salt.len()].copy_from_slice(salt.as_bytes());
        Cow::Owned(own)
    }
}

/// The prompts with a place for a salt: in front of the text, or of what the user says first. Their length is then the server's to say.
pub fn salted(prompts: &[Prompt]) -> Outcome<Vec<Prompt>> {
    prompts.iter().map(|p| Ok(Prompt { body: salted_body(&p.body)?, prompt_tokens: None, ..p.clone() })).collect()
}

fn salted_body(body: &Body) -> Outcome<Body> {
    let refused =
        |what: &str| Failure::usage(format!("{what} cannot be salted")).hint("send them as they are: --no-salt");
    match body {
        Body::Text(text) => Ok(Body::Text(in_front(text).into())),
        Body::Ids(_) => Err(refused("--prompt-token-ids: prompts of token ids")),
        Body::Messages(messages) => {
            let mut messages = (**messages).clone();
            let said = first_said(&mut messages).ok_or_else(|| refused("messages without a user's text"))?;
            *said = in_front(said);
            Ok(Body::Messages(messages.into()))
        }
    }
}

fn in_front(text: &str) -> String {
    format!("{PLACE} {text}")
}

/// The first text of the first message of the user.
fn first_said(messages: &mut Value) -> Option<&mut String> {
    let user = messages.as_array_mut()?.iter_mut().find(|m| m["role"] == "user")?;
    match user.get_mut("content")? {
        Value::String(text) => Some(text),
        Value::Array(parts) => parts.iter_mut().find_map(|part| match part.get_mut("text")? {
            Value::String(text) => Some(text),
            _ => None,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn salts_differ_and_nothing_else_does() {
        let passes = Passes { order: vec![1, 0], salt: Some(Seed(3)) };
        let body = br#"{"prompt":"5a17c0de5a17c0de Hello"}"#;
        let (a, b) = (passes.body(0, body), passes.body(1, body));
        assert_ne!(a, b);
        assert_eq!((a.len(), &a[..11], &a[27..]), (body.len(), &body[..11], &body[27..]));
        assert_eq!((passes.item(0), passes.item(1), passes.item(2), passes.item(4)), (1, 0, 0, 2));
        let plain = Passes { salt: None, ..passes };
        assert_eq!(&*plain.body(0, body), body);
    }

    #[test]
    fn the_salt_stands_before_what_the_user_says_first() {
        let messages =
            json!([{"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "U"}]}]);
        let Body::Messages(m) = salted_body(&Body::Messages(messages.into())).unwrap() else { panic!("messages") };
        assert_eq!(m[1]["content"][0]["text"], format!("{PLACE} U"));
        assert_eq!(m[0]["content"], "S");
        assert!(salted_body(&Body::Ids(vec![1].into())).is_err());
    }
}
