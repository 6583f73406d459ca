//! What every reader shares: names, the account, the rows made but not yet handed on.

use crate::account::{Accounting, Drop, Notice};
use crate::conversations::Conversations;
use crate::formats::PerMinute;
use crate::hash::FixedMap;
use crate::options::Options;
use crate::row::{Clock, Name, Names, Row};
use std::collections::VecDeque;

pub(crate) struct Context {
    pub options: Options,
    pub names: Names,
    pub account: Accounting,
    pub pending: VecDeque<Row>,
    pub clock: Clock,
    pub block: Option<u32>,
    /// Session of each request seen (formats that name parents instead of sessions).
    pub roots: FixedMap<Name, Name>,
    pub conversations: Option<Box<Conversations>>,
    pub per_minute: Option<PerMinute>,
    last_at: Option<i64>,
}

impl Context {
    pub(crate) fn new(options: Options, clock: Clock, block: Option<u32>) -> Context {
        Context {
            options,
            names: Names::default(),
            account: Accounting::default(),
            pending: VecDeque::new(),
            clock,
            block,
            roots: FixedMap::default(),
            conversations: None,
            per_minute: None,
            last_at: None,
        }
    }

    /// A record begins.
    pub(crate) fn record(&mut self) {
        self.account.records += 1;
    }

    /// A record's time could be read: is it in order? Dropped rows count too, as the question is about the file.
    pub(crate) fn saw_time(&mut self, at: i64) {
        if self.last_at.is_some_and(|last| at < last) {
            self.account.notice(Notice::OutOfOrder);
        }
        self.last_at = Some(at);
    }

    /// Hands on a row, unless the options filter it out.
    pub(crate) fn push(&mut self, row: Row) {
        if !self.wanted(&self.options.models, row.model) {
            return self.account.drop(Drop::ModelNotKept);
        }
        if !self.wanted(&self.options.classes, row.class) {
            return self.account.drop(Drop::ClassNotKept);
        }
        if let (Some(block), Some(input), Some(ids)) = (self.block, row.input, row.blocks())
            && !ids.is_empty()
            && ids.len() as u64 != u64::from(input).div_ceil(u64::from(block))
        {
            self.account.notice(Notice::HashLenMismatch);
        }
        self.account.emit();
        self.pending.push_back(row);
    }

    fn wanted(&self, list: &[String], name: Option<Name>) -> bool {
        list.is_empty() || name.is_some_and(|n| list.iter().any(|w| w == self.names.text(n)))
    }

    /// The session of request `id` that follows from `parent`: its parent's, or the parent's own name if the parent was not seen.
    pub(crate) fn session_of(&mut self, id: Name, parent: Option<Name>) -> Name {
        let session = match parent {
            None => id,
            Some(parent) if parent == id => {
                self.account.notice(Notice::SelfParent);
                id
            }
            Some(parent) => match self.roots.get(&parent) {
                Some(&root) => root,
                None => {
                    self.account.notice(Notice::ParentNotSeen);
                    parent
                }
            },
        };
        self.roots.insert(id, session);
        session
    }
}
