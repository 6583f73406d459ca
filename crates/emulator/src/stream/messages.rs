//! `/v1/messages`, as Anthropic's clients read it.

use super::{End, Output, Stream, Usage, json};
use crate::http::reply::put;

impl Stream {
    pub(super) fn messages_prefix(&self) -> Vec<u8> {
        b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"".to_vec()
    }

    pub(super) fn messages_events(&mut self, out: &mut Vec<u8>, output: &Output<'_>) {
        if output.first {
            let (id, model) = (json(&self.id), json(&self.model));
            let start = format!(
                "event: message_start\ndata: {{\"type\":\"message_start\",\"message\":{{\"id\":{id},\"type\":\"message\",\
                 \"role\":\"assistant\",\"content\":[],\"model\":{model},\"stop_reason\":null,\"stop_sequence\":null,\
                 \"usage\":{{\"input_tokens\":{},\"output_tokens\":0}}}}}}\n\n",
                output.usage.prompt
            );
            self.event(out, &[start.as_bytes()]);
            self.event(
                out,
                &[b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\
                    \"content_block\":{\"type\":\"text\",\"text\":\"\"},\"index\":0}\n\n"],
            );
        }
        if !output.text.is_empty() {
            self.event(out, &[&self.prefix, output.text.as_bytes(), b"\"},\"index\":0}\n\n"]);
        }
        let Some(end) = output.end else { return };
        let (reason, sequence) = stop(end);
        let delta = format!(
            "event: message_delta\ndata: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\",\
             \"stop_sequence\":{sequence}}},\"usage\":{{\"input_tokens\":{},\"output_tokens\":{}}}}}\n\n",
            output.usage.prompt, output.usage.completion
        );
        self.event(out, &[b"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"]);
        self.event(out, &[delta.as_bytes()]);
        self.event(out, &[b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"]);
    }

    pub(super) fn messages_body(&self, out: &mut Vec<u8>, usage: Usage, end: End<'_>) {
        let (id, model, text) = (json(&self.id), json(&self.model), json(&self.text));
        let (reason, sequence) = stop(end);
        put(
            out,
            format_args!(
                "{{\"id\":{id},\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\
                 \"model\":{model},\"stop_reason\":\"{reason}\",\"stop_sequence\":{sequence},\
                 \"usage\":{{\"input_tokens\":{},\"output_tokens\":{}}}}}",
                usage.prompt, usage.completion
            ),
        );
    }
}

fn stop(end: End<'_>) -> (&'static str, String) {
    match end {
        End::Length => ("max_tokens", "null".to_owned()),
        End::Stop(None) => ("end_turn", "null".to_owned()),
        End::Stop(Some(text)) => ("stop_sequence", json(text)),
    }
}
