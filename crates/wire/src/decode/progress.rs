use super::template::Only;
use super::{Event, Fault, Output, Text};
use crate::complaint;
use crate::usage::Usage;
use std::collections::BTreeSet;

/// What is known of an answer so far, whatever its API.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Events that carried output.
    pub outputs: u32,
    /// `[DONE]`, `message_stop`, `response.completed` …
    pub terminal: bool,
    pub reason: Option<Box<str>>,
    pub fault: Option<(Fault, String)>,
    pub text: Option<Text>,
    /// The string that alone made the current event output.
    pub only: Option<Only>,
    choices: Choices,
    usage: Ledger,
}

/// Which choices have been seen, and which of them are finished.
#[derive(Clone, Debug, Default)]
struct Choices {
    seen: u64,
    finished: u64,
    /// Those past 64 that have begun and not finished.
    far_open: BTreeSet<u32>,
    far_seen: BTreeSet<u32>,
}

/// Usage statements, and where they stood.
#[derive(Clone, Debug, Default)]
struct Ledger {
    most: Usage,
    /// An event without choices stated it: it speaks for the whole request.
    whole: bool,
    /// The most that was stated inside each choice's own events.
    by_choice: Vec<(u32, u32)>,
}

impl Choices {
    fn see(&mut self, index: u32) {
        if index < 64 {
            self.seen |= 1 << index;
        } else if self.far_seen.len() < 4096 && self.far_seen.insert(index) {
            self.far_open.insert(index);
        }
    }

    fn finish(&mut self, index: u32) {
        self.see(index);
        if index < 64 {
            self.finished |= 1 << index;
        } else {
            self.far_open.remove(&index);
        }
    }

    fn count(&self) -> usize {
        self.seen.count_ones() as usize + self.far_seen.len()
    }

    fn all_finished(&self) -> bool {
        self.count() > 0 && self.seen == self.finished && self.far_open.is_empty()
    }
}

impl Progress {
    pub fn see(&mut self, choice: u32) {
        self.choices.see(choice);
    }

    /// A choice stated why it ended.
    pub fn finish(&mut self, choice: u32, reason: Option<String>, event: &mut Event) {
        self.choices.finish(choice);
        event.finish = true;
        let Some(reason) = reason else { return };
        if matches!(reason.as_str(), "error" | "abort") {
            self.fail(
                Fault::ErrorObject,
                format!("the server gave up on the answer (finish reason \"{reason}\")"),
                event,
            );
        }
        self.reason = Some(reason.into());
    }

    pub fn end(&mut self, event: &mut Event) {
        self.terminal = true;
        event.terminal = true;
    }

    /// The first failure is the one that is told.
    pub fn fail(&mut self, fault: Fault, message: String, event: &mut Event) {
        event.fault = true;
        self.fault.get_or_insert((fault, message));
    }

    pub fn fail_json(&mut self, error: &[u8], event: &mut Event) {
        let value = serde_json::from_slice(error).unwrap_or_else(|_| String::from_utf8_lossy(error).into());
        self.fail(Fault::ErrorObject, complaint::of_error(&value), event);
    }

    /// Every choice that began has finished, `expected` of them at least, or the stream said that it was over.
    pub fn is_complete(&self, expected: u32) -> bool {
        self.terminal || (self.choices.all_finished() && self.choices.count() >= expected as usize)
    }

    pub fn output_stated(&self) -> Option<u32> {
        self.usage.most.output
    }

    /// Notes usage; `choice` is the choice whose event stated it, `None` if it stood on its own.
    pub fn usage(&mut self, usage: &Usage, choice: Option<u32>, event: &mut Event) {
        if !usage.is_stated() {
            return;
        }
        event.usage = true;
        self.usage.most.grow(usage);
        match (choice, usage.output) {
            (None, Some(_)) => self.usage.whole = true,
            (Some(choice), Some(output)) => {
                let room = self.usage.by_choice.len() < 4096;
                match self.usage.by_choice.iter_mut().find(|(index, _)| *index == choice) {
                    Some((_, most)) => *most = output.max(*most),
                    None if room => self.usage.by_choice.push((choice, output)),
                    None => {}
                }
            }
            _ => {}
        }
    }

    /// Everything the server stated. vLLM and llama.cpp count each choice for itself in that choice's events, so those add up,
    /// unless an event of its own stated the sum.
    pub fn usage_total(&self) -> Usage {
        let mut usage = self.usage.most;
        if !self.usage.whole && self.usage.by_choice.len() > 1 {
            usage.output = Some(self.usage.by_choice.iter().fold(0u32, |sum, (_, output)| sum.saturating_add(*output)));
        }
        usage
    }

    pub fn is_single(&self) -> bool {
        self.choices.count() <= 1
    }

    /// Adds output to an event: several choices, or several kinds of output, may come in one.
    pub fn output(event: &mut Event, choice: u32, visible: bool, tokens: Option<u32>) {
        event.output = Some(match event.output {
            None => Output { visible, tokens, choice },
            Some(before) => Output {
                visible: before.visible || visible,
                tokens: before.tokens.zip(tokens).map(|(a, b)| a.saturating_add(b)),
                choice: before.choice,
            },
        });
    }
}
