//! Figures of whole conversations: turns, roles and lengths in characters, the useless entries included.

use crate::describe::Histogram;
use crate::describe::LengthFigures;
use serde::Serialize;
use std::collections::BTreeMap;

/// What the entries of a conversation file look like, under the words the file uses. Lengths are Unicode characters.
#[derive(Clone, Debug, Default)]
pub struct Conversations {
    entries: u64,
    entries_ge2: u64,
    turns: BTreeMap<u64, u64>,
    roles: BTreeMap<String, u64>,
    first_roles: BTreeMap<String, u64>,
    message_chars: Histogram,
    first_prompt_chars: Histogram,
    first_completion_chars: Histogram,
    empty_messages: u64,
    messages_non_ascii: u64,
    same_role_neighbours: u64,
    pairs: u64,
    with_pair: u64,
}

/// The printable form of [`Conversations`].
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct ConversationFigures {
    /// Entries of the file.
    pub entries: u64,
    /// Entries with two messages or more (what the first-two-turns clients take).
    pub entries_ge2: u64,
    /// Entries by number of messages.
    pub turns_hist: BTreeMap<u64, u64>,
    /// Messages by the file's word for the speaker.
    pub roles: BTreeMap<String, u64>,
    /// Characters per message.
    pub message_chars: Option<LengthFigures>,
    /// Messages without a character.
    pub empty_messages: u64,
    /// Messages with a character outside ASCII.
    pub messages_non_ascii: u64,
    /// Messages whose speaker is that of the one before.
    pub same_role_neighbours: u64,
    /// Characters of the first message of entries with two or more.
    pub first_prompt_chars: Option<LengthFigures>,
    /// Characters of the second message of entries with two or more.
    pub first_completion_chars: Option<LengthFigures>,
    /// Entries by the speaker of their first message.
    pub first_message_role: BTreeMap<String, u64>,
    /// Non-empty questions of a human answered later by the model, tools in between allowed.
    pub human_gpt_pairs: u64,
    /// Conversations with such a pair.
    pub conversations_with_pair: u64,
}

impl Conversations {
    /// Counts one entry; its messages as (role, text) in file order.
    pub(crate) fn entry(&mut self, messages: &[(&str, &str)]) {
        self.entries += 1;
        *self.turns.entry(messages.len() as u64).or_default() += 1;
        if let Some((role, _)) = messages.first() {
            *self.first_roles.entry((*role).to_owned()).or_default() += 1;
        }
        if let [(_, first), (_, second), ..] = messages {
            self.entries_ge2 += 1;
            self.first_prompt_chars.add(chars(first));
            self.first_completion_chars.add(chars(second));
        }
        let mut asked = false;
        let before = self.pairs;
        for (i, (role, text)) in messages.iter().enumerate() {
            *self.roles.entry((*role).to_owned()).or_default() += 1;
            self.message_chars.add(chars(text));
            self.empty_messages += u64::from(text.is_empty());
            self.messages_non_ascii += u64::from(!text.is_ascii());
            self.same_role_neighbours += u64::from(i > 0 && messages[i - 1].0 == *role);
            match *role {
                "human" | "user" => asked = !text.is_empty(),
                "gpt" | "assistant" => {
                    self.pairs += u64::from(asked);
                    asked = false;
                }
                _ => {}
            }
        }
        self.with_pair += u64::from(self.pairs > before);
    }

    /// The figures of the entries counted so far.
    pub fn figures(&self) -> ConversationFigures {
        ConversationFigures {
            entries: self.entries,
            entries_ge2: self.entries_ge2,
            turns_hist: self.turns.clone(),
            roles: self.roles.clone(),
            message_chars: self.message_chars.figures(),
            empty_messages: self.empty_messages,
            messages_non_ascii: self.messages_non_ascii,
            same_role_neighbours: self.same_role_neighbours,
            first_prompt_chars: self.first_prompt_chars.figures(),
            first_completion_chars: self.first_completion_chars.figures(),
            first_message_role: self.first_roles.clone(),
            human_gpt_pairs: self.pairs,
            conversations_with_pair: self.with_pair,
        }
    }
}

fn chars(text: &str) -> u64 {
    text.chars().count() as u64
}
