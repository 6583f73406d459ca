use crate::json::{Field, Str};
use serde_json::Value;

/// The answer's text, if it was to be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// What a user would read, for each choice (refusals included).
    pub choices: Vec<String>,
    /// Reasoning.
    pub reasoning: String,
    /// Names and arguments of tool calls.
    pub tools: String,
}

/// Choices past this one share its text.
const LAST_CHOICE: usize = 127;

impl Text {
    /// The visible text; several choices follow one another.
    pub fn visible(&self) -> String {
        self.choices.concat()
    }

    /// Reasoning, visible text and tool calls: everything that was generated.
    pub fn all(&self) -> String {
        [self.reasoning.as_str(), &self.visible(), &self.tools].concat()
    }

    pub(super) fn choice(&mut self, index: u32) -> &mut String {
        let index = (index as usize).min(LAST_CHOICE);
        if self.choices.len() <= index {
            self.choices.resize(index + 1, String::new());
        }
        &mut self.choices[index]
    }

    pub(super) fn add(&mut self, index: u32, text: Str<'_>) {
        text.push_to(self.choice(index));
    }

    pub(super) fn add_tools(&mut self, calls: Field<'_>) {
        let Field::Other(raw) = calls else { return };
        let Ok(value) = serde_json::from_slice::<Value>(raw) else { return };
        match &value {
            Value::Array(calls) => calls.iter().for_each(|call| self.add_call(&call["function"])),
            call => self.add_call(call),
        }
    }

    fn add_call(&mut self, function: &Value) {
        for key in ["name", "arguments"] {
            if let Some(text) = function[key].as_str() {
                self.tools.push_str(text);
            }
        }
    }
}

/// Content that is a list of parts (`[{"type":"text","text":…},{"type":"thinking",…}]`): whether any part can be seen, and whether any is thought.
pub(super) fn parts(content: Field<'_>, choice: u32, text: &mut Option<Text>) -> (bool, bool) {
    let Field::Other(raw) = content else { return (false, false) };
    let Ok(Value::Array(parts)) = serde_json::from_slice(raw) else { return (false, false) };
    let (mut seen, mut thought) = (false, false);
    for part in &parts {
        let is_thought = part["type"].as_str().is_some_and(|kind| kind.contains("think") || kind.contains("reason"));
        seen |= !is_thought;
        thought |= is_thought;
        let Some(text) = text else { continue };
        let into = if is_thought { &mut text.reasoning } else { text.choice(choice) };
        collect(part, into);
    }
    (seen, thought)
}

/// The strings under `text` and `thinking`, however deep they are wrapped.
fn collect(part: &Value, into: &mut String) {
    match part {
        Value::String(text) => into.push_str(text),
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, into)),
        Value::Object(map) => {
            for key in ["text", "thinking", "reasoning"] {
                if let Some(inner) = map.get(key) {
                    collect(inner, into);
                }
            }
        }
        _ => {}
    }
}
