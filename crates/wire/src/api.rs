/// The API that a request speaks; an endpoint's path decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI `/v1/completions`.
    Completions,
    /// OpenAI `/v1/chat/completions`.
    Chat,
    /// OpenAI `/v1/responses`.
    Responses,
    /// Anthropic `/v1/messages`.
    Messages,
    /// Text Generation Inference's `/generate_stream` (and `/generate`, its reply in one piece).
    TgiGenerate,
    /// llama.cpp's own `/completion`.
    LlamaCompletion,
}

impl Api {
    /// By the end of an endpoint's path: `/openai/v1/chat/completions?x=1` is chat.
    pub fn from_path(path: &str) -> Option<Api> {
        let path = path.split(['?', '#']).next().unwrap_or(path).trim_end_matches('/');
        let (before, last) = path.rsplit_once('/').unwrap_or(("", path));
        match last {
            "completions" if before == "chat" || before.ends_with("/chat") => Some(Api::Chat),
            "completions" => Some(Api::Completions),
            "responses" => Some(Api::Responses),
            "messages" => Some(Api::Messages),
            "generate_stream" | "generate" => Some(Api::TgiGenerate),
            "completion" => Some(Api::LlamaCompletion),
            _ => None,
        }
    }

    /// Its usual path.
    pub fn path(self) -> &'static str {
        match self {
            Api::Completions => "/v1/completions",
            Api::Chat => "/v1/chat/completions",
            Api::Responses => "/v1/responses",
            Api::Messages => "/v1/messages",
            Api::TgiGenerate => "/generate_stream",
            Api::LlamaCompletion => "/completion",
        }
    }
}
