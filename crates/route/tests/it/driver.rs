//! A driver of one router, that keeps track of what it said.

use tailbound_clock::{Dur, Seed, Time};
use tailbound_route::*;

pub struct Pool {
    pub router: Router,
    pub now: Time,
    pub out: Vec<Effect>,
    next: u64,
}

/// A policy of these plugins, as `type` or `type:weight`, all in one profile.
pub fn policy(plugins: &str) -> Policy {
    policy_with(plugins, "")
}

/// The same, with more at the end of the file.
pub fn policy_with(plugins: &str, more: &str) -> Policy {
    let names: Vec<(&str, &str)> = plugins.split(' ').map(|p| p.split_once(':').unwrap_or((p, "1"))).collect();
    let declared: String = names.iter().map(|(n, _)| format!("- type: {n}\n")).collect();
    let referred: String = names.iter().map(|(n, w)| format!("  - {{pluginRef: {n}, weight: {w}}}\n")).collect();
    yaml(&format!("plugins:\n{declared}schedulingProfiles:\n- name: default\n  plugins:\n{referred}{more}"))
}

/// A policy from the body of an `EndpointPickerConfig`.
pub fn yaml(body: &str) -> Policy {
    let head = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n";
    Policy::from_yaml(&format!("{head}{body}")).unwrap_or_else(|e| panic!("{e}\n{body}"))
}

impl Pool {
    /// With so many replicas, 0 and up.
    pub fn new(policy: Policy, replicas: u32) -> Pool {
        Pool::with(Config::new(policy, Seed(7)), replicas)
    }

    pub fn with(config: Config, replicas: u32) -> Pool {
        let router = Router::new(config);
        let mut pool = Pool { router, now: Time::ZERO, out: Vec::new(), next: 0 };
        (0..replicas).for_each(|id| pool.join(id, &[]));
        pool
    }

    pub fn join(&mut self, id: u32, labels: &[(&str, &str)]) {
        let labels = labels.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        let endpoint = Endpoint { name: format!("default/pod-{id}"), address: format!("10.0.0.{id}:8000"), labels };
        self.on(Event::Joined(EndpointId(id), &endpoint));
    }

    pub fn on(&mut self, event: Event<'_>) -> Vec<Effect> {
        self.out.clear();
        self.router.on(self.now, event, &mut self.out);
        self.out.clone()
    }

    pub fn pass(&mut self, dur: Dur) {
        self.now += dur;
    }

    pub fn hear(&mut self, id: u32, signals: Signals<'_>) -> Vec<Effect> {
        self.on(Event::Signals(EndpointId(id), &signals))
    }

    /// What a replica says now.
    pub fn says(&mut self, id: u32, waiting: u32, running: u32, kv_usage: f64) -> Vec<Effect> {
        self.hear(id, Signals { waiting, running, kv_usage, ..Signals::idle(self.now) })
    }

    /// A request with so many tokens of its own.
    pub fn ask(&mut self, tokens: u32) -> (RequestId, Vec<Effect>) {
        let id = self.name();
        let prompt: Vec<u32> = (0..tokens).map(|i| (id.0 as u32) << 16 | i).collect();
        self.send(Arrival { id, ..arrival(&prompt) })
    }

    pub fn send(&mut self, arrival: Arrival<'_>) -> (RequestId, Vec<Effect>) {
        (arrival.id, self.on(Event::Arrived(&arrival)))
    }

    /// A request with these tokens.
    pub fn prompt(&mut self, tokens: &[u32]) -> (RequestId, Vec<Effect>) {
        let id = self.name();
        self.send(Arrival { id, ..arrival(tokens) })
    }

    pub fn name(&mut self) -> RequestId {
        self.next += 1;
        RequestId(self.next)
    }

    pub fn end(&mut self, id: RequestId) -> Vec<Effect> {
        self.on(Event::Ended(id, Usage { ok: true, ..Usage::default() }))
    }

    pub fn load(&self, id: u32) -> Load {
        self.router.load(EndpointId(id)).unwrap()
    }
}

/// A request for the model `m`; its name is to be set.
pub fn arrival(tokens: &[u32]) -> Arrival<'_> {
    Arrival::new(RequestId(0), "m", Prompt { text: &[], tokens })
}

/// Where the effects send their one request.
pub fn target(effects: &[Effect]) -> u32 {
    dispatched(effects).unwrap_or_else(|| panic!("nothing was sent: {effects:?}"))
}

pub fn dispatched(effects: &[Effect]) -> Option<u32> {
    effects.iter().find_map(|e| if let Effect::Dispatch(d) = e { Some(d.to[0].0) } else { None })
}

pub fn refused(effects: &[Effect]) -> Option<Refusal> {
    effects.iter().find_map(|e| if let Effect::Refuse(_, why) = e { Some(*why) } else { None })
}

/// Names of those that were sent, in order.
pub fn sent(effects: &[Effect]) -> Vec<RequestId> {
    effects.iter().filter_map(|e| if let Effect::Dispatch(d) = e { Some(d.request) } else { None }).collect()
}
