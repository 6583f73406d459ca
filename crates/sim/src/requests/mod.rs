//! What a scenario asks: every request of every class, and the plans that say when each is sent.

mod class;
mod source;
mod text;
mod when;

pub(crate) use class::Class;
pub(crate) use text::{Text, Texts};
pub(crate) use when::Part;

use crate::scenario::{Scenario, ScenarioError};
use tailbound_clock::{Rng, Seed};

/// All requests, in the order of their numbers.
pub(crate) struct Requests {
    pub(crate) asks: Vec<Ask>,
    pub(crate) classes: Vec<Class>,
    pub(crate) texts: Texts,
    pub(crate) parts: Vec<Part>,
    /// The number of each stage's first request.
    pub(crate) stages: Vec<usize>,
}

/// One request, but for what its class says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) class: u16,
    /// Which of its class's adapters it wants.
    pub(crate) adapter: Option<u16>,
    pub(crate) priority: i32,
    pub(crate) input: u32,
    pub(crate) output: u32,
    pub(crate) text: Text,
}

impl Requests {
    pub(crate) fn new(scenario: &Scenario) -> Result<Requests, ScenarioError> {
        let mut all = Requests {
            asks: Vec::new(),
            classes: Vec::new(),
            texts: Texts::default(),
            parts: Vec::new(),
            stages: Vec::new(),
        };
        for (number, traffic) in scenario.traffic.iter().enumerate() {
            let class = Class::new(traffic, number)?;
            let maker = source::Maker { scenario, traffic, class: &class, number: number as u16 };
            maker.add(&mut all)?;
            all.classes.push(class);
        }
        if all.asks.is_empty() {
            return Err(ScenarioError::value("traffic: nobody comes"));
        }
        Ok(all)
    }
}

/// A class's own draws. The first has those of its seed alone.
fn draws(seed: Seed, name: &str, class: u16) -> Rng {
    match class {
        0 => seed.stream(name),
        n => seed.numbered(name, u64::from(n)),
    }
}
