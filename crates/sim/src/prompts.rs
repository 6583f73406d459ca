use crate::scenario::SharedPrefix;
use tailbound_clock::Rng;

/// The prompts of a scenario, and the order in which they are asked.
pub(crate) struct Prompts {
    prompts: Vec<Vec<u32>>,
    order: Vec<u32>,
}

impl Prompts {
    /// Tokens are numbers that no two groups or questions have in common; the order is drawn.
    pub(crate) fn new(of: &SharedPrefix, rng: &mut Rng) -> Prompts {
        let n = of.groups * of.prompts_per_group;
        let prompt = |i: u32| {
            let group = i / of.prompts_per_group;
            let own = of.groups + i;
            (0..of.system).map(|t| token(group, t)).chain((0..of.question).map(|t| token(own, t))).collect()
        };
        let mut order: Vec<u32> = (0..n).collect();
        rng.shuffle(&mut order);
        Prompts { prompts: (0..n).map(prompt).collect(), order }
    }

    /// The prompt of the plan's `item`-th request; after the last one they begin anew.
    pub(crate) fn of(&self, item: u32) -> &[u32] {
        &self.prompts[self.order[item as usize % self.order.len()] as usize]
    }
}

fn token(text: u32, place: u32) -> u32 {
    (text.wrapping_mul(0x9e37_79b9) ^ place.wrapping_mul(0x85eb_ca6b)) % 128_000
}
