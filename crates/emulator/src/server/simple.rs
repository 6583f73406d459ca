//! Everything but answers: what can be replied at once.

use tailbound_clock::Time;
use tailbound_engine::{Effect, Event};

use super::Server;
use crate::api::ask::{model, token_id};
use crate::api::fields::{Fields, missing};
use crate::api::{Api, Problem, Route, prompt_text};
use crate::http::reply::{self, Content};
use crate::http::{Method, Parser};
use crate::metrics::{Page, RankPage};

/// A request, as far as it matters.
pub(super) struct Request<'a> {
    pub conn: usize,
    pub body: &'a [u8],
    /// When it had arrived whole.
    pub recv: Time,
    pub keep_alive: bool,
    /// HTTP/1.0.
    pub old: bool,
    pub with_body: bool,
    /// The client's `x-request-id`.
    pub id: Option<String>,
}

impl Server {
    /// Answers the whole request that `parser` found in `input`.
    pub(super) fn answer(&mut self, conn: usize, input: &[u8], parser: &Parser, recv: Time) {
        let Some(head) = parser.head() else { return };
        let id = head.request_id.clone().and_then(|r| std::str::from_utf8(&input[r]).ok()).filter(|id| is_name(id));
        let request = Request {
            conn,
            body: parser.body(input),
            recv,
            keep_alive: head.keep_alive,
            old: head.old,
            with_body: head.method != Method::Head,
            id: id.map(str::to_owned),
        };
        let route = Route::find(head.method, &input[head.path.clone()]);
        let key = head.authorization.clone().map(|r| &input[r]);
        let anthropic = matches!(route, Ok(Route::Generate(Api::Messages)));
        let (status, content, body) = match route.and_then(|route| self.respond(route, key, &request)) {
            Ok(None) => return,
            Ok(Some((content, body))) => (200, content, body),
            Err(problem) => {
                let body = if anthropic { problem.anthropic_body() } else { problem.body() };
                (problem.status, Content::Json, body)
            }
        };
        self.reply(&request, status, content, &body);
    }

    /// `None`: an answer has begun.
    fn respond(
        &mut self,
        route: Route,
        key: Option<&[u8]>,
        request: &Request<'_>,
    ) -> Result<Option<(Content, Vec<u8>)>, Problem> {
        if let Some(wanted) = self.config.api_key.as_deref().filter(|_| route.is_guarded()) {
            let shown = key.and_then(|k| k.strip_prefix(b"Bearer "));
            if shown != Some(wanted.as_bytes()) {
                return Err(Problem::plain(401, "Unauthorized"));
            }
        }
        let json = |value: serde_json::Value| Ok(Some((Content::Json, value.to_string().into_bytes())));
        match route {
            Route::Generate(api) => self.generate(api, request).map(|()| None),
            Route::Models => json(self.models()),
            Route::Health => Ok(Some((Content::None, Vec::new()))),
            Route::Version => json(serde_json::json!({"version": self.config.version})),
            Route::Load => json(serde_json::json!({"server_load": self.lives.len()})),
            Route::Metrics => Ok(Some((Content::Metrics, self.metrics().into_bytes()))),
            Route::Tokenize => json(self.tokenize(request.body)?),
            Route::Detokenize => json(self.detokenize(request.body)?),
            Route::ResetPrefixCache => json(serde_json::json!({"success": self.reset_prefix_cache(request.recv)})),
            Route::Truth => Ok(Some((Content::Json, self.summary().to_json().into_bytes()))),
        }
    }

    fn models(&self) -> serde_json::Value {
        let created = self.anchor.unix_ns(self.started) / 1_000_000_000;
        let names = &self.config.served_model_names;
        let data: Vec<serde_json::Value> = names
            .iter()
            .map(|name| {
                serde_json::json!({
                    "id": name, "object": "model", "created": created, "owned_by": "vllm", "root": names[0],
                    "parent": null, "max_model_len": self.config.engine.max_model_len,
                    "permission": [{
                        "id": format!("modelperm-{:016x}", self.config.seed.stream("model permission").u64()),
                        "object": "model_permission", "created": created, "allow_create_engine": false,
                        "allow_sampling": true, "allow_logprobs": true, "allow_search_indices": false,
                        "allow_view": true, "allow_fine_tuning": false, "organization": "*", "group": null,
                        "is_blocking": false,
                    }],
                })
            })
            .collect();
        serde_json::json!({"object": "list", "data": data})
    }

    fn metrics(&self) -> String {
        let ranks: Vec<RankPage<'_>> = self
            .ranks
            .iter()
            .map(|r| RankPage { counters: r.engine.counters(), histograms: &r.histograms, errors: r.errors })
            .collect();
        Page {
            model: &self.config.served_model_names[0],
            engine: &self.config.engine,
            ranks: &ranks,
            created: self.anchor.unix_ns(self.started) as f64 * 1e-9,
            cpu_seconds: tailbound_os::usage::process_cpu().secs(),
            resident_bytes: tailbound_os::usage::rss(),
        }
        .write()
    }

    fn tokenize(&self, body: &[u8]) -> Result<serde_json::Value, Problem> {
        let fields = Fields::parse(body)?;
        model(&fields, &self.config.served_model_names)?;
        let tokens = match fields.text("prompt")? {
            Some(prompt) => {
                let specials = fields.flag("add_special_tokens")?.unwrap_or(true);
                self.tokenizer.encode(prompt, specials)?
            }
            None => {
                let messages = fields.list("messages")?.ok_or_else(|| missing("prompt"))?;
                let open = fields.flag("add_generation_prompt")?.unwrap_or(true);
                self.tokenizer.encode(&prompt_text(messages, open)?, false)?
            }
        };
        let texts = match fields.flag("return_token_strs")? {
            Some(true) => tokens.iter().map(|&id| self.tokenizer.decode(&[id])).collect::<Result<Vec<_>, _>>()?.into(),
            _ => serde_json::Value::Null,
        };
        Ok(serde_json::json!({
            "count": tokens.len(), "max_model_len": self.config.engine.max_model_len, "tokens": tokens,
            "token_strs": texts,
        }))
    }

    fn detokenize(&self, body: &[u8]) -> Result<serde_json::Value, Problem> {
        let fields = Fields::parse(body)?;
        model(&fields, &self.config.served_model_names)?;
        let tokens = fields.list("tokens")?.ok_or_else(|| missing("tokens"))?;
        let ids = tokens.iter().map(|id| token_id(id, "tokens", &self.tokenizer)).collect::<Result<Vec<_>, _>>()?;
        Ok(serde_json::json!({"prompt": self.tokenizer.decode(&ids)?}))
    }

    /// Whether every replica could forget.
    fn reset_prefix_cache(&mut self, at: Time) -> bool {
        let mut all = true;
        for rank in &mut self.ranks {
            self.scratch.effects.clear();
            rank.engine.on(at - rank.slip, Event::ResetPrefixCache, &mut self.scratch.effects);
            rank.publish(&self.anchor);
            all &= self.scratch.effects.contains(&Effect::PrefixCacheReset { done: true });
        }
        all
    }

    fn reply(&mut self, request: &Request<'_>, status: u16, content: Content, body: &[u8]) {
        self.refresh_date();
        let common = reply::Common {
            date: &self.date.1,
            request_id: request.id.as_deref().filter(|_| self.config.request_id_headers),
            keep_alive: request.keep_alive,
            old: request.old,
        };
        self.scratch.output.clear();
        reply::whole(&mut self.scratch.output, status, content, body, common, request.with_body);
        self.send_output(request.conn);
        if let Some(conn) = self.conns[request.conn].1.as_mut() {
            conn.close_when_flushed |= !request.keep_alive;
        }
    }

    /// Replies to what was not a request.
    pub(super) fn reply_problem(&mut self, conn: usize, problem: &Problem, id: Option<&str>) {
        self.refresh_date();
        let common = reply::Common { date: &self.date.1, request_id: id, keep_alive: false, old: false };
        self.scratch.output.clear();
        reply::whole(&mut self.scratch.output, problem.status, Content::Json, &problem.body(), common, true);
        self.send_output(conn);
    }

    /// The `date` header is worked out once a second.
    pub(super) fn refresh_date(&mut self) {
        let seconds = self.unix_seconds();
        if self.date.0 != seconds {
            self.date = (seconds, reply::date(seconds));
        }
    }
}

/// What may stand in a header and in an id without escapes.
fn is_name(id: &str) -> bool {
    (1..=256).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
}
