//! Where a class's requests come from.

use super::text::order;
use super::when::{self, Part, StageOf};
use super::{Ask, Class, Requests, Text, draws};
use crate::scenario::{Arrivals, Lengths, Prefix, Scenario, ScenarioError, SharedPrefix, Traffic};
use std::collections::HashMap;
use std::path::Path;
use tailbound_clock::Dur;
use tailbound_trace::generate::{self as laws, Extent, Shape, Synthetic, synthesize};
use tailbound_trace::{self as trace, Name, Trace, servegen};
use tailbound_workload::Sessions;

/// Makes the requests of one class.
pub(super) struct Maker<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) traffic: &'a Traffic,
    pub(super) class: &'a Class,
    pub(super) number: u16,
}

/// All prompts that are kept together.
const MOST_TOKENS: f64 = 1e9;

/// Requests of one part, before they are numbered.
struct Made {
    asks: Vec<Ask>,
    times: Option<Vec<Dur>>,
    sessions: Option<Sessions>,
}

impl Maker<'_> {
    pub(super) fn add(&self, all: &mut Requests) -> Result<(), ScenarioError> {
        let t = self.traffic;
        let arrivals = t.arrivals.clone().unwrap_or_default();
        match (&t.shared_prefix, &t.lengths, &t.trace, &t.servegen) {
            (Some(shared), None, None, None) => self.shared_prefix(all, &arrivals, shared),
            (None, Some(lengths), None, None) => self.lengths(all, &arrivals, lengths),
            (None, None, Some(file), None) => {
                let rows = self.read(file)?;
                self.rows(all, &arrivals, &rows, file.output)
            }
            (None, None, None, Some(pool)) => {
                let rows = self.compose(pool)?;
                self.rows(all, &arrivals, &rows, None)
            }
            _ => Err(self.wrong("give one of shared_prefix, lengths, trace and servegen")),
        }
    }

    fn wrong(&self, what: impl std::fmt::Display) -> ScenarioError {
        ScenarioError::Trace(self.class.name.clone(), what.to_string())
    }

    fn ask(&self, input: u32, output: u32, text: Text) -> Ask {
        Ask { class: self.number, adapter: None, priority: self.class.priority, input, output, text }
    }

    fn shared_prefix(&self, all: &mut Requests, a: &Arrivals, of: &SharedPrefix) -> Result<(), ScenarioError> {
        let length = of.system.saturating_add(of.question);
        if of.groups == 0 || of.prompts_per_group == 0 || length == 0 || of.output == 0 {
            return Err(self.wrong("shared_prefix: groups, prompts_per_group, tokens and output must not be 0"));
        }
        if f64::from(of.groups) * f64::from(of.prompts_per_group) * f64::from(length) > MOST_TOKENS {
            return Err(self.wrong("shared_prefix: all prompts together must have 1e9 tokens at most"));
        }
        let first = all.texts.keep(of);
        let mut rng = draws(self.scenario.seed(), "sim/prompts", self.number);
        let order = order(first, of.groups * of.prompts_per_group, &mut rng);
        let mut item = 0;
        self.by_stage(all, a, |n| {
            let which = |k: usize| Text::Kept(order[k % order.len()]);
            let asks = (item..item + n).map(|k| self.ask(length, of.output, which(k))).collect();
            item += n;
            Ok(asks)
        })
    }

    fn lengths(&self, all: &mut Requests, a: &Arrivals, of: &Lengths) -> Result<(), ScenarioError> {
        let law =
            |key: &str, text: &str| text.parse::<laws::Law>().map_err(|e| self.wrong(format!("lengths.{key}: {e}")));
        let heads = of.prefix.as_ref().map_or(Ok(None), |p| self.heads(all, p).map(Some))?;
        let mut spec = Synthetic {
            arrivals: when::law("constant:1000/s").map_err(|e| self.wrong(e))?,
            extent: Extent::Requests(0),
            input: law("input", &of.input)?,
            output: law("output", &of.output)?,
            rank_correlation: 0.0,
            prefixes: None,
            shape: Shape::Single,
            media: Vec::new(),
            reason_ratio: None,
            block_tokens: None,
            token_s: 0.02,
        };
        let seed = tailbound_clock::Seed(self.scenario.seed ^ u64::from(self.number) << 48);
        let Some(turns) = &of.turns else {
            let mut from = 0;
            let mut rng = draws(self.scenario.seed(), "sim/heads", self.number);
            // One drawing for all stages: the next stage goes on where the last one ended.
            let drawn = std::cell::OnceCell::new();
            let total = self.total(a)?;
            return self.by_stage(all, a, |n| {
                if drawn.get().is_none() {
                    let spec = Synthetic { extent: Extent::Requests(total), ..spec.clone() };
                    let rows = synthesize(&spec, seed).map_err(|e| self.wrong(e))?;
                    drop(drawn.set(rows));
                }
                let rows = drawn.get().map_or(&[][..], |t| &t.rows[from..from + n]);
                from += n;
                let one = |row: &trace::Row| {
                    let (head, head_tokens) = heads.as_ref().map_or((0, 0), |h| h.draw(&mut rng));
                    let input = row.input.unwrap_or(1).saturating_add(head_tokens);
                    self.ask(input, row.output.unwrap_or(1), Text::Own { head, head_tokens })
                };
                Ok(rows.iter().map(one).collect())
            });
        };
        spec.shape = Shape::Sessions(laws::Sessions {
            turns: law("turns.count", &turns.count)?,
            think_s: law("turns.think_s", &turns.think_s)?,
        });
        spec.extent = match (a.for_s, a.requests) {
            (_, Some(n)) => Extent::Requests(n as usize),
            (Some(s), None) => Extent::Seconds(s),
            (None, None) => return Err(self.wrong("arrivals: say how many requests, or for_s how many seconds")),
        };
        if let Some(text) = &a.law {
            spec.arrivals = when::law(text).map_err(|e| self.wrong(format!("arrivals: {e}")))?;
        } else if a.concurrency.is_none() || !a.stages.is_empty() {
            return Err(self.wrong("conversations need arrivals by a law, or a concurrency"));
        }
        let rows = synthesize(&spec, seed).map_err(|e| self.wrong(e))?;
        self.conversations(all, a, &rows, heads.as_ref())
    }

    /// How many requests all stages have.
    fn total(&self, a: &Arrivals) -> Result<usize, ScenarioError> {
        match when::times(self.scenario, self.number, &self.class.name, a)? {
            Some(stages) => Ok(stages.iter().map(|s| s.times.len()).sum()),
            None => a.requests.map(|n| n as usize).ok_or_else(|| self.wrong("arrivals: say how many requests")),
        }
    }

    /// A part for each stage, its requests made by `make`, which is told how many.
    fn by_stage(
        &self,
        all: &mut Requests,
        a: &Arrivals,
        mut make: impl FnMut(usize) -> Result<Vec<Ask>, ScenarioError>,
    ) -> Result<(), ScenarioError> {
        let Some(stages) = when::times(self.scenario, self.number, &self.class.name, a)? else {
            let n = a.requests.ok_or_else(|| self.wrong("arrivals: say how many requests"))?;
            let made = Made { asks: make(n as usize)?, times: None, sessions: None };
            all.stages.push(all.asks.len());
            return self.part(all, a, made, Dur::from_secs_f64(a.start_s), None);
        };
        let mut begin = Dur::from_secs_f64(a.start_s);
        let mut before: Option<(u32, Dur)> = None;
        for StageOf { lasts, times } in stages {
            all.stages.push(all.asks.len());
            if !times.is_empty() {
                let made = Made { asks: make(times.len())?, times: Some(times), sessions: None };
                let (at, after) = match before.filter(|_| a.drain) {
                    Some((part, began)) => (begin - began, Some(part)),
                    None => (begin, None),
                };
                before = Some((all.parts.len() as u32, begin));
                self.part(all, a, made, at, after)?;
            }
            begin += lasts;
        }
        Ok(())
    }

    /// Numbers the requests, and plans them.
    fn part(
        &self,
        all: &mut Requests,
        a: &Arrivals,
        made: Made,
        begin: Dur,
        after: Option<u32>,
    ) -> Result<(), ScenarioError> {
        let Made { mut asks, times, sessions } = made;
        if let Some(law) = self.adapters()? {
            let mut rng = draws(self.scenario.seed(), "sim/adapters", self.number);
            asks.iter_mut().for_each(|ask| ask.adapter = Some((law.count(1, &mut rng) - 1) as u16));
        }
        let plan = when::plan(self.scenario, &self.class.name, a, times, asks.len(), sessions)?;
        asks.truncate(plan.requests() as usize);
        all.parts.push(Part { plan, first: all.asks.len() as u32, begin, after });
        all.asks.extend(asks);
        Ok(())
    }

    fn adapters(&self) -> Result<Option<laws::Law>, ScenarioError> {
        if self.traffic.adapters == 0 {
            return Ok(None);
        }
        let law = laws::Law::zipf(self.traffic.adapter_zipf, 1, u64::from(self.traffic.adapters));
        law.map(Some).map_err(|e| self.wrong(format!("adapter_zipf: {e}")))
    }

    fn heads(&self, all: &mut Requests, p: &Prefix) -> Result<Heads, ScenarioError> {
        let law = laws::Law::zipf(p.zipf, 1, u64::from(p.groups));
        let law = law.map_err(|e| self.wrong(format!("lengths.prefix: {e}")))?;
        Ok(Heads { first: all.texts.new_heads(p.groups), tokens: p.tokens, law })
    }

    fn read(&self, from: &crate::scenario::Trace) -> Result<Trace, ScenarioError> {
        let format = from.format.as_deref().map(|word| {
            trace::Format::from_word(word).ok_or_else(|| self.wrong(format!("trace.format: `{word}` is no format")))
        });
        let options = trace::Options { format: format.transpose()?, ..trace::Options::default() };
        let reader = trace::open(self.path(&from.file), &options).map_err(|e| self.wrong(e))?;
        let mut rows = Trace::collect(reader).map_err(|e| self.wrong(e))?;
        if from.from_s.is_some() || from.to_s.is_some() {
            let ns = |s: Option<f64>, otherwise| s.map_or(otherwise, |s| (s * 1e9) as i64);
            rows.window(ns(from.from_s, 0), ns(from.to_s, i64::MAX));
        }
        if let Some(n) = from.requests {
            rows.rows.truncate(n);
        }
        if let Some(rate) = from.rate {
            rows.scale_to_rate(rate).map_err(|e| self.wrong(e))?;
        }
        Ok(rows)
    }

    fn compose(&self, from: &crate::scenario::ServeGen) -> Result<Trace, ScenarioError> {
        let pool = servegen::Pool::open(self.path(&from.pool)).map_err(|e| self.wrong(e))?;
        let ask = servegen::Compose {
            from_s: from.from_s,
            to_s: from.to_s,
            rate: from.rate,
            rank_correlation: from.rank_correlation,
        };
        servegen::compose(&pool, &ask, self.scenario.seed()).map_err(|e| self.wrong(e))
    }

    fn path(&self, file: &Path) -> std::path::PathBuf {
        self.scenario.folder.join(file)
    }

    /// Requests of a trace, at its own times. Where a later turn of a session asks all that was said before it, it begins with that;
    /// where it doesn't, nothing is known of what they have in common.
    fn rows(&self, all: &mut Requests, a: &Arrivals, t: &Trace, output: Option<u32>) -> Result<(), ScenarioError> {
        let mut said: HashMap<Name, (u32, u32)> = HashMap::new();
        let mut asks = Vec::with_capacity(t.rows.len());
        for (i, row) in t.rows.iter().enumerate() {
            let lacks = |what: &str| self.wrong(format!("row {} of the trace has no {what}", i + 1));
            let input = row.input.ok_or_else(|| lacks("prompt length"))?.max(1);
            let output = row.output.or(output).ok_or_else(|| lacks("answer length; give trace.output"))?.max(1);
            let text = match (row.blocks(), t.block_tokens, row.session) {
                (Some(ids), Some(size), _) if !ids.is_empty() => all.texts.add_blocks(ids, size),
                (_, _, Some(session)) => {
                    let (number, so_far) = *said.entry(session).or_insert_with(|| (all.texts.new_sessions(1), 0));
                    let goes_on = input >= so_far;
                    let number = if goes_on { number } else { all.texts.new_sessions(1) };
                    said.insert(session, (number, input + output));
                    Text::Session { session: number, head: 0, head_tokens: 0 }
                }
                _ => Text::Own { head: 0, head_tokens: 0 },
            };
            let priority = row.more.as_ref().and_then(|m| m.priority).map_or(self.class.priority, |p| p as i32);
            asks.push(Ask { priority, ..self.ask(input, output, text) });
        }
        self.of_trace(all, a, t, asks)
    }

    fn conversations(
        &self,
        all: &mut Requests,
        a: &Arrivals,
        t: &Trace,
        heads: Option<&Heads>,
    ) -> Result<(), ScenarioError> {
        let mut rng = draws(self.scenario.seed(), "sim/heads", self.number);
        let mut known: HashMap<Name, Text> = HashMap::new();
        let mut asks = Vec::with_capacity(t.rows.len());
        for row in &t.rows {
            let Some(name) = row.session else { continue };
            let text = *known.entry(name).or_insert_with(|| {
                let (head, head_tokens) = heads.map_or((0, 0), |h| h.draw(&mut rng));
                Text::Session { session: all.texts.new_sessions(1), head, head_tokens }
            });
            let Text::Session { head_tokens, .. } = text else { continue };
            asks.push(self.ask(row.input.unwrap_or(1) + head_tokens, row.output.unwrap_or(1), text));
        }
        self.of_trace(all, a, t, asks)
    }

    fn of_trace(&self, all: &mut Requests, a: &Arrivals, t: &Trace, asks: Vec<Ask>) -> Result<(), ScenarioError> {
        let paced = a.concurrency.is_some() && a.law.is_none();
        let turns = t.turns(!paced, Dur::ZERO).map_err(|row| {
            self.wrong(format!("row {row} of the trace begins a session and has no time; give arrivals.concurrency"))
        })?;
        let sessions = turns.iter().any(Option::is_some).then_some(Sessions { turns, end_with_failure: true });
        let times = (!paced).then(|| t.schedule());
        all.stages.push(all.asks.len());
        self.part(all, a, Made { asks, times, sessions }, Dur::from_secs_f64(a.start_s), None)
    }
}

/// Beginnings that prompts have in common.
struct Heads {
    first: u32,
    tokens: u32,
    law: laws::Law,
}

impl Heads {
    fn draw(&self, rng: &mut tailbound_clock::Rng) -> (u32, u32) {
        (self.first + self.law.count(1, rng) - 1, self.tokens)
    }
}
