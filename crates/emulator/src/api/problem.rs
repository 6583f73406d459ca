//! Refusals in the words and shape clients of vLLM know.

use tailbound_token::TokenError;

use crate::http::reply::phrase;

impl From<TokenError> for Problem {
    fn from(e: TokenError) -> Problem {
        Problem::unsupported("prompt", e.to_string())
    }
}

/// An error reply: OpenAI's error object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    pub status: u16,
    pub kind: String,
    pub message: String,
    pub param: Option<String>,
}

impl Problem {
    /// An error of the protocol itself, named by its status: unknown paths, wrong methods, broken HTTP.
    pub(crate) fn plain(status: u16, message: impl Into<String>) -> Problem {
        Problem { status, kind: phrase(status).to_owned(), message: message.into(), param: None }
    }

    /// A value that has the right type and is still no good.
    pub(crate) fn value(param: &str, value: impl std::fmt::Display, message: impl std::fmt::Display) -> Problem {
        Problem {
            status: 400,
            kind: "BadRequestError".to_owned(),
            message: format!("{message} (parameter={param}, value={value})"),
            param: Some(param.to_owned()),
        }
    }

    /// Something that is asked for in good form and not offered.
    pub(crate) fn unsupported(param: &str, message: impl Into<String>) -> Problem {
        Problem {
            status: 400,
            kind: "BadRequestError".to_owned(),
            message: message.into(),
            param: Some(param.to_owned()),
        }
    }

    /// A body that does not have the form of this endpoint: a field of the wrong type, or a missing one.
    pub(crate) fn form(kind: &str, loc: &str, message: &str) -> Problem {
        Problem {
            status: 400,
            kind: "Bad Request".to_owned(),
            message: format!("1 validation error:\n  {{'type': '{kind}', 'loc': '{loc}', 'msg': '{message}'}}"),
            param: Some(loc.to_owned()),
        }
    }

    pub(crate) fn unknown_model(model: &str, served: &[String]) -> Problem {
        Problem {
            status: 404,
            kind: "NotFoundError".to_owned(),
            message: format!("The model `{model}` does not exist. Valid aliases: {}.", served.join(", ")),
            param: Some("model".to_owned()),
        }
    }

    pub(crate) fn prompt_too_long(prompt: usize, max_model_len: u32) -> Problem {
        let message = format!(
            "This model's maximum context length is {max_model_len} tokens. However, your prompt contains at least \
             {prompt} input tokens, which leaves no room for an output token. Please shorten the prompt."
        );
        Problem::value("input_tokens", prompt, message)
    }

    pub(crate) fn output_too_long(asked: u32, prompt: usize, max_model_len: u32) -> Problem {
        let message = format!(
            "This model's maximum context length is {max_model_len} tokens. However, you requested {asked} output \
             tokens and your prompt contains {prompt} input tokens. Please shorten the prompt or ask for fewer tokens."
        );
        Problem::value("max_tokens", asked, message)
    }

    /// The body of the reply.
    pub(crate) fn body(&self) -> Vec<u8> {
        serde_json::json!({
            "error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.status}
        })
        .to_string()
        .into_bytes()
    }

    /// The body in Anthropic's shape, for `/v1/messages`.
    pub(crate) fn anthropic_body(&self) -> Vec<u8> {
        let kind = match self.status {
            404 => "not_found_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        serde_json::json!({"type": "error", "error": {"type": kind, "message": self.message}}).to_string().into_bytes()
    }
}
