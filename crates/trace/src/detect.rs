//! What a file is, told from its content.

use crate::error::Refusal;
use crate::items::Framing;
use serde::{Deserialize, Serialize};

/// The kinds of trace that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// BurstGPT 1, 2 and 3: CSV.
    BurstGpt,
    /// Azure LLM inference traces 2023, 2024, 2025: CSV.
    AzureLlm,
    /// Azure Functions 2019: CSV, invocations per minute.
    AzureFunctions2019,
    /// Azure Functions 2021: CSV, end and duration.
    AzureFunctions2021,
    /// `num_prefill_tokens,num_decode_tokens`, with or without `arrived_at`: CSV (Vidur, Sarathi, etalon).
    Lengths,
    /// Any CSV or JSON lines, by a map of columns.
    Custom,
    /// Mooncake: JSON lines, milliseconds, 512-token blocks; with the session extension.
    Mooncake,
    /// vLLM's timed trace: Mooncake's fields, seconds, 16-token blocks.
    TimedTrace,
    /// Qwen-Bailian: JSON lines, seconds, 16-token blocks, parents.
    Bailian,
    /// LMCache agent traces: JSON lines, epoch microseconds, whole prompts.
    LmcacheAgent,
    /// Weka agent traces: one conversation per record, 64-token blocks.
    Weka,
    /// ShareGPT conversations.
    ShareGpt,
    /// Conversations as OpenAI `messages`.
    OpenAiMessages,
    /// OpenTelemetry gen-AI spans.
    Otel,
    /// SGLang agentic traces.
    SglangAgentic,
    /// MT-bench and SpecBench questions.
    Questions,
    /// `{"prompt": …}` per line.
    Prompts,
    /// Lines of plain text. Never guessed: it has to be named.
    Text,
    /// Our own rows, one per line.
    Canonical,
}

impl Format {
    /// Every format, in the order of the documentation.
    pub const ALL: [Format; 19] = [
        Format::BurstGpt,
        Format::AzureLlm,
        Format::AzureFunctions2019,
        Format::AzureFunctions2021,
        Format::Lengths,
        Format::Custom,
        Format::Mooncake,
        Format::TimedTrace,
        Format::Bailian,
        Format::LmcacheAgent,
        Format::Weka,
        Format::ShareGpt,
        Format::OpenAiMessages,
        Format::Otel,
        Format::SglangAgentic,
        Format::Questions,
        Format::Prompts,
        Format::Text,
        Format::Canonical,
    ];

    /// Its name on the command line and in reports.
    pub fn word(self) -> &'static str {
        match self {
            Format::BurstGpt => "burstgpt",
            Format::AzureLlm => "azure-llm",
            Format::AzureFunctions2019 => "azure-functions-2019",
            Format::AzureFunctions2021 => "azure-functions-2021",
            Format::Lengths => "lengths",
            Format::Custom => "custom",
            Format::Mooncake => "mooncake",
            Format::TimedTrace => "timed-trace",
            Format::Bailian => "bailian",
            Format::LmcacheAgent => "lmcache-agent",
            Format::Weka => "weka",
            Format::ShareGpt => "sharegpt",
            Format::OpenAiMessages => "openai-messages",
            Format::Otel => "otel",
            Format::SglangAgentic => "sglang-agentic",
            Format::Questions => "questions",
            Format::Prompts => "prompts",
            Format::Text => "text",
            Format::Canonical => "canonical",
        }
    }

    /// The format of that name.
    pub fn from_word(word: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|f| f.word() == word)
    }

    /// The block size the format's publisher states.
    pub(crate) fn usual_block(self) -> Option<u32> {
        match self {
            Format::Mooncake => Some(512),
            Format::Weka => Some(64),
            Format::Bailian | Format::TimedTrace => Some(16),
            _ => None,
        }
    }
}

/// What the beginning of a file looks like.
#[derive(Debug)]
pub(crate) enum Look {
    /// A table with these column names.
    Table(Vec<String>),
    /// JSON records; the first has these keys.
    Json { keys: Vec<String>, framing: Framing },
}

/// Refuses what is no data; otherwise says what it looks like. `whole`: the head is the whole file.
pub(crate) fn look(head: &[u8]) -> Result<Look, Refusal> {
    let text = head.trim_ascii_start();
    match text.first() {
        None => return Err(Refusal::Empty),
        Some(b'<') => return Err(Refusal::Html),
        Some(b'[' | b'{') => return Ok(json_look(text)),
        Some(_) => {}
    }
    if text.starts_with(b"version https://git-lfs.github.com/spec/") {
        return Err(Refusal::LfsPointer { bytes: lfs_size(text) });
    }
    if text.starts_with(b"PAR1") {
        return Err(Refusal::NotRequests(
            "Parquet, which this program was built without (feature `parquet`); export it as CSV or JSON lines",
        ));
    }
    if memchr::memchr(0, text).is_some() {
        return Err(Refusal::Unknown { seen: "binary data".into() });
    }
    Ok(Look::Table(header(text)))
}

/// The format of a file that looks like this.
pub(crate) fn guess(look: &Look) -> Result<Format, Refusal> {
    match look {
        Look::Table(columns) => guess_table(columns),
        Look::Json { keys, .. } => guess_json(keys),
    }
}

fn guess_table(columns: &[String]) -> Result<Format, Refusal> {
    let has = |name: &str| columns.iter().any(|c| c.eq_ignore_ascii_case(name));
    let all = |names: &[&str]| names.iter().all(|n| has(n));
    if all(&["timestamp", "request tokens", "response tokens"]) {
        return Ok(Format::BurstGpt);
    }
    if all(&["timestamp", "contexttokens", "generatedtokens"]) {
        return Ok(Format::AzureLlm);
    }
    if all(&["hashfunction", "1", "2"]) {
        return Ok(Format::AzureFunctions2019);
    }
    if has("hashfunction") || has("hashapp") {
        return Err(Refusal::NotRequests(
            "Azure Functions durations or memory; the invocations file holds the arrivals",
        ));
    }
    if all(&["func", "end_timestamp", "duration"]) {
        return Ok(Format::AzureFunctions2021);
    }
    if all(&["num_prefill_tokens", "num_decode_tokens"]) {
        return Ok(Format::Lengths);
    }
    if crate::servegen::is_trace_line(columns) {
        return Err(Refusal::NotRequests("the arrival windows of one ServeGen client; name the pool's directory"));
    }
    let names = columns.iter().take(12).map(|c| format!("{c:?}")).collect::<Vec<_>>().join(", ");
    Err(Refusal::Unknown { seen: format!("columns {names}") })
}

fn guess_json(keys: &[String]) -> Result<Format, Refusal> {
    let has = |name: &str| keys.iter().any(|k| k == name);
    if let Ok(table) = guess_table(keys) {
        return Ok(table);
    }
    let found = if has("arrival_ns") {
        Format::Canonical
    } else if has("spans") || has("resourceSpans") || (has("span_id") && has("attributes")) {
        Format::Otel
    } else if has("chat_id") && has("parent_chat_id") {
        Format::Bailian
    } else if has("input_length") || (has("timestamp") && (has("text_input") || has("messages") || has("payload"))) {
        Format::Mooncake
    } else if has("input") && has("output") && has("session_id") {
        Format::LmcacheAgent
    } else if has("requests") && has("id") {
        Format::Weka
    } else if has("metadata") && has("conversations") {
        Format::SglangAgentic
    } else if has("conversations") || has("conversation") {
        Format::ShareGpt
    } else if has("messages") {
        Format::OpenAiMessages
    } else if has("turns") {
        Format::Questions
    } else if has("prompt") {
        Format::Prompts
    } else if keys.first().is_some_and(|k| k.parse::<u64>().is_ok()) {
        return Err(Refusal::NotRequests("the length distributions of one ServeGen client; name the pool's directory"));
    } else {
        let names = keys.iter().take(12).map(|k| format!("{k:?}")).collect::<Vec<_>>().join(", ");
        return Err(Refusal::Unknown { seen: format!("JSON with fields {names}") });
    };
    Ok(found)
}

fn lfs_size(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.lines().find_map(|l| l.strip_prefix("size "))?.trim().parse().ok()
}

fn header(text: &[u8]) -> Vec<String> {
    let mut table = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    let mut record = csv::ByteRecord::new();
    match table.read_byte_record(&mut record) {
        Ok(true) => record.iter().map(|c| String::from_utf8_lossy(c).trim().to_owned()).collect(),
        _ => Vec::new(),
    }
}

fn json_look(text: &[u8]) -> Look {
    let object = memchr::memchr(b'{', text).map_or(&text[text.len()..], |i| &text[i..]);
    let line_end = memchr::memchr(b'\n', text);
    let one_line = text[0] == b'{' && line_end.is_none_or(|end| top_level_keys(&text[..end]).1);
    Look::Json { keys: top_level_keys(object).0, framing: if one_line { Framing::Lines } else { Framing::Nested } }
}

/// The keys of the object that begins `text`, as far as it goes, and whether it is closed.
fn top_level_keys(text: &[u8]) -> (Vec<String>, bool) {
    let (mut keys, mut depth, mut string_start, mut escaped) = (Vec::new(), 0u32, None, false);
    for (i, &b) in text.iter().enumerate() {
        if let Some(start) = string_start {
            match b {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    let is_key = depth == 1 && text[i + 1..].trim_ascii_start().first() == Some(&b':');
                    if is_key {
                        keys.push(String::from_utf8_lossy(&text[start..i]).into_owned());
                    }
                    string_start = None;
                }
                _ => {}
            }
            continue;
        }
        match b {
            b'"' => string_start = Some(i + 1),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return (keys, true);
        }
    }
    (keys, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_first_object_alone() {
        let (keys, closed) = top_level_keys(br#"{"a": {"x": 1}, "b\"c": "d", "e": ["f"]} {"g":1}"#);
        assert_eq!(keys, ["a", "b\\\"c", "e"]);
        assert!(closed);
        assert_eq!(top_level_keys(br#"{"a": {"x": "#), (vec!["a".to_owned()], false));
    }

    #[test]
    fn lines_and_documents_are_told_apart() {
        let framing = |text: &str| match look(text.as_bytes()) {
            Ok(Look::Json { framing, .. }) => framing,
            other => panic!("{other:?}"),
        };
        assert_eq!(framing("{\"a\":1}\n{\"a\":2}\n"), Framing::Lines);
        assert_eq!(framing("{\"a\":1}"), Framing::Lines);
        assert_eq!(framing("{\n\"a\":1}"), Framing::Nested);
        assert_eq!(framing("[{\"a\":1}]"), Framing::Nested);
    }

    #[test]
    fn every_format_has_one_name() {
        for format in Format::ALL {
            assert_eq!(Format::from_word(format.word()), Some(format));
        }
    }
}
