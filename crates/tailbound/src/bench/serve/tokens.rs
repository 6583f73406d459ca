//! Who counts tokens: a tokenizer file, the server's own /tokenize, or nobody; and saying which.

use super::args::TargetArgs;
use super::discover::Model;
use crate::failure::{Failure, Outcome};
use crate::http::Server;
use serde_json::json;
use tailbound_prompt::Counting;
use tailbound_token::{Hub, Tokenizer};

/// A source of token counts.
pub enum Counter {
    /// A `tokenizer.json`.
    File(Box<Tokenizer>, String),
    /// The server's `/tokenize`.
    Server { server: Server, model: String },
    /// Nobody.
    None,
}

impl Counter {
    /// By the flags: `--tokenizer`, else the model's in the local hub cache, else the server's own, else none.
    pub fn resolve(args: &TargetArgs, model: &Model, server: &Server) -> Outcome<Counter> {
        if args.skip_tokenizer_init {
            return Ok(Counter::None);
        }
        let hub = Hub::from_env();
        let Some(name) = &args.tokenizer else {
            return match hub.find(&model.root) {
                Ok(source) => load(source.file(), &model.root),
                Err(_) => Ok(server_counts(server, &model.name).unwrap_or(Counter::None)),
            };
        };
        match hub.find(name) {
            Ok(source) => load(source.file(), name),
            Err(e) if hub.folder(name).is_none() => Err(Failure::usage(format!("--tokenizer {name}: failed to {e}"))),
            Err(e) => {
                eprintln!("note: --tokenizer {name}: {e}");
                if !hub.offline {
                    match crate::hub::download(&hub, name) {
                        Ok(file) => return load(&file, name),
                        Err(failure) => eprintln!("note: it could not be downloaded: {}", failure.cause()),
                    }
                }
                let counter = server_counts(server, &model.name).unwrap_or(Counter::None);
                eprintln!("note: instead, tokens are counted by {}", counter.description());
                Ok(counter)
            }
        }
    }

    /// `--tokenizer` alone, where there is no server to ask.
    pub fn local(name: &str) -> Outcome<Counter> {
        match Hub::from_env().find(name) {
            Ok(source) => load(source.file(), name),
            Err(e) => Err(Failure::usage(format!("--tokenizer {name}: failed to {e}"))),
        }
    }

    /// The tokenizer, if one is at hand here.
    pub fn tokenizer(&self) -> Option<&Tokenizer> {
        match self {
            Counter::File(tokenizer, _) => Some(tokenizer),
            _ => None,
        }
    }

    /// For the report: where counts came from.
    pub fn description(&self) -> String {
        match self {
            Counter::File(tokenizer, _) => format!("tokenizer {}", tokenizer.path().display()),
            Counter::Server { .. } => "the server's /tokenize".into(),
            Counter::None => "the server's usage alone".into(),
        }
    }

    /// What vLLM's JSON calls `tokenizer_id`.
    pub fn id(&self) -> Option<String> {
        match self {
            Counter::File(_, name) => Some(name.clone()),
            _ => None,
        }
    }

    /// Calls `then` with what the prompts' maker needs.
    pub fn with<T>(&self, then: impl FnOnce(Counting<'_>) -> T) -> T {
        match self {
            Counter::File(tokenizer, _) => then(Counting::Tokenizer(tokenizer)),
            Counter::Server { server, model } => {
                let count = |texts: &[&str], specials: bool| -> Result<Vec<u32>, String> {
                    texts.iter().map(|text| count_one(server, model, text, specials)).collect()
                };
                then(Counting::Server(&count))
            }
            Counter::None => then(Counting::Unknown),
        }
    }
}

fn load(file: &std::path::Path, name: &str) -> Outcome<Counter> {
    let tokenizer =
        Tokenizer::load(file).map_err(|e| Failure::new(format!("failed to {e}")).during("loading the tokenizer"))?;
    Ok(Counter::File(Box::new(tokenizer), name.to_owned()))
}

/// The server's tokenizer, if it has one that answers.
fn server_counts(server: &Server, model: &str) -> Option<Counter> {
    count_one(server, model, "Hello", false).ok()?;
    Some(Counter::Server { server: server.clone(), model: model.to_owned() })
}

/// vLLM's `/tokenize` takes `prompt` and answers `count`; llama.cpp's takes `content` and answers `tokens`. One body serves both.
fn count_one(server: &Server, model: &str, text: &str, specials: bool) -> Result<u32, String> {
    let body = json!({"model": model, "prompt": text, "content": text, "add_special_tokens": specials, "add_special": specials});
    let answer = server.post("/tokenize", &body).map_err(|e| e.to_string())?;
    let count = answer["count"].as_u64().or_else(|| Some(answer["tokens"].as_array()?.len() as u64));
    count.and_then(|n| u32::try_from(n).ok()).ok_or_else(|| "its answer has neither `count` nor `tokens`".to_owned())
}
