//! YAML and JSON documents, and asking them for fields.

use serde_json::Value;

/// Reads a JSON object.
pub(super) fn json(content: &[u8]) -> Result<Value, String> {
    let value: Value = serde_json::from_slice(content).map_err(|e| format!("it is not JSON: {e}"))?;
    if value.is_object() { Ok(value) } else { Err("it must be a JSON object".into()) }
}

/// Reads a YAML mapping.
pub(super) fn yaml(content: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8".to_owned())?;
    let value: Value = serde_saphyr::from_str(text)
        .map_err(|e| format!("it is not YAML: {}", e.to_string().lines().next().unwrap_or_default()))?;
    if value.is_object() { Ok(value) } else { Err("it must be a mapping of fields".into()) }
}

/// The value at a dotted path; null counts as absent.
pub(super) fn at<'a>(doc: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = doc;
    for name in path.split('.') {
        value = value.get(name)?;
    }
    Some(value).filter(|v| !v.is_null())
}

/// A text that isn't empty.
pub(super) fn text<'a>(doc: &'a Value, path: &str) -> Option<&'a str> {
    at(doc, path)?.as_str().filter(|t| !t.is_empty())
}

/// A number, also one written as a text.
pub(super) fn number(doc: &Value, path: &str) -> Option<f64> {
    let value = at(doc, path)?;
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// A whole number, also one written as a text or with a zero fraction.
pub(super) fn whole(doc: &Value, path: &str) -> Option<i128> {
    let value = at(doc, path)?;
    if let Some(v) = value.as_i64() {
        return Some(v.into());
    }
    if let Some(v) = value.as_u64() {
        return Some(v.into());
    }
    if let Some(v) = value.as_f64() {
        return (v == libm::trunc(v) && v.abs() < 1e15).then_some(v as i128);
    }
    value.as_str()?.trim().parse().ok()
}
