//! Conversations: requests that carry what was said before, by the server or in the data set.

use super::writer::{Models, Writer};
use crate::bench::serve::trace_args::History;
use crate::failure::{Failure, Outcome};
use std::sync::{Arc, OnceLock};
use tailbound_prompt::{Body, Prompt};
use tailbound_record::Row;
use tailbound_workload::Plan;

/// The bodies of a run's conversations. With the server's own answers, a turn's body is written when the answer before it has come.
pub struct Dialogue {
    history: History,
    writer: Writer,
    models: Models,
    turns: Vec<Said>,
}

/// One request of a conversation.
struct Said {
    /// The messages it adds, as JSON without the brackets around them.
    adds: String,
    output_tokens: u32,
    /// Those that follow it.
    next: Vec<u32>,
    /// Everything it says, in the same form; kept only where something follows.
    whole: OnceLock<String>,
    body: OnceLock<Box<[u8]>>,
}

impl Dialogue {
    /// `answers` are the recorded ones, by request.
    pub fn new(
        history: History,
        writer: Writer,
        models: Models,
        plan: &Plan,
        prompts: &[Prompt],
        answers: &[Arc<str>],
    ) -> Outcome<Dialogue> {
        let mut turns = prompts.iter().map(said).collect::<Outcome<Vec<Said>>>()?;
        let parents: Vec<Option<u32>> = (0..turns.len() as u32).map(|i| plan.turn(i).map(|turn| turn.after)).collect();
        for (i, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                turns[*parent as usize].next.push(i as u32);
            }
        }
        let dialogue = Dialogue { history, writer, models, turns };
        for (i, parent) in parents.iter().enumerate() {
            match (parent, history) {
                (None, _) => dialogue.say(i, "")?,
                (Some(parent), History::Recorded) => {
                    let parent = *parent as usize;
                    dialogue.say(i, &dialogue.carried(parent, answers.get(parent).map_or("", |a| a)))?;
                }
                (Some(_), History::Server) => {}
            }
        }
        Ok(dialogue)
    }

    /// The body of request `i`: of a turn that follows another, once that one has been answered.
    pub fn body(&self, i: usize) -> &[u8] {
        self.turns[i].body.get().map_or(&[], |body| body)
    }

    /// Whether the text of that request's answer is needed.
    pub fn needs_answer(&self, i: usize) -> bool {
        self.history == History::Server && !self.turns[i].next.is_empty()
    }

    /// The answer to request `i` has come: what follows it can be written.
    pub fn answered(&self, i: usize, row: &Row) {
        if !self.needs_answer(i) || !row.ok() {
            return;
        }
        let before = self.carried(i, row.text.as_deref().unwrap_or_default());
        for &next in &self.turns[i].next {
            // Messages were written for the same endpoint before the run began, so this can't fail now.
            let written = self.say(next as usize, &before);
            debug_assert!(written.is_ok(), "a turn that can't be written");
        }
    }

    /// What a turn after request `i` begins with.
    fn carried(&self, i: usize, answer: &str) -> String {
        let said = serde_json::json!({ "role": "assistant", "content": answer });
        let whole = self.turns[i].whole.get().map_or("", String::as_str);
        format!("{whole},{said},")
    }

    /// Writes request `i`, which says `before` and then what it adds.
    fn say(&self, i: usize, before: &str) -> Outcome<()> {
        let turn = &self.turns[i];
        let whole = format!("{before}{}", turn.adds);
        let body = self.writer.messages(self.models.of(i), &format!("[{whole}]"), turn.output_tokens)?;
        let _ = turn.body.set(body);
        if !turn.next.is_empty() {
            let _ = turn.whole.set(whole);
        }
        Ok(())
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> usize {
        self.turns.iter().filter_map(|turn| turn.body.get()).map(|body| body.len()).sum()
    }
}

fn said(prompt: &Prompt) -> Outcome<Said> {
    let adds = match &prompt.body {
        Body::Text(text) => serde_json::json!({ "role": "user", "content": &**text }).to_string(),
        Body::Messages(list) => {
            let list = list.to_string();
            list.strip_prefix('[').and_then(|l| l.strip_suffix(']')).unwrap_or(&list).to_owned()
        }
        Body::Ids(_) => {
            return Err(
                Failure::usage("--prompt-token-ids: conversations are sent as chat messages").hint("leave it out")
            );
        }
    };
    let output_tokens = prompt.output_tokens;
    Ok(Said { adds, output_tokens, next: Vec::new(), whole: OnceLock::new(), body: OnceLock::new() })
}
