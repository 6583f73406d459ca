//! The endpoints: which there are, and what their requests ask for.

pub(crate) mod ask;
pub(crate) mod fields;
mod problem;
mod template;

pub(crate) use ask::{Api, Ask, Rules};
pub(crate) use problem::Problem;

use crate::http::Method;

/// The text of a chat, with or without the assistant's turn opened.
pub(crate) fn prompt_text(messages: &[serde_json::Value], open: bool) -> Result<String, Problem> {
    let mut text = template::chat(None, messages, "messages")?;
    if !open {
        text.truncate(text.len() - template::OPENING.len());
    }
    Ok(text)
}

/// An endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Generate(Api),
    Models,
    Health,
    Version,
    Load,
    Metrics,
    Tokenize,
    Detokenize,
    ResetPrefixCache,
    /// How late the emulator itself has been.
    Truth,
}

impl Route {
    /// Finds it, or says why not: 404 for an unknown path, 405 for a known one with another method.
    pub(crate) fn find(method: Method, path: &[u8]) -> Result<Route, Problem> {
        const GET: &[Method] = &[Method::Get];
        const POST: &[Method] = &[Method::Post];
        const BOTH: &[Method] = &[Method::Get, Method::Post];
        let (methods, route) = match path {
            b"/v1/completions" => (POST, Route::Generate(Api::Completions)),
            b"/v1/chat/completions" => (POST, Route::Generate(Api::Chat)),
            b"/v1/messages" => (POST, Route::Generate(Api::Messages)),
            b"/v1/responses" => (POST, Route::Generate(Api::Responses)),
            b"/v1/models" => (GET, Route::Models),
            b"/health" => (GET, Route::Health),
            b"/ping" => (BOTH, Route::Health),
            b"/version" => (GET, Route::Version),
            b"/load" => (GET, Route::Load),
            b"/metrics" => (GET, Route::Metrics),
            b"/tokenize" => (POST, Route::Tokenize),
            b"/detokenize" => (POST, Route::Detokenize),
            b"/reset_prefix_cache" => (POST, Route::ResetPrefixCache),
            b"/emulator/truth" => (GET, Route::Truth),
            _ => return Err(Problem::plain(404, "Not Found")),
        };
        if methods.contains(&method) { Ok(route) } else { Err(Problem::plain(405, "Method Not Allowed")) }
    }

    /// Whether vLLM's `--api-key` guards it.
    pub(crate) fn is_guarded(self) -> bool {
        matches!(self, Route::Generate(_) | Route::Models)
    }
}
