//! `/v1/responses`, OpenAI's newest: numbered events, and the whole text again at the end.

use super::{End, Output, Stream, Usage, json};

impl Stream {
    pub(super) fn responses_prefix(&self) -> Vec<u8> {
        b"event: response.output_text.delta\ndata: {\"content_index\":0,\"delta\":\"".to_vec()
    }

    pub(super) fn responses_events(&mut self, out: &mut Vec<u8>, output: &Output<'_>) {
        let item = self.item_id();
        if output.first {
            let response = self.response("in_progress", "null", "[]", "null");
            self.numbered(out, "response.created", &format!("\"response\":{response},"));
            self.numbered(out, "response.in_progress", &format!("\"response\":{response},"));
            self.numbered(
                out,
                "response.output_item.added",
                &format!(
                    "\"item\":{{\"id\":\"{item}\",\"content\":[],\"role\":\"assistant\",\"status\":\"in_progress\",\
                     \"type\":\"message\",\"phase\":null}},\"output_index\":0,"
                ),
            );
            self.numbered(
                out,
                "response.content_part.added",
                &format!(
                    "\"content_index\":0,\"item_id\":\"{item}\",\"output_index\":0,\
                     \"part\":{{\"annotations\":[],\"text\":\"\",\"type\":\"output_text\",\"logprobs\":[]}},"
                ),
            );
        }
        self.text.push_str(output.text);
        if !output.text.is_empty() {
            let rest = format!(
                "\",\"item_id\":\"{item}\",\"logprobs\":[],\"output_index\":0,\"sequence_number\":{},\
                 \"type\":\"response.output_text.delta\"}}\n\n",
                self.sequence
            );
            self.sequence += 1;
            self.event(out, &[&self.prefix, output.text.as_bytes(), rest.as_bytes()]);
        }
        if let Some(end) = output.end {
            self.closing_events(out, output.usage, end);
        }
    }

    fn closing_events(&mut self, out: &mut Vec<u8>, usage: Usage, end: End<'_>) {
        let (item, text) = (self.item_id(), json(&self.text));
        let place = format!("\"content_index\":0,\"item_id\":\"{item}\",");
        // The one event whose number stands before its last field.
        let done = format!(
            "event: response.output_text.done\ndata: {{{place}\"logprobs\":[],\"output_index\":0,\"sequence_number\":{},\
             \"text\":{text},\"type\":\"response.output_text.done\"}}\n\n",
            self.sequence
        );
        self.sequence += 1;
        self.event(out, &[done.as_bytes()]);
        let part = self.part();
        self.numbered(out, "response.content_part.done", &format!("{place}\"output_index\":0,\"part\":{part},"));
        let item = self.item();
        self.numbered(out, "response.output_item.done", &format!("\"item\":{item},\"output_index\":0,"));
        let response = self.finished(usage, end);
        self.numbered(out, "response.completed", &format!("\"response\":{response},"));
    }

    pub(super) fn responses_body(&self, out: &mut Vec<u8>, usage: Usage, end: End<'_>) {
        out.extend_from_slice(self.finished(usage, end).as_bytes());
    }

    /// An event with its number; `fields` end with a comma.
    fn numbered(&mut self, out: &mut Vec<u8>, kind: &str, fields: &str) {
        let text =
            format!("event: {kind}\ndata: {{{fields}\"sequence_number\":{},\"type\":\"{kind}\"}}\n\n", self.sequence);
        self.sequence += 1;
        self.event(out, &[text.as_bytes()]);
    }

    fn item_id(&self) -> String {
        format!("msg_{}", self.id.trim_start_matches("resp_"))
    }

    fn part(&self) -> String {
        format!("{{\"annotations\":[],\"text\":{},\"type\":\"output_text\",\"logprobs\":null}}", json(&self.text))
    }

    fn item(&self) -> String {
        format!(
            "{{\"id\":\"{}\",\"content\":[{}],\"role\":\"assistant\",\"status\":\"completed\",\"type\":\"message\",\"phase\":null}}",
            self.item_id(),
            self.part()
        )
    }

    fn finished(&self, usage: Usage, end: End<'_>) -> String {
        let (status, incomplete) = match end {
            End::Length => ("incomplete", "{\"reason\":\"max_output_tokens\"}"),
            End::Stop(_) => ("completed", "null"),
        };
        let counts = format!(
            "{{\"input_tokens\":{},\"input_tokens_details\":{{\"cached_tokens\":{},\"cache_write_tokens\":0,\
             \"input_tokens_per_turn\":[],\"cached_tokens_per_turn\":[]}},\"output_tokens\":{},\
             \"output_tokens_details\":{{\"reasoning_tokens\":0,\"tool_output_tokens\":0,\"output_tokens_per_turn\":[],\
             \"tool_output_tokens_per_turn\":[]}},\"total_tokens\":{}}}",
            usage.prompt,
            usage.cached,
            usage.completion,
            usage.prompt + usage.completion
        );
        self.response(status, incomplete, &format!("[{}]", self.item()), &counts)
    }

    fn response(&self, status: &str, incomplete: &str, output: &str, usage: &str) -> String {
        let limit = if self.max_tokens_given { self.max_tokens.to_string() } else { "null".to_owned() };
        format!(
            "{{\"id\":{},\"created_at\":{},\"incomplete_details\":{incomplete},\"instructions\":null,\"metadata\":null,\
             \"model\":{},\"object\":\"response\",\"output\":{output},\"parallel_tool_calls\":true,\"temperature\":{:?},\
             \"tool_choice\":\"none\",\"tools\":[],\"top_p\":{:?},\"background\":false,\"max_output_tokens\":{limit},\
             \"max_tool_calls\":null,\"previous_response_id\":null,\"prompt\":null,\"reasoning\":null,\"service_tier\":\"auto\",\
             \"status\":\"{status}\",\"text\":null,\"top_logprobs\":null,\"truncation\":\"disabled\",\"usage\":{usage},\
             \"user\":null,\"presence_penalty\":0.0,\"frequency_penalty\":0.0,\"kv_transfer_params\":null,\
             \"ec_transfer_params\":null,\"input_messages\":null,\"output_messages\":null}}",
            json(&self.id),
            self.created,
            json(&self.model),
            self.temperature,
            self.top_p
        )
    }
}
