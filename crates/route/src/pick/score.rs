use super::affinity::Level;
use super::{Case, Memory, Scratch};
use crate::names::Key;
use crate::predict::Prediction;

/// A scorer: a number from 0 to 1 for each candidate, 1 the best. Names, formulas and defaults are those of the published
/// endpoint picker.
#[derive(Clone, Debug)]
pub(crate) enum Scorer {
    /// `queue-scorer`: linear between the shortest and the longest queue.
    Queue,
    /// `running-requests-size-scorer`: the same, of requests in the batch and sent since it was counted.
    Running,
    /// `kv-cache-utilization-scorer`: what is free.
    KvUse,
    /// `load-aware-scorer`: a half if nothing waits, falling to 0 at the threshold.
    LoadAware { threshold: f64 },
    /// `active-request-scorer`: our own requests in flight.
    ActiveRequest { idle: u32, max_busy: f64 },
    /// `token-load-scorer`: prompt tokens still to be computed there, this request's too.
    TokenLoad { capacity: f64 },
    /// `lora-affinity-scorer`: loaded 1, room left 0.8, waited for 0.6.
    LoraAffinity,
    /// `session-affinity-scorer`.
    Session,
    /// `context-length-aware`.
    ContextLength { label: usize },
    /// `no-hit-lru-scorer`: where a cold request went longest ago.
    NoHitLru { producer: Option<usize> },
    /// `prefix-cache-scorer`: the share of the prompt's blocks that are there.
    Prefix { producer: usize },
    /// `mm-embeddings-cache-scorer`: the share of the media that are there.
    Media,
    /// `endpoint-attribute-scorer`.
    Attribute { attribute: usize, lower_is_better: bool, range: Option<Range> },
    /// `topology-affinity-scorer`: nearness to the replica chosen before.
    Topology,
    /// `latency-scorer`.
    Latency(LatencyScore),
}

/// From what to what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Range {
    fn of(values: impl Iterator<Item = f64>) -> Range {
        let start = Range { min: f64::INFINITY, max: f64::NEG_INFINITY };
        values.fold(start, |r, v| Range { min: r.min.min(v), max: r.max.max(v) })
    }

    /// The same, four at a time: one after the other, a thousand comparisons wait for each other.
    pub(super) fn over(values: &[f64]) -> Range {
        let mut low = [f64::INFINITY; 4];
        let mut high = [f64::NEG_INFINITY; 4];
        let mut fours = values.chunks_exact(4);
        for four in &mut fours {
            for i in 0..4 {
                low[i] = if four[i] < low[i] { four[i] } else { low[i] };
                high[i] = if four[i] > high[i] { four[i] } else { high[i] };
            }
        }
        let rest = Range::of(fours.remainder().iter().copied());
        let (low, high) = (Range::of(low.into_iter()), Range::of(high.into_iter()));
        Range { min: low.min.min(rest.min), max: high.max.max(rest.max) }
    }

    /// 0 at the bottom, 1 at the top, `flat` where there is no height.
    fn rise(self, value: f64, flat: f64) -> f64 {
        if self.max > self.min { (value - self.min) / (self.max - self.min) } else { flat }
    }
}

/// By what is left of the SLO.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatencyScore {
    pub(crate) ttft_weight: f64,
    pub(crate) tpot_weight: f64,
    /// Prefer the most headroom; otherwise the least that is enough, which packs.
    pub(crate) most: bool,
}

impl Scorer {
    /// Fills `out` with a score for each candidate, and adds them to `total`, times `weight`. `all`: the candidates are the
    /// table's slots, in their order.
    ///
    /// The few scorers that nearly everybody uses do both at once: over a thousand replicas, time is what goes through the
    /// memory.
    pub(super) fn add(&self, weight: f64, case: &Case, memory: &Memory, scratch: &mut Scratch, all: bool, nth: usize) {
        let Scratch { candidates, total, parts, .. } = scratch;
        let out = &mut parts[nth];
        out.clear();
        let t = case.table;
        match self {
            Scorer::Queue if all => return falling_all(&t.queue[..candidates.len()], weight, total, out),
            Scorer::Running if all => return falling_all(&t.running_now[..candidates.len()], weight, total, out),
            Scorer::KvUse if all => {
                return rate_all(&t.kv_now[..candidates.len()], |use_| 1.0 - use_, weight, total, out);
            }
            Scorer::Prefix { producer } if all => {
                let matches = &case.matches[*producer];
                out.resize(candidates.len(), 0.0);
                if !matches.any() {
                    return;
                }
                let scale = 1.0 / f64::from(matches.total());
                for slot in matches.touched() {
                    // Not all slots found there need still be in use.
                    let Some(score) = out.get_mut(*slot as usize) else { continue };
                    *score = (matches.weighted(*slot) * scale).clamp(0.0, 1.0);
                    total[*slot as usize] += *score * weight;
                }
                return;
            }
            _ => self.rate(case, memory, candidates, all, out),
        }
        for (total, score) in total.iter_mut().zip(out) {
            *score = score.clamp(0.0, 1.0);
            *total += *score * weight;
        }
    }

    fn rate(&self, case: &Case, memory: &Memory, candidates: &[u32], all: bool, out: &mut Vec<f64>) {
        let t = case.table;
        let each = candidates.iter().map(|s| *s as usize);
        match self {
            Scorer::Queue => falling(&t.queue, candidates, all, out),
            Scorer::Running => falling(&t.running_now, candidates, all, out),
            Scorer::KvUse => {
                take(&t.kv_now, candidates, all, out);
                out.iter_mut().for_each(|v| *v = 1.0 - *v);
            }
            Scorer::LoadAware { threshold } => {
                out.extend(each.map(|s| 0.5 * (1.0 - t.queue[s].min(*threshold) / threshold)));
            }
            Scorer::ActiveRequest { idle, max_busy } => {
                let most = each.clone().map(|s| t.load[s].requests).max().unwrap_or(0);
                out.extend(each.map(|s| match t.load[s].requests {
                    n if n <= *idle => 1.0,
                    n => f64::from(most - n) / f64::from(most) * max_busy,
                }));
            }
            Scorer::TokenLoad { capacity } => out.extend(candidates.iter().map(|s| {
                let tokens = t.load[*s as usize].prefill_tokens + case.uncached(*s);
                1.0 - (tokens as f64 / capacity).min(1.0)
            })),
            Scorer::LoraAffinity => out.extend(each.map(|s| lora(&t.lora[s], case.request.model))),
            Scorer::Session => {
                let sticky = case.request.sticky.and_then(|id| t.slot(id));
                out.extend(candidates.iter().map(|s| f64::from(Some(*s) == sticky)));
            }
            Scorer::ContextLength { label } => {
                let tokens = f64::from(case.request.prompt_tokens);
                out.extend(each.map(|s| t.ranges[s][*label].map_or(0.5, |(min, max)| in_range(tokens, min, max))));
            }
            Scorer::NoHitLru { producer } => {
                if producer.is_some_and(|p| case.matches[p].any()) {
                    return out.extend(candidates.iter().map(|_| 0.5));
                }
                longest_ago(memory, candidates, out);
            }
            Scorer::Prefix { producer } => {
                let matches = &case.matches[*producer];
                if !matches.any() {
                    return out.resize(candidates.len(), 0.0);
                }
                take(matches.column(), candidates, all, out);
                let scale = 1.0 / f64::from(matches.total());
                out.iter_mut().for_each(|v| *v *= scale);
            }
            Scorer::Media => out.extend(candidates.iter().map(|s| case.media.ratio(*s))),
            Scorer::Attribute { attribute, lower_is_better, range } => {
                let value = |s: usize| t.attributes[s][*attribute];
                let range = range.unwrap_or_else(|| Range::of(each.clone().map(value).filter(|v| !v.is_nan())));
                out.extend(each.map(value).map(|v| match v {
                    v if v.is_nan() => 0.0,
                    _ if range.max <= range.min => 1.0,
                    v if *lower_is_better => 1.0 - range.rise(v, 0.0),
                    v => range.rise(v, 1.0),
                }));
            }
            Scorer::Topology => match case.peer {
                Some(peer) => {
                    let peer = &t.info[peer as usize];
                    out.extend(each.map(|s| Level::between(&t.info[s], peer).score()));
                }
                None => out.extend(each.map(|_| 0.0)),
            },
            Scorer::Latency(score) => score.rate(case, candidates, out),
        }
    }
}

/// [`falling`] of a whole column.
fn falling_all(column: &[f64], weight: f64, total: &mut [f64], out: &mut Vec<f64>) {
    let range = Range::over(column);
    if range.max <= range.min {
        return rate_all(column, |_| 1.0, weight, total, out);
    }
    let scale = 1.0 / (range.max - range.min);
    rate_all(column, |v| (range.max - v) * scale, weight, total, out);
}

fn rate_all(column: &[f64], of: impl Fn(f64) -> f64, weight: f64, total: &mut [f64], out: &mut Vec<f64>) {
    out.extend(column.iter().map(|v| of(*v).clamp(0.0, 1.0)));
    for (total, score) in total.iter_mut().zip(out) {
        *total += *score * weight;
    }
}

/// (max − x) / (max − min), 1 where all are alike.
fn falling(column: &[f64], candidates: &[u32], all: bool, out: &mut Vec<f64>) {
    take(column, candidates, all, out);
    let range = Range::over(out);
    if range.max <= range.min {
        return out.fill(1.0);
    }
    let scale = 1.0 / (range.max - range.min);
    out.iter_mut().for_each(|v| *v = (range.max - *v) * scale);
}

/// The candidates' figures.
fn take(column: &[f64], candidates: &[u32], all: bool, out: &mut Vec<f64>) {
    if all {
        out.extend_from_slice(&column[..candidates.len()]);
    } else {
        out.extend(candidates.iter().map(|s| column[*s as usize]));
    }
}

fn lora(state: &crate::table::LoraState, model: Key) -> f64 {
    if state.running.contains(&model) {
        return 1.0;
    }
    if state.running.len() + state.waiting.len() < state.max as usize {
        return 0.8;
    }
    if state.waiting.contains(&model) { 0.6 } else { 0.0 }
}

/// In (0.3, 1] inside the range, the tighter and the more headroom the better; in [0, 0.3) outside, the nearer the better.
fn in_range(tokens: f64, min: u64, max: u64) -> f64 {
    let (min, max) = (min as f64, max as f64);
    if tokens > max {
        return 0.3 / (1.0 + (tokens - max) / 1000.0);
    }
    if tokens < min {
        return 0.3 / (1.0 + (min - tokens) / 1000.0);
    }
    let width = max - min;
    if width == 0.0 {
        return 1.0;
    }
    let raw = 0.7 / (1.0 + width / 10_000.0) + 0.3 * (max - tokens) / width;
    0.3 + 0.7 * raw
}

/// 1 − rank/(n − 1): those never used first, all alike, then by how long ago.
fn longest_ago(memory: &Memory, candidates: &[u32], out: &mut Vec<f64>) {
    let n = candidates.len();
    out.extend(candidates.iter().map(|_| 1.0));
    if n < 2 {
        return;
    }
    let used = memory.cold.iter().rev().filter_map(|slot| candidates.iter().position(|s| s == slot));
    let mut rank = n - 1;
    for place in used {
        out[place] = 1.0 - rank as f64 / (n - 1) as f64;
        if rank == 0 {
            return;
        }
        rank -= 1;
    }
}

impl LatencyScore {
    /// Candidates that keep the SLO stand above those that don't, who are ranked by what they miss: an idle one first, then
    /// only TPOT, only TTFT, both. Without predictions: KV use, queue and prefix in equal parts.
    fn rate(&self, case: &Case, candidates: &[u32], out: &mut Vec<f64>) {
        let t = case.table;
        let predicted = |s: &u32| case.forecast.of(*s);
        if candidates.iter().any(|s| predicted(s).is_none()) {
            falling(&t.queue, candidates, false, out);
            for (score, s) in out.iter_mut().zip(candidates) {
                let prefix = case.matches.first().map_or(0.0, |m| m.ratio(*s));
                *score = (*score + 1.0 - t.kv_now[*s as usize] + prefix) / 3.0;
            }
            return;
        }
        let good = |p: &Prediction| p.headroom_ttft_ms >= 0.0 && p.headroom_tpot_ms >= 0.0;
        let range = |positive: bool, of: fn(&Prediction) -> f64| {
            Range::of(candidates.iter().filter_map(predicted).filter(|p| good(p) == positive).map(|p| of(&p)))
        };
        let spans = [true, false].map(|p| [range(p, |p| p.headroom_ttft_ms), range(p, |p| p.headroom_tpot_ms)]);
        out.extend(candidates.iter().map(|s| {
            let Some(p) = predicted(s) else { return 0.0 };
            let [ttft, tpot] = spans[usize::from(!good(&p))];
            let weights = self.ttft_weight + self.tpot_weight;
            let room = (self.ttft_weight * ttft.rise(p.headroom_ttft_ms, 1.0)
                + self.tpot_weight * tpot.rise(p.headroom_tpot_ms, 1.0))
                / weights;
            if good(&p) {
                return 0.5 + 0.5 * if self.most { room } else { 1.0 - room };
            }
            let tier = match (t.load[*s as usize].requests == 0, p.headroom_ttft_ms < 0.0, p.headroom_tpot_ms < 0.0) {
                (true, ..) => 0.375,
                (_, false, true) => 0.25,
                (_, true, false) => 0.125,
                _ => 0.0,
            };
            tier + 0.12 * room
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_out_of_range_fallback_never_outscores_a_match() {
        let worst_match = in_range(1_000_000.0, 0, 1_000_000);
        assert!(worst_match > 0.3 && in_range(8193.0, 0, 8192) < 0.3);
        assert!(in_range(9000.0, 0, 8192) > in_range(9000.0, 0, 2048), "the nearer range is better");
        assert!(in_range(1000.0, 0, 2048) > in_range(1000.0, 0, 131_072), "the tighter range is better");
    }
}
