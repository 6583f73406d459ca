//! Workloads from laws alone: arrivals, lengths, shared prefixes, conversations, trees of agents, media.

mod agents;
mod blocks;
mod sessions;

pub use agents::Agents;
pub use blocks::{Popularity, Prefixes};
pub use sessions::Sessions;

use crate::collect::Trace;
use crate::error::Error;
use crate::generate::{Arrivals, Copula, Law};
use crate::row::{Media, MediaKind, Names, Row};
use blocks::Blocks;
use tailbound_clock::{Rng, Seed};

/// What to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// When requests arrive; with sessions or agents, when these begin.
    pub arrivals: Arrivals,
    /// How much of it.
    pub extent: Extent,
    /// Tokens of a prompt behind its shared prefix; of what a turn adds, in conversations.
    pub input: Law,
    /// Tokens of an answer.
    pub output: Law,
    /// Spearman's rank correlation of the two, −1 to 1. Only for laws that are distributions of values ([`Law::Discrete`]).
    pub rank_correlation: f64,
    /// Prompt heads that requests share.
    pub prefixes: Option<Prefixes>,
    /// What follows an arrival.
    pub shape: Shape,
    /// Images, audio, video: how many parts, and how many tokens each.
    pub media: Vec<(MediaKind, Law, Law)>,
    /// The part of an answer that is reasoning, 0 to 1.
    pub reason_ratio: Option<Law>,
    /// Tokens per prefix block; `None`: no blocks are written.
    pub block_tokens: Option<u32>,
    /// How long an answer token takes, in seconds: with it, later turns get a time of arrival. It is an assumption.
    pub token_s: f64,
}

/// How much to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// Arrivals up to this second.
    Seconds(f64),
    /// So many requests, exactly.
    Requests(usize),
}

/// What follows an arrival.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// One request.
    Single,
    /// A conversation.
    Sessions(Sessions),
    /// A tree of agents.
    Agents(Agents),
}

/// Trees are drawn whole: no more requests than this from one arrival.
const MOST_PER_ARRIVAL: usize = 100_000;

/// The streams of a workload, one for each thing drawn, so that changing one law moves nothing else.
struct Draws {
    lengths: Rng,
    sharing: Rng,
    media: Rng,
    reason: Rng,
    shape: Rng,
}

/// Everything that is drawn from while rows are made.
struct Maker<'a> {
    spec: &'a Synthetic,
    copula: Copula,
    draws: Draws,
    blocks: Blocks,
    names: Names,
    rows: Vec<Row>,
}

/// Draws the workload. The same seed gives the same on every machine.
pub fn synthesize(spec: &Synthetic, seed: Seed) -> Result<Trace, Error> {
    let copula = Copula::new(spec.rank_correlation)?;
    let values = |law: &Law| matches!(law, Law::Discrete(_));
    if spec.rank_correlation != 0.0 && !(values(&spec.input) && values(&spec.output)) {
        return Err(Error::Asked("a rank correlation needs empirical or Zipf lengths on both sides".into()));
    }
    let draws = Draws {
        lengths: seed.stream("synthetic.lengths"),
        sharing: seed.stream("synthetic.sharing"),
        media: seed.stream("synthetic.media"),
        reason: seed.stream("synthetic.reason"),
        shape: seed.stream("synthetic.shape"),
    };
    let mut blocks = Blocks::new(spec.block_tokens);
    if let Some(prefixes) = &spec.prefixes {
        blocks.share(prefixes, &mut seed.stream("synthetic.prefixes"))?;
    }
    let mut maker = Maker { spec, copula, draws, blocks, names: Names::default(), rows: Vec::new() };
    let arrivals = || seed.stream("synthetic.arrivals");
    match spec.extent {
        Extent::Seconds(s) => {
            if !(s > 0.0 && s < 1e9) {
                return Err(Error::Asked(format!("a workload lasts longer than nothing, not {s} s")));
            }
            spec.arrivals.draw(s, &mut arrivals()).into_iter().try_for_each(|at| maker.arrival(at))?;
        }
        Extent::Requests(n) => {
            maker.first(n, &spec.arrivals.first(n, arrivals))?;
        }
    }
    Ok(Trace::of_rows(maker.rows, maker.names, spec.block_tokens))
}

impl Maker<'_> {
    /// Exactly the first `n` requests. What begins after the last of them is not drawn.
    fn first(&mut self, n: usize, arrivals: &[f64]) -> Result<(), Error> {
        let mut until = i64::MAX;
        for &at in arrivals {
            if ns(at) > until {
                break;
            }
            self.arrival(at)?;
            if until == i64::MAX && self.rows.len() >= n {
                let mut times: Vec<i64> = self.rows.iter().filter_map(|r| r.at).collect();
                until = *times.select_nth_unstable(n.saturating_sub(1)).1;
            }
        }
        if self.rows.len() < n {
            let got = self.rows.len();
            return Err(Error::Asked(format!("the arrivals end after {got} requests, before the {n} asked for")));
        }
        self.rows.sort_by_key(|r| r.at);
        self.rows.truncate(n);
        Ok(())
    }

    fn arrival(&mut self, at: f64) -> Result<(), Error> {
        let before = self.rows.len();
        match &self.spec.shape {
            Shape::Single => self.single(at),
            Shape::Sessions(sessions) => self.conversation(sessions, at),
            Shape::Agents(agents) => self.task(agents, at),
        }
        if self.rows.len() - before > MOST_PER_ARRIVAL {
            return Err(Error::Asked(format!("one arrival made more than {MOST_PER_ARRIVAL} requests")));
        }
        Ok(())
    }

    fn single(&mut self, at: f64) {
        let mut context = self.blocks.begin(self.spec.prefixes.as_ref(), &mut self.draws.sharing);
        let row = self.turn(at, &mut context);
        self.rows.push(row);
    }

    /// A request that adds to a context, and whose answer becomes part of it.
    fn turn(&mut self, at: f64, context: &mut blocks::Context) -> Row {
        let (added, output) = self.lengths();
        self.request(at, added, output, context)
    }

    fn lengths(&mut self) -> (u32, u32) {
        let rng = &mut self.draws.lengths;
        if let (true, Law::Discrete(input), Law::Discrete(output)) =
            (self.spec.rank_correlation != 0.0, &self.spec.input, &self.spec.output)
        {
            let (u, v) = self.copula.pair(rng);
            return ((libm::round(input.at(u)) as u32).max(1), (libm::round(output.at(v)) as u32).max(1));
        }
        (self.spec.input.count(1, rng), self.spec.output.count(1, rng))
    }

    fn request(&mut self, at: f64, added: u32, output: u32, context: &mut blocks::Context) -> Row {
        context.grow(added);
        let mut row = Row { at: Some(ns(at)), output: Some(output), ..Row::default() };
        row.input = Some(context.tokens());
        if self.spec.block_tokens.is_some() {
            row.more_mut().blocks = Some(self.blocks.of(context));
        }
        for (kind, parts, tokens) in &self.spec.media {
            for _ in 0..parts.count(0, &mut self.draws.media) {
                let tokens = Some(tokens.count(0, &mut self.draws.media));
                row.more_mut().media.push(Media { kind: *kind, tokens });
            }
        }
        if let Some(ratio) = &self.spec.reason_ratio {
            let ratio = ratio.draw(&mut self.draws.reason).clamp(0.0, 1.0);
            row.more_mut().reasoning = Some(libm::round(ratio * f64::from(output)) as u32);
        }
        context.grow(output);
        row
    }
}

fn ns(seconds: f64) -> i64 {
    libm::round(seconds * 1e9) as i64
}
