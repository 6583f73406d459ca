//! The token path: an output of the engine becomes one write.

use tailbound_clock::Time;
use tailbound_engine::{Emit, Event, Finish, SeqId};
use tailbound_os::clock::now;

use super::live::{Key, Live, Unsent};
use super::{Reverse, Server, Timer};
use crate::answer::Lexicon;
use crate::http::reply::{self, Content};
use crate::stream::{End, Framing, Output, Usage};

impl Server {
    /// Sends one output, unless the request's fate is another.
    pub(super) fn deliver(&mut self, emit: &Emit, planned: Time) {
        let key = Key::unpack(emit.id.0);
        let Some(live) = self.lives.get(key) else { return };
        let histograms = &mut self.ranks[live.rank].histograms;
        match live.last_output {
            None => histograms.first_token(planned.since(live.record.recv)),
            Some(last) => histograms.next_token(planned.since(last)),
        }
        live.last_output = Some(planned);
        live.record.cached_tokens = emit.cached;
        if live.is_cut_at(emit) {
            live.record.fault = live.fate.trouble.map(|t| t.name());
            let conn = live.conn;
            self.give_up(key, "cut");
            self.drop_conn(conn);
            return;
        }
        if let Some(held) = &mut live.held {
            held.push(*emit);
            return;
        }
        if let Some(length) = live.stalls_at(emit) {
            live.held = Some(vec![*emit]);
            self.timers.push(Reverse((planned + length, Timer::Release(key))));
            return;
        }
        self.send(key, emit, planned);
    }

    /// A stall is over: what was held leaves now.
    pub(super) fn release(&mut self, key: Key, planned: Time) {
        let held = self.lives.get(key).and_then(|live| live.held.take());
        for emit in held.unwrap_or_default() {
            self.send(key, &emit, planned);
        }
    }

    fn send(&mut self, key: Key, emit: &Emit, planned: Time) {
        let Some(live) = self.lives.get(key) else { return };
        self.scratch.output.clear();
        compose(live, emit, &self.lexicon, &mut self.scratch.text, &mut self.scratch.output);
        if live.stream.framing == Framing::Whole && emit.finish.is_some() {
            self.wrap_whole(key);
        }
        let Some(live) = self.lives.get(key) else { return };
        let conn_index = live.conn;
        let Some(conn) = self.conns[conn_index].1.as_mut() else { return };
        if self.scratch.output.is_empty() {
            // Part of an answer that leaves as a whole.
            live.unsent.push_back(Unsent { tokens: emit.tokens, planned, at: u64::MAX });
        } else {
            if conn.send(&self.scratch.output, self.config.max_unsent).is_err() {
                self.drop_conn(conn_index);
                return;
            }
            let at = conn.queued;
            live.unsent.iter_mut().for_each(|u| u.at = u.at.min(at));
            live.unsent.push_back(Unsent { tokens: emit.tokens, planned, at });
            if conn.flushed < at {
                self.blocked_writes += 1;
            }
        }
        live.record.output_tokens += emit.tokens;
        live.ended |= emit.finish.is_some();
        self.stamp(key);
        self.finish_if_flushed(key);
    }

    /// Gives the body in the output buffer its head.
    fn wrap_whole(&mut self, key: Key) {
        let body = std::mem::take(&mut self.scratch.output);
        self.refresh_date();
        if let Some(live) = self.lives.get(key) {
            let common = reply::Common {
                date: &self.date.1,
                request_id: live.request_id.as_deref(),
                keep_alive: live.keep_alive,
                old: live.old,
            };
            reply::whole(&mut self.scratch.output, 200, Content::Json, &body, common, true);
        }
    }

    /// Notes the time for tokens the kernel has taken.
    pub(super) fn stamp(&mut self, key: Key) {
        let Some(live) = self.lives.get(key) else { return };
        let Some(conn) = self.conns[live.conn].1.as_ref() else { return };
        if live.unsent.front().is_none_or(|u| u.at > conn.flushed) {
            return;
        }
        let at = now();
        let logged = self.log.is_some();
        while let Some(unsent) = live.unsent.pop_front_if(|u| u.at <= conn.flushed) {
            let late = at.since(unsent.planned);
            // In an answer that leaves as a whole only the last token can be late.
            if live.stream.is_streamed() || live.unsent.is_empty() {
                self.late.add(late);
                live.record.late_max = Some(live.record.late_max.map_or(late, |most| most.max(late)));
            }
            self.tokens += u64::from(unsent.tokens);
            if logged {
                let recv = live.record.recv;
                for _ in 0..unsent.tokens {
                    live.record.planned.push(unsent.planned.since(recv).ns());
                    live.record.sent.push(at.since(recv).ns());
                }
            }
        }
    }

    /// Ends a request whose last byte the kernel has taken.
    pub(super) fn finish_if_flushed(&mut self, key: Key) {
        let Some(live) = self.lives.get(key) else { return };
        let conn_index = live.conn;
        let Some(conn) = self.conns[conn_index].1.as_mut() else { return };
        if !live.ended || !conn.is_flushed() {
            return;
        }
        conn.busy = None;
        conn.active = now();
        let close = !live.keep_alive;
        live.record.finish = if live.plan.finish == Finish::Stop { "stop" } else { "length" };
        self.close_record(key);
        if close {
            self.drop_conn(conn_index);
        } else {
            self.next_request(conn_index);
        }
    }

    /// The request will not be answered to its end.
    pub(super) fn give_up(&mut self, key: Key, finish: &'static str) {
        let Some(live) = self.lives.get(key) else { return };
        live.record.finish = finish;
        let rank = live.rank;
        if live.waiting.is_none() && !live.ended {
            self.scratch.effects.clear();
            let r = &mut self.ranks[rank];
            let at = now() - r.slip;
            r.engine.on(at, Event::Abort(SeqId(key.pack())), &mut self.scratch.effects);
            r.refresh();
        }
        self.close_record(key);
    }

    fn close_record(&mut self, key: Key) {
        let Some(mut live) = self.lives.remove(key) else { return };
        if let Some(conn) = self.conns[live.conn].1.as_mut() {
            conn.busy = None;
        }
        self.requests += 1;
        if let Some(late) = live.record.late_max {
            self.late_max.add(late);
        }
        if let Some(log) = &mut self.log {
            // What was planned and never left.
            for unsent in std::mem::take(&mut live.unsent) {
                let planned = unsent.planned.since(live.record.recv).ns();
                live.record.planned.extend(std::iter::repeat_n(planned, unsent.tokens as usize));
            }
            log.push(live.record);
        }
    }
}

/// Appends to `out` what goes over the wire for one output. `text` is a buffer.
fn compose(live: &mut Live, emit: &Emit, lexicon: &Lexicon, text: &mut String, out: &mut Vec<u8>) {
    let usage = Usage {
        prompt: live.record.prompt_tokens,
        completion: emit.first + emit.tokens,
        cached: live.record.cached_tokens,
    };
    let plan = &live.plan;
    let end = emit.finish.map(|_| match plan.finish {
        Finish::Length => End::Length,
        _ => End::Stop(plan.stop.as_deref()),
    });
    let silent = u32::from(emit.finish.is_some() && plan.ends_silently);
    let spoken = emit.tokens - silent.min(emit.tokens);
    let first = emit.first == 0;
    if spoken == 1 && plan.visible == usize::MAX && !live.stream.wants_tokens() {
        // Nearly every token.
        let word = lexicon.text(live.seed, emit.first);
        live.said += word.len();
        live.stream.write(out, &Output { text: word, tokens: &[], first, usage, end });
        return;
    }
    text.clear();
    let mut tokens = Vec::new();
    for index in emit.first..emit.first + spoken {
        let word = lexicon.text(live.seed, index);
        let visible = word.len().min(plan.visible.saturating_sub(live.said));
        live.said += word.len();
        text.push_str(&word[..visible]);
        if live.stream.wants_tokens() {
            tokens.push((lexicon.id(live.seed, index), word.to_owned()));
        }
    }
    live.stream.write(out, &Output { text, tokens: &tokens, first, usage, end });
}
