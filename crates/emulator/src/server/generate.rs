//! A request for an answer: understood, planned, given to an engine.

use tailbound_clock::Time;
use tailbound_engine::{Effect, Event, Finish, SeqId, Submit, WhyRejected};
use tailbound_os::clock::now;

use super::live::{Key, Live, Waiting};
use super::plan::plan;
use super::simple::Request;
use super::{Reverse, Server, Timer};
use crate::answer::seed_of;
use crate::api::{Api, Ask, Problem, Rules};
use crate::builtin::END_OF_TEXT;
use crate::fault::Trouble;
use crate::http::reply;
use crate::stream::{Framing, Stream};
use crate::truth::Record;

impl Server {
    /// Takes a request, which may be refused; gives the refusal.
    pub(super) fn generate(&mut self, api: Api, request: &Request<'_>) -> Result<(), Problem> {
        let rules = Rules {
            served: &self.config.served_model_names,
            max_model_len: self.config.engine.max_model_len,
            tokenizer: &self.tokenizer,
        };
        let ask = Ask::read(api, request.body, rules)?;
        let number = self.asked;
        self.asked += 1;
        let seed = seed_of(&ask.prompt, ask.seed, self.config.seed);
        let plan = plan(&ask, seed, self.config.answer_length, &self.lexicon);
        let fate = self.config.faults.draw(self.config.seed, number, plan.tokens);
        let name = match request.id.clone().or_else(|| ask.request_id.clone()) {
            Some(name) => name,
            None => format!("{:016x}", self.config.seed.numbered("request names", number).u64()),
        };
        let framing = match (ask.stream, request.old) {
            (false, _) => Framing::Whole,
            (true, false) => Framing::Chunked,
            (true, true) => Framing::UntilClose,
        };
        let stream = Stream::new(&ask, &name, self.unix_seconds(), framing, self.config.prompt_tokens_details);
        let record = Record {
            id: name.clone(),
            conn: self.conns[request.conn].1.as_ref().map_or(0, |c| c.number),
            api: api.name(),
            stream: ask.stream,
            recv: request.recv,
            prompt_tokens: ask.prompt.len() as u32,
            status: 200,
            ..Record::default()
        };
        if let Some(Trouble::Error(status)) = fate.trouble {
            return Err(self.fail_on_purpose(status, record));
        }
        let live = Live {
            conn: request.conn,
            rank: 0,
            stream,
            record,
            keep_alive: request.keep_alive && framing != Framing::UntilClose,
            old: request.old,
            request_id: self.config.request_id_headers.then_some(name),
            seed,
            max_tokens: ask.max_tokens,
            plan,
            said: 0,
            last_output: None,
            fate,
            held: None,
            unsent: std::collections::VecDeque::new(),
            ended: false,
            waiting: Some(Waiting { prompt: ask.prompt, priority: ask.priority, salt: ask.salt }),
        };
        let key = self.lives.insert(live);
        if let Some(conn) = self.conns[request.conn].1.as_mut() {
            conn.busy = Some(key);
        }
        if fate.delay.is_zero() {
            self.admit(key, request.recv);
        } else {
            self.timers.push(Reverse((request.recv + fate.delay, Timer::Admit(key))));
        }
        Ok(())
    }

    fn fail_on_purpose(&mut self, status: u16, record: Record) -> Problem {
        let rank = self.idlest_rank();
        self.ranks[rank].errors += 1;
        self.requests += 1;
        if let Some(log) = &mut self.log {
            log.push(Record { status, finish: "error", fault: Some("error"), ..record });
        }
        let kind = if status == 503 { "ServiceUnavailableError" } else { "InternalServerError" };
        Problem { status, kind: kind.to_owned(), message: "A fault injected by the emulator.".to_owned(), param: None }
    }

    /// Gives a request to an engine at `at`, after everything that was due before.
    pub(super) fn admit(&mut self, key: Key, at: Time) {
        if self.is_due(at) {
            self.drive(at);
        }
        let rank = self.idlest_rank();
        let Some(live) = self.lives.get(key) else { return };
        let Some(waiting) = live.waiting.take() else { return };
        live.rank = rank;
        live.record.rank = rank;

        let plan = &live.plan;
        let spoken = plan.tokens - u32::from(plan.ends_silently);
        let mut answer: Vec<u32> = (0..spoken).map(|i| self.lexicon.id(live.seed, i)).collect();
        answer.resize(plan.tokens as usize, END_OF_TEXT);
        let submit = Submit {
            answer: &answer,
            finish: plan.finish,
            priority: waiting.priority,
            salt: waiting.salt,
            ..Submit::new(SeqId(key.pack()), &waiting.prompt, plan.tokens)
        };
        let r = &mut self.ranks[rank];
        let was_idle = r.due.is_none();
        self.scratch.effects.clear();
        r.engine.on(at - r.slip, Event::Submit(submit), &mut self.scratch.effects);
        r.refresh();
        r.last_submit = at;
        r.fresh |= was_idle;
        match self.scratch.effects.first() {
            Some(&Effect::Rejected { why, .. }) => self.turn_away(key, why),
            _ => self.begin_answer(key),
        }
    }

    fn begin_answer(&mut self, key: Key) {
        self.refresh_date();
        let Some(live) = self.lives.get(key) else { return };
        if !live.stream.is_streamed() {
            return;
        }
        let (conn, common) = (live.conn, common(&self.date.1, live));
        self.scratch.output.clear();
        reply::stream_head(&mut self.scratch.output, common);
        self.send_output(conn);
    }

    fn turn_away(&mut self, key: Key, why: WhyRejected) {
        let (status, kind) = match why {
            WhyRejected::QueueFull { .. } => (503, "ServiceUnavailableError"),
            _ => (400, "BadRequestError"),
        };
        let problem = Problem { status, kind: kind.to_owned(), message: why.to_string(), param: None };
        self.refresh_date();
        let Some(live) = self.lives.get(key) else { return };
        live.ended = true;
        live.record.status = status;
        live.plan.finish = Finish::Abort;
        let conn = live.conn;
        let keep_alive = live.keep_alive;
        self.scratch.output.clear();
        let body = problem.body();
        reply::whole(&mut self.scratch.output, status, reply::Content::Json, &body, common(&self.date.1, live), true);
        self.give_up(key, "error");
        self.send_output(conn);
        if let Some(conn) = self.conns[conn].1.as_mut() {
            conn.close_when_flushed |= !keep_alive;
        }
    }

    /// The replica with the least to do: vLLM's rule, in which a waiting request weighs four running ones.
    fn idlest_rank(&mut self) -> usize {
        let count = self.ranks.len();
        let start = self.next_rank;
        self.next_rank = (start + 1) % count;
        let load = |i: &usize| {
            let counters = self.ranks[*i].engine.counters();
            u64::from(counters.waiting) * 4 + u64::from(counters.running)
        };
        (0..count).map(|i| (start + i) % count).min_by_key(load).unwrap_or(0)
    }

    /// Sends what the output buffer holds.
    pub(super) fn send_output(&mut self, index: usize) {
        let most = self.config.max_unsent;
        let Some(conn) = self.conns[index].1.as_mut() else { return };
        conn.active = now();
        if conn.send(&self.scratch.output, most.max(self.scratch.output.len())).is_err() {
            self.drop_conn(index);
        }
    }
}

fn common<'a>(date: &'a str, live: &'a Live) -> reply::Common<'a> {
    reply::Common { date, request_id: live.request_id.as_deref(), keep_alive: live.keep_alive, old: live.old }
}
