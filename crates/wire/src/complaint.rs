//! The server's own words about what went wrong, on one line.

use serde_json::Value;

/// The longest message that is passed on, in characters.
const LONGEST: usize = 400;

/// The message of an error object, whichever of the usual shapes it has; `None` if the value isn't an error.
pub(crate) fn of_json(value: &Value) -> Option<String> {
    match value.get("error") {
        None | Some(Value::Null | Value::Bool(false)) => {}
        Some(error) => return Some(of_error(error)),
    }
    let is_error = ["object", "type"].iter().any(|key| value.get(key).and_then(Value::as_str) == Some("error"));
    is_error.then(|| of_error(value))
}

/// The message of what stands under `error`.
pub(crate) fn of_error(error: &Value) -> String {
    let text = match error {
        Value::String(text) => text.clone(),
        Value::Object(map) => ["message", "msg", "detail", "error", "type", "code"]
            .iter()
            .find_map(|key| match map.get(*key) {
                Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
                Some(inner @ Value::Object(_)) => Some(of_error(inner)),
                _ => None,
            })
            .unwrap_or_else(|| error.to_string()),
        other => other.to_string(),
    };
    one_line(&text, LONGEST)
}

/// The message in the body of a reply whose status says that it failed: JSON, HTML or text.
pub(crate) fn of_body(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{FEFF}').trim();
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return of_json(&value).unwrap_or_else(|| of_other_json(&value));
    }
    if text.starts_with('<') {
        return of_html(text);
    }
    let first_data = text.lines().find_map(|line| line.strip_prefix("data:"));
    if let Some(value) = first_data.and_then(|data| serde_json::from_str::<Value>(data.trim()).ok()) {
        return of_json(&value).unwrap_or_else(|| of_other_json(&value));
    }
    one_line(text, LONGEST)
}

fn of_other_json(value: &Value) -> String {
    match value.get("detail") {
        // FastAPI's list of validation errors.
        Some(Value::Array(list)) => {
            let messages: Vec<&str> = list.iter().filter_map(|item| item.get("msg")?.as_str()).collect();
            if messages.is_empty() {
                one_line(&value.to_string(), LONGEST)
            } else {
                one_line(&messages.join("; "), LONGEST)
            }
        }
        Some(detail) => of_error(detail),
        None if value.is_array() && value.as_array().is_some_and(|list| list.len() == 1) => {
            of_json(&value[0]).unwrap_or_else(|| of_error(&value[0]))
        }
        None => of_error(value),
    }
}

/// The title of a page, or its text if it has none.
pub(crate) fn of_html(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    for tag in ["title", "h1"] {
        let inside = lower.find(&format!("<{tag}")).and_then(|open| {
            let start = open + lower[open..].find('>')? + 1;
            let end = start + lower[start..].find(&format!("</{tag}"))?;
            Some(one_line(&page[start..end], LONGEST))
        });
        if let Some(title) = inside.filter(|title| !title.is_empty()) {
            return title;
        }
    }
    let mut out = String::new();
    let mut inside_tag = false;
    for c in page.chars() {
        match c {
            '<' => inside_tag = true,
            '>' if inside_tag => {
                inside_tag = false;
                out.push(' ');
            }
            c if !inside_tag => out.push(c),
            _ => {}
        }
    }
    one_line(&out, LONGEST)
}

/// White space and control characters collapsed to single blanks; cut after `longest` characters.
pub(crate) fn one_line(text: &str, longest: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if length > 0 {
            out.push(' ');
            length += 1;
        }
        for c in word.chars() {
            if length >= longest {
                out.push('…');
                return out;
            }
            out.push(c);
            length += 1;
        }
    }
    out
}

/// The start of some bytes for a message.
pub(crate) fn quote(bytes: &[u8]) -> String {
    // 80 characters are at most 320 bytes; what is cut in a character's middle is beyond them anyway.
    one_line(&String::from_utf8_lossy(&bytes[..bytes.len().min(400)]), 80)
}
