//! `/v1/completions` and `/v1/chat/completions`.

use super::{End, FINGERPRINT, Output, Stream, Usage, finish_reason, ids, json, stop_reason};
use crate::api::Api;
use crate::http::reply::put;

/// The logarithm of every token's probability, as far as anybody asks: a model that is fairly sure.
const LOGPROB: f64 = -0.25;

impl Stream {
    pub(super) fn completions_prefix(&self) -> Vec<u8> {
        format!("{}\"choices\":[{{\"index\":0,\"text\":\"", self.opening("text_completion")).into_bytes()
    }

    pub(super) fn chat_prefix(&self) -> Vec<u8> {
        let opening = self.opening("chat.completion.chunk");
        format!("{opening}\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"").into_bytes()
    }

    fn opening(&self, object: &str) -> String {
        let (id, model) = (json(&self.id), json(&self.model));
        format!("data: {{\"id\":{id},\"object\":\"{object}\",\"created\":{},\"model\":{model},", self.created)
    }

    pub(super) fn openai_events(&mut self, out: &mut Vec<u8>, output: &Output<'_>) {
        if output.first && self.api == Api::Chat {
            self.role_event(out, output.usage);
        }
        match output.end {
            None if !self.continuous_usage && !self.wants_tokens() => self.plain_event(out, output.text),
            _ => self.full_event(out, output),
        }
        if output.end.is_some() {
            if self.include_usage {
                self.usage_event(out, output.usage);
            }
            self.event(out, &[b"data: [DONE]\n\n"]);
        }
    }

    /// The token path: nothing but copies.
    fn plain_event(&self, out: &mut Vec<u8>, text: &str) {
        const COMPLETION: &[u8] = b"\",\"logprobs\":null,\"finish_reason\":null,\"stop_reason\":null,\
            \"prompt_token_ids\":null,\"token_ids\":null}]}\n\n";
        const CHAT: &[u8] = b"\"},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n";
        let suffix = if self.api == Api::Chat { CHAT } else { COMPLETION };
        self.event(out, &[&self.prefix, text.as_bytes(), suffix]);
    }

    fn full_event(&self, out: &mut Vec<u8>, output: &Output<'_>) {
        let logprobs = match self.logprobs {
            None => "null".to_owned(),
            Some(top) if self.api == Api::Chat => chat_logprobs(output.tokens, top),
            Some(top) => completion_logprobs(output.tokens, top, self.offset),
        };
        let (finish, stop) = (finish_reason(output.end), stop_reason(output.end));
        let token_ids = match self.prompt_ids {
            Some(_) => ids(output.tokens.iter().map(|t| t.0)),
            None => "null".to_owned(),
        };
        let mut rest = Vec::with_capacity(256);
        if self.api == Api::Chat {
            put(&mut rest, format_args!("\"}},\"logprobs\":{logprobs},\"finish_reason\":{finish},"));
            if output.end.is_some() {
                put(&mut rest, format_args!("\"stop_reason\":{stop},"));
            }
        } else {
            let prompt = match &self.prompt_ids {
                Some(prompt) if output.first => ids(prompt.iter().copied()),
                _ => "null".to_owned(),
            };
            put(
                &mut rest,
                format_args!(
                    "\",\"logprobs\":{logprobs},\"finish_reason\":{finish},\"stop_reason\":{stop},\"prompt_token_ids\":{prompt},"
                ),
            );
        }
        put(&mut rest, format_args!("\"token_ids\":{token_ids}}}]"));
        if self.continuous_usage {
            put(&mut rest, format_args!(",\"usage\":{}", self.running_usage(output.usage)));
        }
        if output.end.is_some() && !self.include_usage {
            put(&mut rest, format_args!(",\"system_fingerprint\":\"{FINGERPRINT}\""));
        }
        rest.extend_from_slice(b"}\n\n");
        self.event(out, &[&self.prefix, output.text.as_bytes(), &rest]);
    }

    fn role_event(&self, out: &mut Vec<u8>, usage: Usage) {
        let mut text = self.opening("chat.completion.chunk");
        text.push_str(
            "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]",
        );
        if self.continuous_usage {
            text.push_str(",\"usage\":");
            text.push_str(&self.running_usage(Usage { completion: 0, ..usage }));
        }
        let prompt = self.prompt_ids.as_ref().map_or("null".to_owned(), |p| ids(p.iter().copied()));
        text.push_str(&format!(",\"prompt_token_ids\":{prompt},\"prompt_text\":null}}\n\n"));
        self.event(out, &[text.as_bytes()]);
    }

    fn usage_event(&self, out: &mut Vec<u8>, usage: Usage) {
        let object = if self.api == Api::Chat { "chat.completion.chunk" } else { "text_completion" };
        let details = if self.token_details {
            format!(",\"prompt_tokens_details\":{{\"cached_tokens\":{}}}", usage.cached)
        } else {
            String::new()
        };
        let text = format!(
            "{}\"choices\":[],\"usage\":{{\"prompt_tokens\":{},\"total_tokens\":{},\"completion_tokens\":{}{details}}},\
             \"system_fingerprint\":\"{FINGERPRINT}\"}}\n\n",
            self.opening(object),
            usage.prompt,
            usage.prompt + usage.completion,
            usage.completion
        );
        self.event(out, &[text.as_bytes()]);
    }

    /// The usage inside an event before the last: chat has one field more.
    fn running_usage(&self, usage: Usage) -> String {
        let details = if self.api == Api::Chat { ",\"completion_tokens_details\":null" } else { "" };
        format!(
            "{{\"prompt_tokens\":{},\"total_tokens\":{},\"completion_tokens\":{}{details}}}",
            usage.prompt,
            usage.prompt + usage.completion,
            usage.completion
        )
    }

    pub(super) fn openai_body(&self, out: &mut Vec<u8>, usage: Usage, end: End<'_>) {
        let (id, model, text) = (json(&self.id), json(&self.model), json(&self.text));
        let (created, finish, stop) = (self.created, finish_reason(Some(end)), stop_reason(Some(end)));
        let null = || "null".to_owned();
        let token_ids = self.prompt_ids.as_ref().map_or_else(null, |_| ids(self.tokens.iter().map(|t| t.0)));
        let prompt_ids = self.prompt_ids.as_ref().map_or_else(null, |p| ids(p.iter().copied()));
        let details = if self.token_details { format!("{{\"cached_tokens\":{}}}", usage.cached) } else { null() };
        let total = usage.prompt + usage.completion;
        if self.api == Api::Chat {
            let logprobs = self.logprobs.map_or_else(null, |top| chat_logprobs(&self.tokens, top));
            put(
                out,
                format_args!(
                    "{{\"id\":{id},\"object\":\"chat.completion\",\"created\":{created},\"model\":{model},\"choices\":[{{\"index\":0,\
                     \"message\":{{\"role\":\"assistant\",\"content\":{text},\"refusal\":null,\"annotations\":null,\"audio\":null,\
                     \"function_call\":null,\"reasoning\":null}},\"logprobs\":{logprobs},\"finish_reason\":{finish},\
                     \"stop_reason\":{stop},\"token_ids\":{token_ids},\"routed_experts\":null}}],\"service_tier\":null,\
                     \"system_fingerprint\":\"{FINGERPRINT}\",\"usage\":{{\"prompt_tokens\":{},\"total_tokens\":{total},\
                     \"completion_tokens\":{},\"prompt_tokens_details\":{details},\"completion_tokens_details\":null}},\
                     \"prompt_logprobs\":null,\"prompt_token_ids\":{prompt_ids},\"prompt_text\":null,\
                     \"kv_transfer_params\":null,\"ec_transfer_params\":null,\"metrics\":null}}",
                    usage.prompt, usage.completion
                ),
            );
            return;
        }
        let logprobs = self.logprobs.map_or_else(null, |top| completion_logprobs(&self.tokens, top, 0));
        put(
            out,
            format_args!(
                "{{\"id\":{id},\"object\":\"text_completion\",\"created\":{created},\"model\":{model},\"choices\":[{{\"index\":0,\
                 \"text\":{text},\"logprobs\":{logprobs},\"finish_reason\":{finish},\"stop_reason\":{stop},\
                 \"token_ids\":{token_ids},\"prompt_logprobs\":null,\"prompt_token_ids\":{prompt_ids}}}],\"service_tier\":null,\
                 \"system_fingerprint\":\"{FINGERPRINT}\",\"usage\":{{\"prompt_tokens\":{},\"total_tokens\":{total},\
                 \"completion_tokens\":{},\"prompt_tokens_details\":{details}}},\"kv_transfer_params\":null}}",
                usage.prompt, usage.completion
            ),
        );
    }
}

fn completion_logprobs(tokens: &[(u32, String)], top: u32, offset: usize) -> String {
    let mut at = offset;
    let (mut offsets, mut probabilities, mut texts, mut tops) = (vec![], vec![], vec![], vec![]);
    for (_, text) in tokens {
        offsets.push(at.to_string());
        at += text.len();
        probabilities.push(LOGPROB.to_string());
        texts.push(json(text));
        let alternatives: Vec<String> =
            alternatives(text, top.max(1)).iter().map(|(t, p)| format!("{}:{p}", json(t))).collect();
        tops.push(format!("{{{}}}", alternatives.join(",")));
    }
    format!(
        "{{\"text_offset\":[{}],\"token_logprobs\":[{}],\"tokens\":[{}],\"top_logprobs\":[{}]}}",
        offsets.join(","),
        probabilities.join(","),
        texts.join(","),
        tops.join(",")
    )
}

fn chat_logprobs(tokens: &[(u32, String)], top: u32) -> String {
    let entry = |text: &str, p: f64| {
        let bytes = ids(text.bytes().map(u32::from));
        format!("\"token\":{},\"logprob\":{p},\"bytes\":{bytes}", json(text))
    };
    let content: Vec<String> = tokens
        .iter()
        .map(|(_, text)| {
            let tops: Vec<String> =
                alternatives(text, top).iter().map(|(t, p)| format!("{{{}}}", entry(t, *p))).collect();
            format!("{{{},\"top_logprobs\":[{}]}}", entry(text, LOGPROB), tops.join(","))
        })
        .collect();
    format!("{{\"content\":[{}]}}", content.join(","))
}

/// The token itself, then others that were less likely.
fn alternatives(text: &str, count: u32) -> Vec<(String, f64)> {
    (0..count)
        .map(|i| match i {
            0 => (text.to_owned(), LOGPROB),
            _ => (format!(" alt{i}"), LOGPROB - 2.0 * f64::from(i)),
        })
        .collect()
}
