//! Which address, which API, which key.

use super::args::TargetArgs;
use crate::failure::{Failure, Outcome};
use tailbound_wire::Api;

/// Backends that are accepted, and the endpoint each implies when `--endpoint` isn't given.
const BACKENDS: &[(&str, &str)] = &[
    ("openai", "/v1/completions"),
    ("vllm", "/v1/completions"),
    ("openai-chat", "/v1/chat/completions"),
    ("vllm-chat", "/v1/chat/completions"),
    ("openai-responses", "/v1/responses"),
    ("anthropic", "/v1/messages"),
    ("tgi", "/generate_stream"),
    ("sglang", "/v1/completions"),
    ("sglang-oai", "/v1/completions"),
    ("sglang-oai-chat", "/v1/chat/completions"),
    ("llama.cpp", "/v1/completions"),
    ("lmdeploy", "/v1/completions"),
    ("lmdeploy-chat", "/v1/chat/completions"),
    ("tensorrt-llm", "/v1/completions"),
    ("scalellm", "/v1/completions"),
];

/// Where requests go, as text, and how they are spoken.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Scheme, host, port and prefix, without a slash at the end.
    pub base: String,
    /// The API's path, with a slash at the start.
    pub path: String,
    /// Decided by the path.
    pub api: Api,
}

impl Endpoint {
    /// From the flags.
    pub fn from_args(args: &TargetArgs) -> Outcome<Endpoint> {
        let implied = BACKENDS.iter().find(|(name, _)| *name == args.backend).map(|(_, path)| *path);
        let Some(implied) = implied else { return Err(unknown_backend(&args.backend)) };
        let path = args.endpoint.clone().unwrap_or_else(|| implied.to_owned());
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        let api = Api::from_path(&path).ok_or_else(|| {
            Failure::usage(format!("--endpoint {path}: no API is known by that ending"))
                .hint("the path must end in /completions, /chat/completions, /responses, /messages or /generate_stream")
        })?;
        Ok(Endpoint { base: base_url(args)?, path, api })
    }

    /// The whole address.
    pub fn url(&self) -> String {
        format!("{}{}", self.base, self.path)
    }
}

fn base_url(args: &TargetArgs) -> Outcome<String> {
    let Some(base) = &args.base_url else {
        let host = args.host.trim_start_matches('[').trim_end_matches(']');
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        return Ok(format!("http://{host}:{}", args.port));
    };
    let base = base.trim_end_matches('/');
    if !base.starts_with("http://") && !base.starts_with("https://") {
        return Err(Failure::usage(format!("--base-url {base}: not an address with http:// or https:// in front"))
            .hint(format!("try --base-url http://{base}")));
    }
    // Other tools' OPENAI_BASE_URL ends in /v1, and so does the endpoint begin.
    let from_environment = std::env::var("OPENAI_BASE_URL").is_ok_and(|v| v.trim_end_matches('/') == base);
    Ok(if from_environment { base.trim_end_matches("/v1").to_owned() } else { base.to_owned() })
}

fn unknown_backend(name: &str) -> Failure {
    let near = BACKENDS.iter().map(|(b, _)| *b).min_by_key(|b| distance(b, name)).filter(|b| distance(b, name) <= 3);
    let all: Vec<&str> = BACKENDS.iter().map(|(b, _)| *b).collect();
    let failure = Failure::usage(format!("--backend {name}: unknown backend"));
    match near {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure.hint(format!("one of {}", all.join(", "))),
    }
}

/// Edit distance, for "did you mean".
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The API key: from the file, the named variable, or OPENAI_API_KEY. Never printed.
pub fn api_key(args: &TargetArgs) -> Outcome<Option<String>> {
    let key = match (&args.api_key_file, &args.api_key_env) {
        (Some(_), Some(_)) => return Err(Failure::usage("--api-key-file and --api-key-env are both given; use one")),
        (Some(file), None) => Some(
            std::fs::read_to_string(file)
                .map_err(|e| Failure::usage(format!("--api-key-file {}: failed to read it: {e}", file.display())))?,
        ),
        (None, Some(name)) => Some(
            std::env::var(name)
                .map_err(|_| Failure::usage(format!("--api-key-env {name}: the variable is not set")))?,
        ),
        (None, None) => std::env::var("OPENAI_API_KEY").ok(),
    };
    Ok(key.map(|k| k.trim().to_owned()).filter(|k| !k.is_empty()))
}

/// All headers of every request, the key's first so that `--header` can win.
pub fn headers(args: &TargetArgs) -> Outcome<Vec<(String, String)>> {
    let mut headers = Vec::new();
    if let Some(key) = api_key(args)? {
        headers.push(("authorization".to_owned(), format!("Bearer {key}")));
    }
    for pair in &args.header {
        let (name, value) = key_value("--header", pair)?;
        headers.retain(|(n, _): &(String, String)| !n.eq_ignore_ascii_case(&name));
        headers.push((name, value));
    }
    Ok(headers)
}

/// Splits `KEY=VALUE`.
pub fn key_value(flag: &str, pair: &str) -> Outcome<(String, String)> {
    match pair.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => {
            Err(Failure::usage(format!("{flag} {}: not of the form KEY=VALUE", pair.split('=').next().unwrap_or(pair))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_edits() {
        assert_eq!(distance("openai-chat", "openai-chta"), 2);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn a_broken_pair_is_named_without_its_value() {
        assert!(key_value("--header", "novalue").unwrap_err().to_string().contains("--header novalue"));
        assert_eq!(key_value("--header", "a=b=c").unwrap(), ("a".into(), "b=c".into()));
    }
}
