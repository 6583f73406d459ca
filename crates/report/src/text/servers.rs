//! What servers said of themselves.

use super::figures::{ms, own, percent, rate, title};
use super::wrap;
use crate::Run;
use std::fmt::Write;
use tailbound_record::server::{Buckets, Measure};
use tailbound_stats::servers::{Gap, Gauge, Server, Servers};

/// More are in the JSON.
const LISTED: usize = 4;
const S: f64 = 1e9;

pub(super) fn block(out: &mut String, run: &Run<'_>) {
    let Some(servers) = &run.extras.servers else { return };
    title(out, "The Server's Own View", '-');
    for server in servers.all.iter().take(LISTED) {
        one(out, server);
    }
    if servers.all.len() > LISTED {
        let _ = writeln!(out, "and {} more, which are in the JSON", servers.all.len() - LISTED);
    }
    ttft(out, servers);
}

fn one(out: &mut String, server: &Server) {
    let name = server.system.map_or("unknown", |system| system.name());
    own(out, "Metrics of:", Some(format!("{name}, {}", server.url)));
    let mut looks = server.answered.to_string();
    if server.missed > 0 {
        let _ = write!(looks, "  ({} not answered)", server.missed);
    }
    own(out, "Looked at, times:", Some(looks));
    if server.restarts > 0 {
        let word = format!("{}  (a restart, or several servers)", server.restarts);
        own(out, "Began to count anew, times:", Some(word));
    }
    let count = |v: f64| if v.fract() == 0.0 { format!("{v}") } else { format!("{v:.1}") };
    let mut gauge = |label: &str, measure: Measure, word: &dyn Fn(f64) -> String| {
        if let Some(Gauge { mean, max, .. }) = server.gauges.get(&measure) {
            own(out, label, Some(format!("{} / {}", word(*mean), word(*max))));
        }
    };
    let tenth = |v: f64| format!("{v:.1}");
    gauge("Requests running, mean / max:", Measure::Running, &count);
    gauge("Requests waiting, mean / max:", Measure::Waiting, &count);
    gauge("KV cache in use, mean / max:", Measure::KvUse, &percent);
    gauge("GPUs busy, mean / max:", Measure::GpuUse, &percent);
    gauge("GPU power, mean / max (W):", Measure::GpuPower, &tenth);
    gauge("Hottest GPU, mean / max (°C):", Measure::GpuTemperature, &tenth);
    gauge("GPU memory, mean / max (GiB):", Measure::GpuMemory, &|v| format!("{:.2}", v / 1_073_741_824.0));
    gauge("CPUs busy, mean / max:", Measure::CpuUse, &percent);
    let memory = server.gauges.get(&Measure::MemoryTotal).zip(server.gauges.get(&Measure::MemoryAvailable));
    if let Some((total, left)) = memory.filter(|(total, _)| total.max > 0.0) {
        own(out, "Memory in use, at most:", Some(percent(1.0 - left.min / total.max)));
    }
    let mut counted = |label: &str, value: Option<String>| {
        if value.is_some() {
            own(out, label, value);
        }
    };
    counted("Prompt tokens in its prefix cache:", server.prefix_hit_share().map(percent));
    counted("Drafted tokens it accepted:", server.acceptance_share().map(percent));
    counted("Preemptions:", server.growth.get(&Measure::Preemptions).copied().map(count));
    counted("Prompt tokens it took in (tok/s):", server.per_s(Measure::PromptTokens).map(rate));
    counted("Tokens it generated (tok/s):", server.per_s(Measure::GeneratedTokens).map(rate));
    counted("CPU of its process (cores):", server.per_s(Measure::ProcessCpu).map(rate));
    let energy = server.growth.get(&Measure::GpuEnergy).filter(|j| **j > 0.0);
    counted("Energy of its GPUs (kJ):", energy.map(|j| format!("{:.2}", j / 1e3)));
}

/// The server's times to first token beside those measured here.
fn ttft(out: &mut String, servers: &Servers) {
    let (Some(there), here) = (servers.ttft(), &servers.ttft_here) else { return };
    let word = |s: Option<f64>| s.map_or("n/a".to_owned(), |s| ms(s * S));
    let mean = format!("{} / {}", word(there.mean()), here.mean().map_or("n/a".to_owned(), ms));
    own(out, "TTFT mean, by it / here (ms):", Some(mean));
    for p in [50.0, 99.0] {
        let measured = here.nearest_rank(p).map_or("n/a".to_owned(), ms);
        own(out, &format!("TTFT p{p}, by it / here (ms):"), Some(format!("{} / {measured}", range(&there, p))));
    }
    if let Some(sentence) = sentence(servers) {
        wrap::paragraph(out, "  ", "  ", &sentence);
    }
}

/// Between which bounds the server's percentile lies, ms.
pub(crate) fn range(there: &Buckets, p: f64) -> String {
    let word = |s: f64| {
        let ms = s * 1e3;
        if ms >= 1.0 { format!("{ms:.0}") } else { format!("{ms}") }
    };
    match there.percentile(p) {
        None => "n/a".to_owned(),
        Some((low, high)) if high.is_infinite() => format!("over {}", word(low)),
        Some((low, high)) => format!("{} to {}", word(low), word(high)),
    }
}

/// What the difference means.
pub(crate) fn sentence(servers: &Servers) -> Option<String> {
    let by = |s: f64| format!("{} ms", ms(s * S));
    Some(match servers.gap()? {
        Gap::OtherRequests(there, here) if there > here => format!(
            "The server counted {there} first tokens, and {here} came here: others use it too, and its figures are theirs as well."
        ),
        Gap::OtherRequests(there, here) => format!(
            "The server counted {there} first tokens, and {here} came here: its metrics cover only a part of what answered."
        ),
        Gap::LongerHere(s) => format!(
            "Clients wait {} longer for a first token than the server's own clock says: in the network, in its HTTP and tokenising \
             in front of that clock, or on the way out.",
            by(s)
        ),
        Gap::LongerThere(s) => format!(
            "The server's own clock says {} more than was measured here: it counts from before the request was written, or other requests.",
            by(s)
        ),
        Gap::Close(_) => "The server's own clock agrees with what was measured here.".to_owned(),
    })
}
