//! Chats as texts, in the ChatML form: `<|im_start|>role\ncontent<|im_end|>\n` for each message, then the assistant's turn.

use serde_json::Value;

use super::fields::wrong;
use super::problem::Problem;
/// Opens the assistant's turn.
pub(crate) const OPENING: &str = "<|im_start|>assistant\n";

/// The text of a list of messages, a system message apart if there is one; `field` is where they stand, for complaints.
pub(crate) fn chat(system: Option<&Value>, messages: &[Value], field: &str) -> Result<String, Problem> {
    if messages.is_empty() {
        return Err(wrong("too_short", field, "List should have at least 1 item"));
    }
    let mut text = String::new();
    if let Some(system) = system {
        turn("system", &content(system, "system")?, &mut text);
    }
    for (i, message) in messages.iter().enumerate() {
        let at = format!("{field}.{i}");
        let Value::Object(message) = message else {
            return Err(wrong("dict_type", &at, "Input should be a valid dictionary"));
        };
        let role = match message.get("role") {
            Some(Value::String(role)) => role,
            Some(_) => return Err(wrong("string_type", &format!("{at}.role"), "Input should be a valid string")),
            None => return Err(wrong("missing", &format!("{at}.role"), "Field required")),
        };
        let said = match message.get("content") {
            Some(value) => content(value, &format!("{at}.content"))?,
            // An assistant's turn may be tool calls alone.
            None if role == "assistant" => String::new(),
            None => return Err(wrong("missing", &format!("{at}.content"), "Field required")),
        };
        turn(role, &said, &mut text);
    }
    text.push_str(OPENING);
    Ok(text)
}

/// One user's message.
pub(crate) fn single(system: Option<&Value>, text: &str) -> Result<String, Problem> {
    let message = serde_json::json!({"role": "user", "content": text});
    chat(system, &[message], "input")
}

fn turn(role: &str, said: &str, text: &mut String) {
    for part in ["<|im_start|>", role, "\n", said, "<|im_end|>\n"] {
        text.push_str(part);
    }
}

/// A message's text: a string, or parts of which each must be text.
fn content(value: &Value, at: &str) -> Result<String, Problem> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let mut whole = String::new();
            for part in parts {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
                let text = part.get("text").and_then(Value::as_str);
                match (kind, text) {
                    ("text" | "input_text" | "output_text", Some(text)) => whole.push_str(text),
                    ("text" | "input_text" | "output_text", None) => {
                        return Err(wrong("missing", &format!("{at}.text"), "Field required"));
                    }
                    _ => {
                        return Err(Problem::unsupported(
                            "messages",
                            format!("The emulator takes text only: a part of type {kind} is not supported"),
                        ));
                    }
                }
            }
            Ok(whole)
        }
        _ => Err(wrong("string_type", at, "Input should be a valid string")),
    }
}
