use tailbound_clock::Dur;

/// How a replica serves LoRA adapters (vLLM's `max_loras` and `max_cpu_loras`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lora {
    /// Adapters on the GPU, and so most different ones in a step.
    pub max_loras: u32,
    /// Adapters kept in host memory; at least `max_loras`.
    pub max_cpu_loras: u32,
    /// Bringing one from host memory to the GPU; the step that needs it waits.
    pub load: Dur,
    /// Reading one from disk into host memory, before that.
    pub fetch: Dur,
}

/// Which adapters run, and which are at hand.
#[derive(Debug, Default)]
pub(crate) struct Adapters {
    /// Those of running sequences, with how many each has.
    active: Vec<(u32, u32)>,
    /// On the GPU, the longest unused in front.
    slots: Vec<u32>,
    /// In host memory, the longest unused in front.
    host: Vec<u32>,
    /// Times one was brought to the GPU.
    pub(crate) loads: u64,
}

impl Adapters {
    /// Whether a sequence with this adapter may join those that run.
    pub(crate) fn has_room(&self, lora: &Lora, adapter: u32) -> bool {
        self.active.iter().any(|(a, _)| *a == adapter) || self.active.len() < lora.max_loras as usize
    }

    /// A sequence with this adapter joins; how much longer the step takes for it.
    pub(crate) fn join(&mut self, lora: &Lora, adapter: u32) -> Dur {
        match self.active.iter_mut().find(|(a, _)| *a == adapter) {
            Some((_, count)) => *count += 1,
            None => self.active.push((adapter, 1)),
        }
        if use_again(&mut self.slots, adapter) {
            return Dur::ZERO;
        }
        let active = &self.active;
        make_room(&mut self.slots, lora.max_loras, |a| !active.iter().any(|(other, _)| *other == a));
        self.slots.push(adapter);
        self.loads += 1;
        if use_again(&mut self.host, adapter) {
            return lora.load;
        }
        make_room(&mut self.host, lora.max_cpu_loras, |_| true);
        self.host.push(adapter);
        lora.fetch + lora.load
    }

    /// A sequence with this adapter no longer runs.
    pub(crate) fn leave(&mut self, adapter: u32) {
        let Some(at) = self.active.iter().position(|(a, _)| *a == adapter) else { return };
        self.active[at].1 -= 1;
        if self.active[at].1 == 0 {
            self.active.remove(at);
        }
    }

    /// Adapters of running sequences.
    pub(crate) fn active(&self) -> impl Iterator<Item = u32> {
        self.active.iter().map(|(a, _)| *a)
    }
}

fn use_again(order: &mut Vec<u32>, adapter: u32) -> bool {
    let Some(at) = order.iter().position(|a| *a == adapter) else { return false };
    order.remove(at);
    order.push(adapter);
    true
}

/// Room for one more: the longest unused that may go does.
fn make_room(order: &mut Vec<u32>, most: u32, may_go: impl Fn(u32) -> bool) {
    if order.len() < most as usize {
        return;
    }
    if let Some(at) = order.iter().position(|a| may_go(*a)) {
        order.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LORA: Lora = Lora { max_loras: 2, max_cpu_loras: 3, load: Dur::from_ms(10), fetch: Dur::from_ms(100) };

    #[test]
    fn an_adapter_costs_its_way_up_once_and_the_longest_unused_goes() {
        let mut a = Adapters::default();
        assert_eq!(a.join(&LORA, 1), Dur::from_ms(110));
        assert_eq!(a.join(&LORA, 1), Dur::ZERO);
        assert_eq!(a.join(&LORA, 2), Dur::from_ms(110));
        assert!(!a.has_room(&LORA, 3) && a.has_room(&LORA, 2));
        a.leave(2);
        assert!(a.has_room(&LORA, 3));
        // 2 is not running: it goes, though 1 was brought first.
        assert_eq!(a.join(&LORA, 3), Dur::from_ms(110));
        a.leave(3);
        assert_eq!(a.join(&LORA, 2), Dur::from_ms(10), "it is still in host memory");
        a.leave(1); // one of two still runs with it
        assert!(!a.has_room(&LORA, 4));
        assert_eq!(a.active().collect::<Vec<_>>(), [1, 2]);
    }
}
