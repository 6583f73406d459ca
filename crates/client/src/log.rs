use tailbound_clock::{Dur, Time};
use tailbound_os::TimerNoise;
use tailbound_record::StampSource;

/// What the client saw of itself during a run: everything a verdict on the load needs that is in no row.
#[derive(Clone, Debug, Default)]
pub struct RunLog {
    /// When the schedule began; `None` if the run stopped before it did (during warm-ups).
    pub origin: Option<Time>,
    /// When the first thread began to send.
    pub start: Time,
    /// When the last request had ended.
    pub end: Time,
    /// How late each request was taken up: from its due time to the moment just before its first byte was written, or just
    /// before its connect where it needed one. In the order of release within each loop.
    pub late: Vec<Late>,
    /// How late a thread that only sleeps was woken meanwhile.
    pub noise: TimerNoise,
    /// CPU time of each loop.
    pub loop_cpu: Vec<Dur>,
    /// CPU time of the whole process during the run.
    pub process_cpu: Dur,
    /// Who stamped the receives.
    pub stamps: StampSource,
    /// Reads that had no kernel stamp, or an impossible one.
    pub unstamped: u64,
    /// Reads of responses.
    pub reads: u64,
    /// How long after its kernel stamp each read was made: power-of-two buckets of microseconds, `[0]` under 1 µs, `[i]` from
    /// 2^(i−1) up to 2^i µs. Tells whether the reader kept up.
    pub read_delay: [u64; 24],
    /// How often the wall clock was set during the run.
    pub clock_steps: u32,
    /// Connections opened.
    pub connections: u64,
    /// Requests sent again because a kept-alive connection turned out closed.
    pub retries: u64,
    /// Whether the peer was seen to send without waiting for acknowledgements; only looked for with [`crate::Acks::Watched`].
    pub sends_at_once: bool,
    /// Descriptors this process may have.
    pub descriptors: u64,
    /// Local ports for connections to one address; `None` where the system does not say.
    pub ports: Option<u32>,
    /// Requests that failed for want of descriptors, ports or memory here.
    pub local_limit_hits: u64,
    /// The number of loops.
    pub loops: usize,
    /// Whether the threads ran at real-time priority.
    pub realtime: bool,
    /// What was asked for and not permitted (real time, pinning), as sentences.
    pub refused: Vec<String>,
}

/// One request's lateness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Its number in the plan.
    pub id: u32,
    /// From its due time to when it was taken up.
    pub by: Dur,
}

impl RunLog {
    /// The share of one core that the busiest loop used, 0 to 1; `None` for a run of no length.
    pub fn busiest_loop(&self) -> Option<f64> {
        let wall = self.end.since(self.start).secs();
        let most = self.loop_cpu.iter().max()?.secs();
        (wall > 0.0).then(|| most / wall)
    }

    pub(crate) fn count_delay(buckets: &mut [u64; 24], delay: Dur) {
        let us = delay.ns() / 1_000;
        let bucket = (64 - us.leading_zeros()) as usize;
        buckets[bucket.min(23)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_fall_into_powers_of_two() {
        let mut buckets = [0; 24];
        for us in [0, 1, 2, 3, 4, 1_000_000_000] {
            RunLog::count_delay(&mut buckets, Dur::from_us(us));
        }
        assert_eq!(buckets[..4], [1, 1, 2, 1]);
        assert_eq!(buckets[23], 1);
    }
}
