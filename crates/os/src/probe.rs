use crate::{clock, sched, sleep};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use tailbound_clock::{Dur, Time};

/// How late a thread that does nothing but sleep was woken: the machine's own noise, below which no client can measure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimerNoise {
    /// Every lateness, in ns, ascending.
    pub sorted_ns: Vec<u64>,
}

impl TimerNoise {
    /// The nearest-rank percentile (`p` from 0 to 1); `None` without samples.
    pub fn percentile(&self, p: f64) -> Option<Dur> {
        let n = self.sorted_ns.len();
        let rank = (p * n as f64).ceil() as usize;
        self.sorted_ns.get(rank.clamp(1, n.max(1)) - 1).map(|&ns| Dur(ns))
    }

    /// The largest; `None` without samples.
    pub fn max(&self) -> Option<Dur> {
        self.sorted_ns.last().map(|&ns| Dur(ns))
    }
}

/// A thread that sleeps for short, exact times and notes how late it was woken.
pub struct TimerProbe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<TimerNoise>,
}

/// Keeps a probe's memory bounded: one sample per 10 ms for an hour.
const MOST: usize = 360_000;

impl TimerProbe {
    /// Starts one that wakes every `every`, on `core` if given, at real-time `priority` if given (and permitted): like the
    /// threads whose noise it stands for.
    pub fn start(every: Dur, core: Option<usize>, priority: Option<u8>) -> std::io::Result<TimerProbe> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread =
            std::thread::Builder::new().name("timer-probe".into()).stack_size(128 * 1024).spawn(move || {
                sleep::exact_timers();
                if let Some(core) = core {
                    let _ = sched::pin_to(core);
                }
                if let Some(priority) = priority {
                    let _ = sched::realtime(priority);
                }
                watch(every, &seen)
            })?;
        Ok(TimerProbe { stop, thread })
    }

    /// Ends it (within one period) and returns what it saw.
    pub fn finish(self) -> TimerNoise {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn watch(every: Dur, stop: &AtomicBool) -> TimerNoise {
    let mut late = Vec::new();
    let mut due = clock::now() + every;
    while !stop.load(Ordering::Relaxed) && late.len() < MOST {
        sleep::until(due);
        let now: Time = clock::now();
        late.push(now.since(due).ns());
        // From now, not from `due`: after a long stall the probe must not pay back in a burst of zeros.
        due = now + every;
    }
    late.sort_unstable();
    TimerNoise { sorted_ns: late }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_collects_until_it_is_stopped() {
        let probe = TimerProbe::start(Dur::from_us(200), None, None).unwrap();
        sleep::until(clock::now() + Dur::from_ms(20));
        let noise = probe.finish();
        assert!(!noise.sorted_ns.is_empty());
        assert!(noise.sorted_ns.is_sorted());
        assert_eq!(noise.percentile(1.0), noise.max());
        assert_eq!(TimerNoise::default().percentile(0.5), None);
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let noise = TimerNoise { sorted_ns: (1..=100).collect() };
        assert_eq!(noise.percentile(0.5), Some(Dur(50)));
        assert_eq!(noise.percentile(0.99), Some(Dur(99)));
        assert_eq!(noise.percentile(0.0), Some(Dur(1)));
    }
}
