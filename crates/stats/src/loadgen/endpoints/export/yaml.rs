//! YAML text of a JSON value: block mappings and lists, scalars quoted as JSON, which YAML reads alike.

use serde_json::Value;

/// The text, ending in a newline.
pub(super) fn text(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    out
}

fn block(value: &Value, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                out.push_str(&format!("{pad}{}:", key(name)));
                entry(value, indent + 2, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&format!("{pad}-"));
                entry(item, indent + 2, out);
            }
        }
        scalar => out.push_str(&format!("{pad}{scalar}\n")),
    }
}

fn entry(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            block(value, indent, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(value, indent, out);
        }
        scalar => out.push_str(&format!(" {scalar}\n")),
    }
}

/// Plain where nothing could misread it.
fn key(name: &str) -> String {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic());
    let word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&name.to_lowercase().as_str());
    if plain && !word { name.to_owned() } else { Value::from(name).to_string() }
}
