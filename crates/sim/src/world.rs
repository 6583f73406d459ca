use crate::fleet::Replica;
use crate::prompts::Prompts;
use crate::scenario::{Scenario, ScenarioError};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use tailbound_clock::{Dur, Time};
use tailbound_engine::{self as engine, Emit, SeqId, Submit};
use tailbound_kv::vllm::Batch;
use tailbound_record::{Blame, Cause, End, Finish, Moment, Phase, Row, StampSource};
use tailbound_route::{
    self as route, Arrival, Config, Endpoint, EndpointId, KvMessage, Prompt, RequestId, Router, Signals, Usage,
};
use tailbound_workload::{IntentId, Plan};

/// What a simulation came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One per request, in the plan's order.
    pub rows: Vec<Row>,
    /// The number of each stage's first request.
    pub stages: Vec<usize>,
    /// When the last thing happened.
    pub end: Time,
    /// Engine steps, of all replicas.
    pub steps: u64,
    /// Mean over scrapes and replicas of requests that wait in the engine.
    pub mean_waiting: f64,
    /// Prompt tokens found in prefix caches, of those looked up.
    pub hit_ratio: f64,
}

/// Runs a scenario to its end.
pub fn run(scenario: &Scenario) -> Result<Outcome, ScenarioError> {
    let (plan, stages) = scenario.staged()?;
    let mut world = World::new(scenario, &plan, &stages)?;
    while let Some(Reverse((now, _, what))) = world.heap.pop() {
        world.now = now;
        world.happen(what);
        if world.left == 0 {
            break;
        }
        if now.since(world.moved) > STUCK {
            return Err(ScenarioError::Stuck(world.left));
        }
    }
    Ok(world.finish())
}

/// What is to happen; the order of those of one moment is that in which they were put on the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Arrive(u32),
    Engine(u32),
    Router,
    Scrape(u32),
    Deliver(u32),
}

/// What is on its way to the router.
enum Letter {
    Signals(u32, Signals<'static>),
    Kv(u32, u64, Batch),
}

struct World<'a> {
    plan: &'a Plan,
    /// First request and beginning of each stage.
    stages: &'a [(u32, Dur)],
    /// Whether a stage waits for the answers of the one before it.
    drain: bool,
    /// The stage that waits, by its first request.
    held: Option<u32>,
    /// How far waiting has put off everything after.
    shift: Dur,
    now: Time,
    heap: BinaryHeap<Reverse<(Time, u64, What)>>,
    pushed: u64,
    router: Router,
    effects: Vec<route::Effect>,
    router_wake: Option<Time>,
    replicas: Vec<Replica>,
    prompts: Arc<Prompts>,
    emitted: Vec<Emit>,
    output: u32,
    rows: Vec<Row>,
    letters: Vec<Option<Letter>>,
    free_letters: Vec<u32>,
    /// Requests that haven't ended.
    left: usize,
    /// When a request last arrived, or was answered a token.
    moved: Time,
    scrape: Dur,
    scrape_delay: Dur,
    event_delay: Dur,
    waiting: (f64, u64),
}

/// Requests wait this long while nothing comes or goes: the policy will never send them.
const STUCK: Dur = Dur::from_secs(3600);

/// What is due at time zero of the plan; by then every replica has been scraped.
const START: Time = Time(1_000_000_000);

impl<'a> World<'a> {
    fn new(scenario: &Scenario, plan: &'a Plan, stages: &'a [(u32, Dur)]) -> Result<World<'a>, ScenarioError> {
        scenario.staleness.check()?;
        let policy = scenario.policy()?;
        let events = policy.wants_tokens();
        let config = scenario.engine()?;
        let replicas: Result<Vec<Replica>, _> =
            (0..scenario.engines.count).map(|_| Replica::new(&config, events)).collect();
        let rows: Vec<Row> = plan.measured().map(|intent| Row::new(u64::from(intent.id.0))).collect();
        let mut world = World {
            plan,
            stages,
            drain: scenario.arrivals.drain,
            held: None,
            shift: Dur::ZERO,
            now: Time::ZERO,
            heap: BinaryHeap::new(),
            pushed: 0,
            router: Router::new(Config::new(policy, scenario.seed())),
            effects: Vec::new(),
            router_wake: None,
            replicas: replicas?,
            prompts: Arc::new(Prompts::new(&scenario.shared_prefix, &mut scenario.seed().stream("sim/prompts"))),
            emitted: Vec::new(),
            output: scenario.shared_prefix.output,
            left: rows.len(),
            moved: START,
            rows,
            letters: Vec::new(),
            free_letters: Vec::new(),
            scrape: Dur::from_ms_f64(scenario.staleness.scrape_ms),
            scrape_delay: Dur::from_ms_f64(scenario.staleness.scrape_delay_ms),
            event_delay: Dur::from_ms_f64(scenario.staleness.event_delay_ms),
            waiting: (0.0, 0),
        };
        world.begin();
        Ok(world)
    }

    fn begin(&mut self) {
        for i in 0..self.replicas.len() as u32 {
            let endpoint = Endpoint { name: format!("replica-{i}"), ..Endpoint::default() };
            self.tell(route::Event::Joined(EndpointId(i), &endpoint));
            // Scrapes don't all fall on one moment.
            let offset = Dur(self.scrape.ns() * u64::from(i) / self.replicas.len() as u64);
            self.push(Time::ZERO + offset, What::Scrape(i));
        }
        self.push_arrival(0);
    }

    fn push(&mut self, at: Time, what: What) {
        self.pushed += 1;
        self.heap.push(Reverse((at, self.pushed, what)));
    }

    fn push_arrival(&mut self, index: u32) {
        if index as usize >= self.rows.len() {
            return;
        }
        if self.drain && self.open(index) > 0 && self.stages.iter().any(|(first, _)| *first == index) {
            self.held = Some(index);
            return;
        }
        let offset = self.plan.intent(IntentId(index)).offset.unwrap_or(Dur::ZERO);
        self.push(START + offset + self.shift, What::Arrive(index));
    }

    /// Of the requests before that one, those that haven't ended.
    fn open(&self, index: u32) -> usize {
        index as usize - (self.rows.len() - self.left)
    }

    /// A request has ended; a stage that waited for it may begin.
    fn ended(&mut self) {
        self.left -= 1;
        let Some(first) = self.held.filter(|first| self.open(*first) == 0) else { return };
        self.held = None;
        let begin = self.stages.iter().find(|(index, _)| *index == first).map_or(Dur::ZERO, |(_, begin)| *begin);
        self.shift += self.now.since(START + begin + self.shift);
        self.push_arrival(first);
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Arrive(index) => self.arrive(index),
            What::Engine(replica) => self.step(replica),
            What::Router => {
                self.router_wake = None;
                self.tell(route::Event::Wake);
            }
            What::Scrape(replica) => {
                let signals = self.replicas[replica as usize].signals(self.now);
                self.waiting = (self.waiting.0 + f64::from(signals.waiting), self.waiting.1 + 1);
                self.post(self.scrape_delay, Letter::Signals(replica, signals));
                self.push(self.now + self.scrape, What::Scrape(replica));
            }
            What::Deliver(letter) => {
                let taken = self.letters[letter as usize].take();
                self.free_letters.push(letter);
                match taken {
                    Some(Letter::Signals(replica, signals)) => {
                        self.tell(route::Event::Signals(EndpointId(replica), &signals));
                    }
                    Some(Letter::Kv(replica, seq, batch)) => {
                        let message = KvMessage { seq, batch: &batch, replayed: false };
                        self.tell(route::Event::Kv(EndpointId(replica), &message));
                    }
                    None => {}
                }
            }
        }
    }

    fn arrive(&mut self, index: u32) {
        // First, so that whoever arrives at the same moment is there before the step that takes both.
        self.push_arrival(index + 1);
        self.moved = self.now;
        let item = self.plan.intent(IntentId(index)).item;
        let row = &mut self.rows[index as usize];
        row.stamps = StampSource::Virtual;
        row.tokens.prompt_asked = Some(self.prompts.of(item).len() as u32);
        row.tokens.output_asked = Some(self.output);
        for moment in [Moment::Scheduled, Moment::Released, Moment::WriteStart, Moment::Written] {
            row.at.set(moment, self.now);
        }
        let prompts = Arc::clone(&self.prompts);
        let prompt = Prompt { text: &[], tokens: prompts.of(item) };
        let arrival = Arrival {
            output_tokens: Some(self.output),
            bytes: 4 * prompt.tokens.len() as u64,
            ..Arrival::new(RequestId(u64::from(index)), "model", prompt)
        };
        self.tell(route::Event::Arrived(&arrival));
    }

    /// Tells the router, and does what it says, and what comes of that.
    fn tell(&mut self, event: route::Event<'_>) {
        let mut effects = std::mem::take(&mut self.effects);
        self.router.on(self.now, event, &mut effects);
        let mut done = 0;
        while done < effects.len() {
            let effect = effects[done].clone();
            done += 1;
            match effect {
                route::Effect::Dispatch(d) => self.submit(d.request, d.to[0], &mut effects),
                route::Effect::Refuse(id, why) => self.fail(id, Phase::Headers, why.status(), why.to_string()),
                route::Effect::Evict(id) => {
                    self.abort(id);
                    self.router.on(self.now, route::Event::Cancelled(id), &mut effects);
                }
                // Nothing is ever lost here.
                route::Effect::ReplayKv(id, _) => {
                    let none = route::Event::KvReplayed(id, route::Complete::No);
                    self.router.on(self.now, none, &mut effects);
                }
            }
        }
        effects.clear();
        self.effects = effects;
        let wake = self.router.next_wake();
        if let Some(at) = wake.filter(|at| self.router_wake.is_none_or(|known| *at < known)) {
            self.router_wake = Some(at);
            self.push(at.max(self.now), What::Router);
        }
    }

    fn submit(&mut self, id: RequestId, to: EndpointId, effects: &mut Vec<route::Effect>) {
        self.rows[id.0 as usize].worker = to.0 as u16;
        let item = self.plan.intent(IntentId(id.0 as u32)).item;
        let prompts = Arc::clone(&self.prompts);
        let submit = Submit::new(SeqId(id.0), prompts.of(item), self.output);
        let replica = &mut self.replicas[to.0 as usize];
        replica.effects.clear();
        replica.engine.on(self.now, engine::Event::Submit(submit), &mut replica.effects);
        let rejected = replica.effects.iter().find_map(|effect| match effect {
            engine::Effect::Rejected { why, .. } => Some(why.to_string()),
            _ => None,
        });
        if let Some(why) = rejected {
            self.fail(id, Phase::Headers, 400, why);
            self.router.on(self.now, route::Event::Ended(id, Usage::default()), effects);
        }
        self.schedule(to.0);
    }

    fn schedule(&mut self, replica: u32) {
        let r = &mut self.replicas[replica as usize];
        let Some(at) = r.engine.next_wake().filter(|at| r.wake != Some(*at)) else { return };
        r.wake = Some(at);
        self.push(at, What::Engine(replica));
    }

    fn step(&mut self, replica: u32) {
        let r = &mut self.replicas[replica as usize];
        if r.wake != Some(self.now) {
            return;
        }
        r.wake = None;
        r.effects.clear();
        r.engine.on(self.now, engine::Event::Wake, &mut r.effects);
        let mut emitted = std::mem::take(&mut self.emitted);
        emitted.extend_from_slice(r.engine.emitted());
        if let Some((seq, batch)) = r.message() {
            self.post(self.event_delay, Letter::Kv(replica, seq, batch));
        }
        self.schedule(replica);
        for emit in emitted.drain(..) {
            self.emit(&emit);
        }
        self.emitted = emitted;
    }

    fn emit(&mut self, emit: &Emit) {
        let row = &mut self.rows[emit.id.0 as usize];
        if row.at.get(Moment::StreamEnd).is_some() {
            return; // evicted by what an earlier one of the same step brought about
        }
        self.moved = self.now;
        let id = RequestId(emit.id.0);
        let first = emit.first == 0;
        if first {
            for moment in
                [Moment::Headers, Moment::FirstByte, Moment::FirstEvent, Moment::FirstToken, Moment::FirstVisible]
            {
                row.at.set(moment, self.now);
            }
            row.tokens.cached_server = Some(emit.cached);
        }
        row.net.reads += 1;
        row.chunks.push(self.now, row.net.reads, emit.tokens as u16, true);
        row.at.set(Moment::LastToken, self.now);
        let generated = emit.first + emit.tokens;
        if first {
            self.tell(route::Event::FirstToken(id));
        }
        let Some(finish) = emit.finish else { return };
        let row = &mut self.rows[emit.id.0 as usize];
        for moment in [Moment::Finish, Moment::Usage, Moment::StreamEnd] {
            row.at.set(moment, self.now);
        }
        row.tokens.prompt_server = row.tokens.prompt_asked;
        row.tokens.output_server = Some(generated);
        row.net.status = 200;
        row.chunks.shrink();
        row.end = End::Done(match finish {
            engine::Finish::Stop => Finish::Stop,
            engine::Finish::Length => Finish::Length,
            engine::Finish::Abort => Finish::Other,
        });
        let usage = Usage {
            ok: true,
            prompt: row.tokens.prompt_asked,
            cached: row.tokens.cached_server,
            generated: Some(generated),
        };
        self.ended();
        self.tell(route::Event::Ended(id, usage));
    }

    fn abort(&mut self, id: RequestId) {
        let row = &self.rows[id.0 as usize];
        let (worker, answered) = (u32::from(row.worker), row.at.get(Moment::FirstToken).is_some());
        let replica = &mut self.replicas[worker as usize];
        replica.effects.clear();
        replica.engine.on(self.now, engine::Event::Abort(SeqId(id.0)), &mut replica.effects);
        let phase = if answered { Phase::Stream } else { Phase::Headers };
        self.fail(id, phase, 429, "request evicted by flow control".to_owned());
        self.schedule(worker);
    }

    fn fail(&mut self, id: RequestId, phase: Phase, status: u16, why: String) {
        let row = &mut self.rows[id.0 as usize];
        row.net.status = status;
        row.at.set(Moment::StreamEnd, self.now);
        row.chunks.shrink();
        row.end = End::Failed { phase, blame: Blame::Server, cause: Cause::Status(status), detail: why.into() };
        self.ended();
    }

    fn post(&mut self, delay: Dur, letter: Letter) {
        let place = match self.free_letters.pop() {
            Some(place) => place,
            None => {
                self.letters.push(None);
                self.letters.len() as u32 - 1
            }
        };
        self.letters[place as usize] = Some(letter);
        self.push(self.now + delay, What::Deliver(place));
    }

    fn finish(self) -> Outcome {
        let sum = |f: fn(&engine::Counters) -> u64| self.replicas.iter().map(|r| f(r.engine.counters())).sum::<u64>();
        Outcome {
            stages: self.stages.iter().map(|(first, _)| *first as usize).collect(),
            end: self.now,
            steps: sum(|c| c.steps),
            mean_waiting: self.waiting.0 / self.waiting.1.max(1) as f64,
            hit_ratio: sum(|c| c.prefix_hits) as f64 / sum(|c| c.prefix_queries).max(1) as f64,
            rows: self.rows,
        }
    }
}
