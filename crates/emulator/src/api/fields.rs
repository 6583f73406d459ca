//! A JSON body's fields, each asked for by name and type.

use serde_json::{Map, Value};

use super::problem::Problem;

/// The object a request's body is.
pub(crate) struct Fields {
    map: Map<String, Value>,
}

impl Fields {
    pub(crate) fn parse(body: &[u8]) -> Result<Fields, Problem> {
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Object(map)) => Ok(Fields { map }),
            Ok(_) => Err(Problem::form("model_attributes_type", "body", "Input should be a valid dictionary")),
            Err(e) => {
                let at = offset(body, e.line(), e.column());
                Err(Problem::form("json_invalid", &format!("body.{at}"), &format!("JSON decode error: {e}")))
            }
        }
    }

    /// The value of `name`, if it is there and not null.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|v| !v.is_null())
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| wrong("string_type", name, "Input should be a valid string"))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let read = match value {
            Value::Bool(b) => Some(*b),
            // What pydantic takes for a boolean too.
            Value::Number(n) if n.as_u64() == Some(0) => Some(false),
            Value::Number(n) if n.as_u64() == Some(1) => Some(true),
            Value::String(s) if s.eq_ignore_ascii_case("true") => Some(true),
            Value::String(s) if s.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        };
        read.map(Some).ok_or_else(|| wrong("bool_parsing", name, "Input should be a valid boolean"))
    }

    pub(crate) fn whole(&self, name: &str) -> Result<Option<i64>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let read = match value {
            Value::Number(n) => n.as_i64().or_else(|| n.as_f64().filter(|f| f.fract() == 0.0).map(|f| f as i64)),
            Value::String(s) => s.parse().ok(),
            _ => None,
        };
        read.map(Some).ok_or_else(|| wrong("int_parsing", name, "Input should be a valid integer"))
    }

    pub(crate) fn real(&self, name: &str) -> Result<Option<f64>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let read = match value {
            Value::Number(n) => n.as_f64(),
            Value::String(s) => s.parse().ok(),
            _ => None,
        };
        read.map(Some).ok_or_else(|| wrong("float_parsing", name, "Input should be a valid number"))
    }

    pub(crate) fn list(&self, name: &str) -> Result<Option<&Vec<Value>>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_array().map(Some).ok_or_else(|| wrong("list_type", name, "Input should be a valid list"))
    }

    pub(crate) fn object(&self, name: &str) -> Result<Option<Fields>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value {
            Value::Object(map) => Ok(Some(Fields { map: map.clone() })),
            _ => Err(wrong("dict_type", name, "Input should be a valid dictionary")),
        }
    }
}

pub(crate) fn missing(name: &str) -> Problem {
    wrong("missing", name, "Field required")
}

pub(crate) fn wrong(kind: &str, name: &str, message: &str) -> Problem {
    Problem::form(kind, &format!("body.{name}"), message)
}

/// The byte offset of a line and column, both counted from 1.
fn offset(body: &[u8], line: usize, column: usize) -> usize {
    let start = body.split_inclusive(|&b| b == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum::<usize>();
    (start + column).min(body.len())
}
