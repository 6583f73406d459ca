//! The virtual world: loads, the router and N engines on one heap of moments.

mod calendar;
mod faults;
mod flights;
mod load;
mod mail;
mod outcome;
mod serve;
mod stream;

pub use outcome::{Answered, Figures, Outcome, Routed};

use crate::replica::Replica;
use crate::requests::Requests;
use crate::scenario::{Scenario, ScenarioError};
use calendar::{Calendar, Next, Turn};
use faults::Change;
use flights::Flights;
use load::Loads;
use mail::{Letter, Mail};
use tailbound_clock::{Dur, Rng, Time};
use tailbound_engine::Emit;
use tailbound_route::log::Entry;
use tailbound_route::{self as route, Endpoint, EndpointId, KvMessage, Router};

/// Runs a scenario to its end and keeps every row.
pub fn run(scenario: &Scenario) -> Result<Outcome, ScenarioError> {
    let mut answered = Vec::new();
    let figures = run_into(scenario, |one| answered.push(one))?;
    answered.sort_unstable_by_key(|one| one.row.id);
    Ok(Outcome::new(answered, figures))
}

/// Runs a scenario to its end; every request is handed over as it ends.
pub fn run_into(scenario: &Scenario, mut sink: impl FnMut(Answered)) -> Result<Figures, ScenarioError> {
    simulate(scenario, &mut sink, None)
}

/// As [`run_into`], and every call of the router is handed over too: with the head of
/// [`Scenario::log_head`] before them, they are a log that can be replayed.
pub fn run_logged(
    scenario: &Scenario,
    mut sink: impl FnMut(Answered),
    mut log: impl FnMut(Entry),
) -> Result<Figures, ScenarioError> {
    simulate(scenario, &mut sink, Some(&mut log))
}

fn simulate(
    scenario: &Scenario,
    mut sink: &mut dyn FnMut(Answered),
    log: Option<&mut dyn FnMut(Entry)>,
) -> Result<Figures, ScenarioError> {
    let requests = Requests::new(scenario)?;
    let mut world = World::new(scenario, &requests, log)?;
    world.begin();
    while !world.loads.over() {
        // Scrapes go on for ever: the calendar is never empty.
        let Some((now, next)) = world.calendar.pop() else { break };
        world.now = now;
        world.happen(next);
        world.ended.drain(..).for_each(&mut sink);
        if now.since(world.moved) > STUCK {
            return Err(ScenarioError::Stuck(world.flights.len()));
        }
    }
    world.never_sent().into_iter().for_each(&mut sink);
    Ok(world.figures())
}

/// When each request is due by its plan, and of what class it is, without running anything. Of a turn that follows another, when
/// the one before it in the plan is.
pub fn arrivals(scenario: &Scenario) -> Result<Vec<(Dur, u16)>, ScenarioError> {
    let requests = Requests::new(scenario)?;
    let mut all = Vec::with_capacity(requests.asks.len());
    for part in &requests.parts {
        let mut last = Dur::ZERO;
        for intent in part.plan.measured() {
            last = intent.offset.unwrap_or(last);
            all.push((part.begin + last, requests.asks[all.len()].class));
        }
    }
    Ok(all)
}

/// Requests wait this long while nothing comes or goes: the policy will never send them.
const STUCK: Dur = Dur::from_secs(3600);

/// What is due at time zero of the plans; by then every replica has been scraped.
pub(crate) const START: Time = Time(1_000_000_000);

struct World<'a, 'l> {
    requests: &'a Requests,
    /// Where calls of the router are noted, if they are.
    log: Option<&'l mut dyn FnMut(Entry)>,
    now: Time,
    calendar: Calendar,
    loads: Loads,
    flights: Flights,
    router: Router,
    effects: Vec<route::Effect>,
    router_wake: Option<Time>,
    replicas: Vec<Replica>,
    emitted: Vec<Emit>,
    answer: Vec<u32>,
    mail: Mail,
    changes: Vec<Change>,
    ended: Vec<Answered>,
    leaving: Rng,
    /// When a request last arrived, or was answered a token.
    moved: Time,
    scrape: Dur,
    /// Whether the policy reads figures beside the usual ones.
    attributes: bool,
    scrape_delay: Dur,
    event_delay: Dur,
    waiting: (f64, u64),
    most_indexed: usize,
}

impl<'a, 'l> World<'a, 'l> {
    fn new(
        scenario: &Scenario,
        requests: &'a Requests,
        log: Option<&'l mut dyn FnMut(Entry)>,
    ) -> Result<World<'a, 'l>, ScenarioError> {
        scenario.staleness.check()?;
        let config = scenario.router()?;
        let events = config.policy.wants_tokens();
        let attributes = !config.policy.wants_attributes().is_empty();
        let mut replicas = Vec::new();
        for (group, config) in scenario.engines.iter().zip(scenario.engine_configs()?) {
            for _ in 0..group.count {
                let labels = group.labels.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                let endpoint = Endpoint { name: format!("replica-{}", replicas.len()), labels, ..Endpoint::default() };
                replicas.push(Replica::new(&config, endpoint, events)?);
            }
        }
        Ok(World {
            requests,
            log,
            now: Time::ZERO,
            calendar: Calendar::default(),
            loads: Loads::new(requests),
            flights: Flights::new(requests.asks.len()),
            router: Router::new(config),
            effects: Vec::new(),
            router_wake: None,
            emitted: Vec::new(),
            answer: Vec::new(),
            mail: Mail::default(),
            changes: faults::changes(scenario)?,
            replicas,
            ended: Vec::new(),
            leaving: scenario.seed().stream("sim/leaving"),
            moved: START,
            scrape: Dur::from_ms_f64(scenario.staleness.scrape_ms),
            attributes,
            scrape_delay: Dur::from_ms_f64(scenario.staleness.scrape_delay_ms),
            event_delay: Dur::from_ms_f64(scenario.staleness.event_delay_ms),
            waiting: (0.0, 0),
            most_indexed: 0,
        })
    }

    fn begin(&mut self) {
        for i in 0..self.changes.len() {
            self.calendar.push(self.changes[i].at, Next::Fault(i as u32));
        }
        let late: Vec<u32> = self.changes.iter().filter_map(Change::begins_late).collect();
        for i in 0..self.replicas.len() as u32 {
            if late.contains(&i) {
                self.replicas[i as usize].alive = false;
            } else {
                self.join(i);
            }
            // Scrapes don't all fall on one moment.
            let offset = Dur(self.scrape.ns() * u64::from(i) / self.replicas.len() as u64);
            self.calendar.push_in_turn(Turn::Scrapes, Time::ZERO + offset, Next::Scrape(i));
        }
        self.begin_loads();
    }

    fn happen(&mut self, next: Next) {
        match next {
            Next::Begin(part) | Next::Load(part) => self.wake_load(part),
            Next::Arrive(number) => self.arrive(u64::from(number)),
            Next::Engine(replica) => self.step(replica),
            Next::Router => {
                self.router_wake = None;
                self.tell(route::Event::Wake);
            }
            Next::Scrape(replica) => self.scrape(replica),
            Next::Deliver(letter) => self.deliver(letter),
            Next::Leave(number) => self.leave(u64::from(number)),
            Next::Fault(change) => self.change(change as usize),
        }
    }

    fn scrape(&mut self, replica: u32) {
        self.catch_up(replica);
        if let Some(scrape) = self.replicas[replica as usize].scrape(self.now, self.attributes) {
            self.waiting = (self.waiting.0 + f64::from(scrape.waiting()), self.waiting.1 + 1);
            self.post(Turn::Signals, self.scrape_delay, Letter::Signals(replica, scrape));
        }
        self.most_indexed = self.most_indexed.max(self.router.indexed().0);
        self.calendar.push_in_turn(Turn::Scrapes, self.now + self.scrape, Next::Scrape(replica));
    }

    fn post(&mut self, turn: Turn, delay: Dur, letter: Letter) {
        let place = self.mail.put(letter);
        self.calendar.push_in_turn(turn, self.now + delay, Next::Deliver(place));
    }

    fn deliver(&mut self, letter: u32) {
        match self.mail.take(letter) {
            Some(Letter::Signals(replica, scrape)) => {
                scrape.lend(|signals| self.tell(route::Event::Signals(EndpointId(replica), signals)));
            }
            Some(Letter::Kv(replica, seq, batch)) => {
                let message = KvMessage { seq, batch: &batch, replayed: false };
                self.tell(route::Event::Kv(EndpointId(replica), &message));
            }
            None => {}
        }
    }

    /// Discovery sees a replica.
    fn join(&mut self, replica: u32) {
        let endpoint = self.replicas[replica as usize].endpoint.clone();
        self.tell(route::Event::Joined(EndpointId(replica), &endpoint));
    }

    /// Tells the router, and does what it says, and what comes of that.
    fn tell(&mut self, event: route::Event<'_>) {
        let mut effects = std::mem::take(&mut self.effects);
        self.call(event, &mut effects);
        let mut done = 0;
        while done < effects.len() {
            let effect = effects[done].clone();
            done += 1;
            if let Some(event) = self.obey(effect) {
                self.call(event, &mut effects);
            }
        }
        effects.clear();
        self.effects = effects;
        let wake = self.router.next_wake();
        if let Some(at) = wake.filter(|at| self.router_wake.is_none_or(|known| *at < known)) {
            self.router_wake = Some(at);
            self.calendar.push(at.max(self.now), Next::Router);
        }
    }

    fn call(&mut self, event: route::Event<'_>, effects: &mut Vec<route::Effect>) {
        match &mut self.log {
            Some(log) => log(Entry::of_call(&mut self.router, self.now, event, effects)),
            None => self.router.on(self.now, event, effects),
        }
    }

    /// Puts a replica's next wake on the calendar.
    fn schedule(&mut self, replica: u32) {
        if let Some(at) = self.replicas[replica as usize].next_wake(self.now) {
            self.calendar.push(at, Next::Engine(replica));
        }
    }
}
