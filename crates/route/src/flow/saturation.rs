use crate::endpoint::Role;
use crate::table::Table;
use tailbound_clock::{Dur, Time};

/// How full the pool is: 1 is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Detector {
    /// `utilization-detector`: the mean over replicas of the larger of queue and KV use, each relative to its threshold.
    /// A replica whose signals are old counts as full; if all are old, nothing is known, and the pool counts as empty.
    Utilization { queue: f64, kv: f64, stale: Dur },
    /// `concurrency-detector`: what is in flight, relative to what may be.
    Concurrency { limit: f64, tokens: bool },
}

impl Detector {
    /// With `split`, replicas that prefill and those that decode are full or not apart from each other: the fuller counts.
    pub(crate) fn saturation(&self, now: Time, table: &Table, split: bool) -> f64 {
        if table.live.is_empty() {
            return 1.0;
        }
        if !split {
            return self.of(now, table, |_| true).unwrap_or(0.0);
        }
        let decodes = |s: u32| table.roles[s as usize].has(Role::Decode);
        let prefill = self.of(now, table, |s| table.roles[s as usize].has(Role::Prefill) && !decodes(s));
        let decode = self.of(now, table, decodes);
        prefill.into_iter().chain(decode).reduce(f64::max).unwrap_or(0.0)
    }

    /// `None` where nothing is known.
    fn of(&self, now: Time, table: &Table, member: impl Fn(u32) -> bool) -> Option<f64> {
        let members = table.live.iter().copied().filter(|s| member(*s));
        let (mut sum, mut n, mut known) = (0.0, 0u32, 0u32);
        for slot in members {
            let s = slot as usize;
            n += 1;
            match self {
                Detector::Utilization { stale, .. } if table.is_stale(now, slot, *stale) => sum += 1.0,
                Detector::Utilization { queue, kv, .. } => {
                    known += 1;
                    sum += (table.queue[s] / queue).max(table.kv_now[s] / kv);
                }
                Detector::Concurrency { limit, tokens } => {
                    known += 1;
                    let load = &table.load[s];
                    sum += if *tokens { load.kv_tokens as f64 } else { f64::from(load.requests) } / limit;
                }
            }
        }
        (known > 0).then(|| sum / f64::from(n))
    }
}
