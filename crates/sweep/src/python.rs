//! Values as Python writes them: vLLM's names of folders, arguments and CSV cells are Python's `str` of what the parameter files hold.

use serde_json::Value;
use std::fmt::Write as _;

/// `str(value)`.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => repr(other),
    }
}

/// `repr(value)`.
pub fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Number(n) => match n.as_f64() {
            Some(v) if n.is_f64() => float(v),
            _ => n.to_string(),
        },
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(repr).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let pairs: Vec<String> = map.iter().map(|(k, v)| format!("{}: {}", quoted(k), repr(v))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

/// A float's `repr`: the shortest digits that read back the same, with an exponent below 1e-4 and from 1e16 on.
pub fn float(v: f64) -> String {
    if !v.is_finite() {
        return if v.is_nan() {
            "nan".into()
        } else if v > 0.0 {
            "inf".into()
        } else {
            "-inf".into()
        };
    }
    let scientific = format!("{v:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if v == 0.0 || (-4..16).contains(&exponent) {
        return format!("{v:?}");
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if c < ' ' || c == '\x7f' => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// `json.dumps(value)`: a blank after each comma and colon, everything beyond ASCII escaped.
pub fn json(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let pair = |(k, v): (&String, &Value)| format!("{}: {}", json(&Value::from(k.as_str())), json(v));
            format!("{{{}}}", map.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        Value::Number(n) if n.is_f64() => float(n.as_f64().unwrap_or(f64::NAN)),
        Value::String(_) => {
            let mut out = String::new();
            for unit in value.to_string().encode_utf16() {
                match u8::try_from(unit).ok().filter(u8::is_ascii) {
                    Some(byte) => out.push(char::from(byte)),
                    None => {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
            }
            out
        }
        plain => plain.to_string(),
    }
}

/// Reads JSON in which Python may have written `NaN`, `Infinity` and `-Infinity`: they become the strings `nan`, `inf` and `-inf`, as
/// vLLM's own plots read them.
///
/// # Errors
/// No JSON even so.
pub fn read_json(bytes: &[u8]) -> serde_json::Result<Value> {
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Ok(value);
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut in_string = false;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let bare = [(&b"-Infinity"[..], &b"\"-inf\""[..]), (b"Infinity", b"\"inf\""), (b"NaN", b"\"nan\"")];
        match bare.iter().find(|(name, _)| !in_string && rest.starts_with(name)) {
            Some((name, text)) => {
                out.extend_from_slice(text);
                at += name.len();
                continue;
            }
            None if in_string && rest[0] == b'\\' => {
                out.extend_from_slice(&rest[..rest.len().min(2)]);
                at += 2;
                continue;
            }
            None => in_string ^= rest[0] == b'"',
        }
        out.push(rest[0]);
        at += 1;
    }
    serde_json::from_slice(&out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Expected values: Python 3.11's `str`, `repr` and `json.dumps`.
    #[test]
    fn values_are_written_as_python_writes_them() {
        for (value, str_, dumped) in [
            (json!(true), "True", "true"),
            (json!(null), "None", "null"),
            (json!(16), "16", "16"),
            (json!(0.5), "0.5", "0.5"),
            (json!(1.0), "1.0", "1.0"),
            (json!(1e16), "1e+16", "1e+16"),
            (json!(123456789012345680.0), "1.2345678901234568e+17", "1.2345678901234568e+17"),
            (json!(0.0001), "0.0001", "0.0001"),
            (json!(0.00001), "1e-05", "1e-05"),
            (json!(-2.5e-7), "-2.5e-07", "-2.5e-07"),
            (json!("a b"), "a b", "\"a b\""),
            (json!([1, "x", "it's", "a\"b'c\n"]), r#"[1, 'x', "it's", 'a"b\'c\n']"#, r#"[1, "x", "it's", "a\"b'c\n"]"#),
            (json!({"a": {"b": [false]}}), "{'a': {'b': [False]}}", r#"{"a": {"b": [false]}}"#),
            (json!("grün 😀"), "grün 😀", r#""gr\u00fcn \ud83d\ude00""#),
        ] {
            assert_eq!(text(&value), str_);
            assert_eq!(json(&value), dumped);
        }
        assert_eq!((float(f64::INFINITY), float(f64::NAN), float(0.0)), ("inf".into(), "nan".into(), "0.0".into()));
    }

    #[test]
    fn pythons_bare_infinities_are_read() {
        let text = br#"{"a": NaN, "b": [Infinity, -Infinity], "NaN": "Infinity \" NaN"}"#;
        assert_eq!(read_json(text).unwrap(), json!({"a": "nan", "b": ["inf", "-inf"], "NaN": "Infinity \" NaN"}));
        assert!(read_json(b"{\"a\": nothing}").is_err());
        assert!(read_json(b"{\"a\": \"\\").is_err());
    }
}
