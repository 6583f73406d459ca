//! Request bodies against what vLLM 0.33's benchmark sends.

use serde_json::{Map, Value, json};
use tailbound_wire::Api;
use tailbound_wire::body::{AskUsage, BodyError, Content, Prompt, Request, Sampling, write};

fn request(prompt: Prompt<'_>) -> Request<'_> {
    Request {
        model: "m",
        prompt,
        max_tokens: Some(16),
        stream: true,
        usage: AskUsage::Final,
        ignore_eos: false,
        logprobs: None,
        content: Content::Parts,
        extra: None,
        overrides: None,
    }
}

fn body(api: Api, request: &Request<'_>) -> String {
    let mut out = Vec::new();
    write(api, request, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn each_api_gets_its_own_fields_in_the_benchmark_s_order() {
    let text = request(Prompt::Text("say \"hi\"\n中"));
    assert_eq!(
        body(Api::Completions, &text),
        r#"{"model":"m","prompt":"say \"hi\"\n中","repetition_penalty":1.0,"max_tokens":16,"logprobs":null,"stream":true,"stream_options":{"include_usage":true}}"#
    );
    assert_eq!(
        body(Api::Chat, &text),
        r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"say \"hi\"\n中"}]}],"max_completion_tokens":16,"stream":true,"stream_options":{"include_usage":true}}"#
    );
    assert_eq!(
        body(Api::Responses, &text),
        r#"{"model":"m","input":"say \"hi\"\n中","max_output_tokens":16,"stream":true,"store":false}"#
    );
    let plain = Request { content: Content::Plain, ..request(Prompt::Text("hi")) };
    assert_eq!(
        body(Api::Messages, &plain),
        r#"{"model":"m","max_tokens":16,"messages":[{"role":"user","content":"hi"}],"stream":true}"#
    );
    assert_eq!(body(Api::TgiGenerate, &plain), r#"{"inputs":"hi","parameters":{"max_new_tokens":16,"details":true}}"#);
    assert_eq!(body(Api::LlamaCompletion, &plain), r#"{"prompt":"hi","n_predict":16,"stream":true}"#);
}

#[test]
fn token_ids_messages_and_unstreamed_requests() {
    let ids = Request { ignore_eos: true, logprobs: Some(2), ..request(Prompt::Tokens(&[1, 20, 300])) };
    assert_eq!(
        body(Api::Completions, &ids),
        r#"{"model":"m","prompt":[1,20,300],"repetition_penalty":1.0,"max_tokens":16,"logprobs":2,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true}"#
    );
    let list = r#"[{"role":"system","content":"s"},{"role":"user","content":"u"}]"#;
    let chat = Request { stream: false, max_tokens: None, ..request(Prompt::Messages(list)) };
    assert_eq!(body(Api::Chat, &chat), format!(r#"{{"model":"m","messages":{list},"stream":false}}"#));
    let continuous = Request { usage: AskUsage::Continuous, ..request(Prompt::Text("x")) };
    assert!(body(Api::Chat, &continuous).contains(r#""continuous_usage_stats":true"#));
    let none = Request { usage: AskUsage::No, ..request(Prompt::Text("x")) };
    assert!(!body(Api::Chat, &none).contains("stream_options"));
}

#[test]
fn extra_fields_replace_in_place_and_the_rest_follow() {
    let sampling = Sampling { temperature: Some(0.0), repetition_penalty: Some(1.1), ..Sampling::default() };
    let extra = sampling.under(map(json!({"temperature": 0.5, "min_tokens": 3, "cache_salt": "a"})));
    let overrides = map(json!({"cache_salt": "b", "priority": -1, "max_tokens": 9}));
    let both = Request { extra: Some(&extra), overrides: Some(&overrides), ..request(Prompt::Text("x")) };
    assert_eq!(
        body(Api::Completions, &both),
        r#"{"model":"m","prompt":"x","repetition_penalty":1.1,"max_tokens":9,"logprobs":null,"stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"min_tokens":3,"cache_salt":"b","priority":-1}"#
    );
    let tgi: Value = serde_json::from_str(&body(Api::TgiGenerate, &both)).unwrap();
    assert_eq!(tgi["parameters"]["temperature"], 0.5);
    assert_eq!(tgi["parameters"]["max_new_tokens"], 16);
    assert_eq!(tgi["inputs"], "x");
}

#[test]
fn what_an_api_can_t_express_is_refused() {
    let mut out = Vec::new();
    let tokens = request(Prompt::Tokens(&[1]));
    for api in [Api::Chat, Api::Responses, Api::Messages, Api::TgiGenerate] {
        assert_eq!(write(api, &tokens, &mut out), Err(BodyError::TokensNotTaken));
    }
    let list = request(Prompt::Messages("[]"));
    for api in [Api::Completions, Api::TgiGenerate, Api::LlamaCompletion] {
        assert_eq!(write(api, &list, &mut out), Err(BodyError::MessagesNotTaken));
    }
    assert_eq!(write(Api::Chat, &request(Prompt::Messages("{}")), &mut out), Err(BodyError::MessagesNotArray));
    assert_eq!(write(Api::Chat, &request(Prompt::Messages("[{]")), &mut out), Err(BodyError::MessagesNotArray));
    let endless = Request { max_tokens: None, ..request(Prompt::Text("x")) };
    assert_eq!(write(Api::Messages, &endless, &mut out), Err(BodyError::NoMaxTokens));
}
