//! Small questions to a server beside the load: models, tokenizer, health.

use crate::failure::{Failure, Outcome};
use serde_json::Value;
use tailbound_client::{Header, Reply, Target, Trust, fetch};
use tailbound_clock::Dur;
use tailbound_wire::{Api, Decoder, End, Eof, Head};

/// A server that can be asked.
#[derive(Clone)]
pub struct Server {
    /// Where it is.
    pub target: Target,
}

/// Nothing asked here takes a healthy server longer.
const PATIENCE: Dur = Dur::from_secs(10);

impl Server {
    /// At a base URL, with headers for every request.
    pub fn new(base: &str, headers: &[(String, String)], trust: Trust) -> Outcome<Server> {
        let wrong = |e: tailbound_client::ClientError| Failure::usage(format!("failed to {e}"));
        let mut target = Target::parse(base).map_err(wrong)?;
        target.trust = trust;
        let header = |(name, value): &(String, String)| {
            // The value is never shown: it may be a key.
            Header::new(name, value).map_err(|e| Failure::usage(format!("--header {name}: failed to {e}")))
        };
        target.headers = headers.iter().map(header).collect::<Outcome<_>>()?;
        Ok(Server { target })
    }

    /// Asks and returns whatever came.
    pub fn ask(&self, path: &str, body: Option<&Value>) -> Outcome<Reply> {
        let bytes = body.map(|b| b.to_string().into_bytes());
        fetch(&self.target, path, bytes.as_deref(), PATIENCE).map_err(|e| {
            let hint = format!("is the server up? try: curl -s {}/v1/models", self.target);
            Failure::new(format!("failed to {e}")).during(format!("asking {}{path}", self.target)).hint(hint)
        })
    }

    /// JSON from a GET that must succeed.
    pub fn get(&self, path: &str) -> Outcome<Value> {
        json(self.ask(path, None)?, path)
    }

    /// JSON from a POST that must succeed.
    pub fn post(&self, path: &str, body: &Value) -> Outcome<Value> {
        json(self.ask(path, Some(body))?, path)
    }

    /// The models it lists: `(id, root)`.
    pub fn models(&self) -> Outcome<Vec<(String, String)>> {
        let list = self.get("/v1/models")?;
        let entries = list["data"].as_array().cloned().unwrap_or_default();
        let name = |entry: &Value, key: &str| entry[key].as_str().map(str::to_owned);
        Ok(entries
            .iter()
            .filter_map(|e| {
                let id = name(e, "id")?;
                Some((id.clone(), name(e, "root").unwrap_or(id)))
            })
            .collect())
    }
}

fn json(reply: Reply, path: &str) -> Outcome<Value> {
    if !(200..300).contains(&reply.status) {
        return Err(Failure::new(format!("{path} answered with status {}: {}", reply.status, complaint(&reply))));
    }
    serde_json::from_slice(&reply.body).map_err(|e| Failure::new(format!("{path} did not answer in JSON: {e}")))
}

/// The server's own words about why it refused.
pub fn complaint(reply: &Reply) -> String {
    let mut decoder = Decoder::new(Api::Completions, false, false);
    decoder.head(Head { status: reply.status, content_type: reply.content_type.as_deref(), content_encoding: None });
    decoder.push(&reply.body, |_| {});
    match decoder.finish(Eof::Clean, |_| {}).end {
        End::Failed(_, message) => message,
        End::Done(_) => String::new(),
    }
}
