use super::{MOST_PER_ARRIVAL, Maker, ns};
use crate::generate::Law;
use crate::row::Name;
use tailbound_clock::Dur;

/// Tasks worked on by trees of agents. An agent takes steps; after each but its last it runs tools, whose results the next
/// step's prompt adds. A step may instead hand work to sub-agents, each with a context of its own, and the next step waits for
/// them all.
#[derive(Clone, Debug, PartialEq)]
pub struct Agents {
    /// Requests an agent makes.
    pub steps: Law,
    /// Seconds its tools take between them.
    pub tool_s: Law,
    /// Tokens a tool's result adds to the prompt.
    pub tool_tokens: Law,
    /// The share of steps that hand work to sub-agents, 0 to 1.
    pub fork: f64,
    /// How many sub-agents such a step has.
    pub fan_out: Law,
    /// How deep sub-agents may nest; 0: none.
    pub depth: u32,
}

/// One agent's surroundings.
#[derive(Clone, Copy)]
struct Around {
    session: Name,
    parent: Option<Name>,
    class: Name,
    depth: u32,
    /// With so many rows made, nobody goes on.
    enough: usize,
}

impl Maker<'_> {
    pub(super) fn task(&mut self, agents: &Agents, start: f64) {
        let session = self.names.intern(&format!("task-{}", self.rows.len()));
        let class = self.names.intern("agent");
        let enough = self.rows.len() + MOST_PER_ARRIVAL + 1;
        self.agent(agents, start, Around { session, parent: None, class, depth: 0, enough });
    }

    /// Makes an agent's requests; returns when its last answer is there.
    fn agent(&mut self, agents: &Agents, start: f64, around: Around) -> f64 {
        let steps = agents.steps.count(1, &mut self.draws.shape);
        let mut context = self.blocks.begin(self.spec.prefixes.as_ref(), &mut self.draws.sharing);
        let (mut at, mut parent, mut think) = (start, around.parent, None);
        for step in 1..=steps {
            let (task, output) = self.lengths();
            let added = if step == 1 { task } else { agents.tool_tokens.count(0, &mut self.draws.lengths) };
            let mut row = self.request(at, added, output, &mut context);
            let id = self.names.intern(&format!("request-{}", self.rows.len()));
            (row.session, row.class) = (Some(around.session), Some(around.class));
            let more = row.more_mut();
            (more.id, more.parent, more.turn, more.think) = (Some(id), parent, Some(step), think);
            self.rows.push(row);
            parent = Some(id);
            at += f64::from(output) * self.spec.token_s;
            if step == steps || self.rows.len() >= around.enough {
                break;
            }
            let ready = if around.depth < agents.depth && self.draws.shape.unit() < agents.fork {
                self.sub_agents(agents, at, Around { parent, depth: around.depth + 1, ..around })
            } else {
                at + agents.tool_s.draw(&mut self.draws.shape).max(0.0)
            };
            think = Some(Dur(ns(ready - at) as u64));
            at = ready;
        }
        at
    }

    /// Sub-agents at work side by side: when the last of them is done.
    fn sub_agents(&mut self, agents: &Agents, start: f64, around: Around) -> f64 {
        let class = self.names.intern("sub-agent");
        let many = agents.fan_out.count(1, &mut self.draws.shape);
        (0..many).map(|_| self.agent(agents, start, Around { class, ..around })).fold(start, f64::max)
    }
}
