use tailbound_clock::Dur;

/// What a replica does before it serves its first request, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Startup {
    /// Process, imports, connections between GPUs.
    pub process: Dur,
    /// Bytes of weights each GPU reads.
    pub weight_bytes: f64,
    /// Bytes per second at which it reads them.
    pub rate: f64,
    /// Compiling the model (little, if compiled before on that machine).
    pub compile: Dur,
    /// Finding out how much memory is left for the KV cache, and capturing the graphs.
    pub warm_up: Dur,
}

impl Startup {
    /// From start to first request.
    pub fn time(&self) -> Dur {
        self.process + Dur::from_secs_f64(self.weight_bytes / self.rate) + self.compile + self.warm_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_parts_follow_on_each_other() {
        let startup = Startup {
            process: Dur::from_secs(10),
            weight_bytes: 16e9,
            rate: 2e9,
            compile: Dur::from_secs(30),
            warm_up: Dur::from_secs(12),
        };
        assert_eq!(startup.time(), Dur::from_secs(60));
    }
}
