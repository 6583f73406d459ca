use crate::python;
use serde_json::{Map, Value};

/// The key under which a combination carries its name; it is no parameter.
pub const NAME: &str = "_benchmark_name";

/// One combination of parameters, in the order of its file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(pub Map<String, Value>);

/// What is wrong with a file of parameters.
#[derive(Debug, thiserror::Error)]
pub enum ParamsError {
    /// No JSON.
    #[error("read it as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// JSON of another shape.
    #[error("find combinations in it: wanted a list of objects, or an object of objects by name, and found {0}")]
    Shape(String),
    /// Nothing to run.
    #[error("find combinations in it: it is empty (leave the flag away to change nothing)")]
    Empty,
    /// Two of the same name.
    #[error("tell its combinations apart: two of them are named `{0}`")]
    Duplicate(String),
}

impl Params {
    /// The combinations of a file: a list of objects, or an object of objects whose keys are their names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Vec<Params>, ParamsError> {
        let list: Vec<Params> = match serde_json::from_slice(bytes)? {
            Value::Array(items) => items
                .into_iter()
                .map(|item| match item {
                    Value::Object(map) => Ok(Params(map)),
                    other => Err(ParamsError::Shape(format!("{other} in the list"))),
                })
                .collect::<Result<_, _>>()?,
            Value::Object(by_name) => by_name
                .into_iter()
                .map(|(name, item)| match item {
                    Value::Object(map) => {
                        let named = std::iter::once((NAME.to_owned(), Value::from(name)));
                        Ok(Params(named.chain(map).collect()))
                    }
                    other => Err(ParamsError::Shape(format!("{other} under the name `{name}`"))),
                })
                .collect::<Result<_, _>>()?,
            other => return Err(ParamsError::Shape(other.to_string())),
        };
        if list.is_empty() {
            return Err(ParamsError::Empty);
        }
        let names: Vec<String> = list.iter().filter_map(|p| p.0.get(NAME)).map(python::text).collect();
        match names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            Some((_, name)) => Err(ParamsError::Duplicate(name.clone())),
            None => Ok(list),
        }
    }

    /// These, with one more, or with another value for one.
    #[must_use]
    pub fn with(&self, key: &str, value: impl Into<Value>) -> Params {
        let mut more = self.clone();
        more.0.insert(key.to_owned(), value.into());
        more
    }

    /// Its name, or its parameters as `key=value-key=value`.
    pub fn name(&self) -> String {
        self.0.get(NAME).map_or_else(|| self.text("-"), python::text)
    }

    /// `key=value`, joined.
    pub fn text(&self, separator: &str) -> String {
        let pairs: Vec<String> =
            self.0.iter().filter(|(k, _)| *k != NAME).map(|(k, v)| format!("{k}={}", python::text(v))).collect();
        pairs.join(separator)
    }

    /// The value of a key, however it spells `-` and `_`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        spellings(key).iter().find_map(|key| self.0.get(key))
    }

    /// A command with these parameters: a flag that is there is replaced, others are appended. `true` and `false` are `--flag` and
    /// `--no-flag` (`--a.b=true` within a nested key), an object is its JSON.
    pub fn apply(&self, argv: &[String]) -> Vec<String> {
        let mut argv = argv.to_vec();
        for (key, value) in self.0.iter().filter(|(key, _)| *key != NAME) {
            let words = flag(key, value);
            let negative = format!("no-{key}");
            let known: Vec<String> = match value {
                // A switch may stand in the command either way.
                Value::Bool(_) if !key.contains('.') => [spellings(key), spellings(&negative)].concat(),
                _ => spellings(key),
            };
            let found = argv.iter().position(|arg| {
                let name = arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
                name.strip_prefix("--").is_some_and(|name| known.iter().any(|k| k == name))
            });
            match found {
                Some(at) => {
                    // `--key=value` is one word; `--key value` is two, unless the flag is a switch.
                    let two = words.len() == 2 && !argv[at].contains('=') && at + 1 < argv.len();
                    argv.splice(at..at + 1 + usize::from(two), words);
                }
                None => argv.extend(words),
            }
        }
        argv
    }
}

/// As a command line says it, in vLLM's spelling.
fn flag(key: &str, value: &Value) -> Vec<String> {
    let dashed = |key: &str| spellings(key).pop().unwrap_or_default();
    match value {
        Value::Bool(on) if key.contains('.') => vec![format!("--{}={on}", dashed(key))],
        Value::Bool(true) => vec![format!("--{}", dashed(key))],
        Value::Bool(false) => vec![format!("--{}", dashed(&format!("no-{key}")))],
        Value::Object(_) => vec![format!("--{}", dashed(key)), python::json(value)],
        other => vec![format!("--{}", dashed(key)), python::text(other)],
    }
}

/// A key as it may be spelled; what follows a dot is left alone. The last is the command line's way.
fn spellings(key: &str) -> Vec<String> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let spelled = [first.to_owned(), first.replace('-', "_"), first.replace('_', "-")];
    spelled.into_iter().map(|first| rest.map_or_else(|| first.clone(), |rest| format!("{first}.{rest}"))).collect()
}

/// Pairs of a server's and a benchmark's parameter that go together: `max_num_seqs=max_concurrency,…`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links(Vec<(String, String)>);

impl Links {
    /// From a flag's value; empty for none.
    ///
    /// # Errors
    /// The part that is no pair.
    pub fn parse(text: &str) -> Result<Links, String> {
        let pair = |part: &str| match part.split_once('=') {
            Some((a, b)) if !a.trim().is_empty() && !b.trim().is_empty() => {
                Ok((a.trim().to_owned(), b.trim().to_owned()))
            }
            _ => Err(part.to_owned()),
        };
        text.split(',').filter(|part| !part.trim().is_empty()).map(pair).collect::<Result<_, _>>().map(Links)
    }

    /// Whether two combinations go together: both have the linked parameters, with equal values.
    pub fn hold(&self, serve: &Params, bench: &Params) -> bool {
        self.0.iter().all(|(a, b)| match (serve.get(a), bench.get(b)) {
            (Some(a), Some(b)) => equal(a, b),
            _ => false,
        })
    }
}

/// Python's `==`: 1, 1.0 and `True` are equal.
fn equal(a: &Value, b: &Value) -> bool {
    let number = |v: &Value| v.as_f64().or_else(|| v.as_bool().map(f64::from));
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}
