//! What servers said of themselves.

use super::own::number;
use crate::json::Detail;
use serde_json::{Map, Value, json};
use tailbound_record::server::{Buckets, Measure};
use tailbound_stats::Dist;
use tailbound_stats::servers::{Gap, Server, Servers};

pub(super) fn value(servers: &Servers, detail: Detail) -> Value {
    json!({
        "endpoints": servers.all.iter().map(|server| one(server, detail)).collect::<Value>(),
        "ttft_s": ttft(servers),
    })
}

fn one(server: &Server, detail: Detail) -> Value {
    let named = |(measure, value): (&Measure, Value)| (measure.name().to_owned(), value);
    let gauges = server.gauges.iter().map(|(m, g)| (m, json!({ "mean": g.mean, "min": g.min, "max": g.max })));
    let counter = |(m, growth): (&Measure, &f64)| {
        let per_s = server.per_s(*m);
        (m.name().to_owned(), json!({ "growth": growth, "per_s": per_s }))
    };
    let mut value = json!({
        "url": server.url,
        "system": server.system.map(|system| system.name()),
        "scrapes": server.answered,
        "missed": server.missed,
        "restarts": server.restarts,
        "span_s": server.span.secs(),
        "gauges": gauges.map(named).collect::<Map<_, _>>(),
        "counters": server.growth.iter().map(counter).collect::<Map<_, _>>(),
        "prefix_hit_share": server.prefix_hit_share(),
        "acceptance_share": server.acceptance_share(),
        "ttft_s": server.ttft.as_ref().map(buckets),
    });
    if detail == Detail::PerRequest {
        value["over_time"] = over_time(server);
    }
    value
}

/// Gauges at every look, with null where one wasn't stated.
fn over_time(server: &Server) -> Value {
    let glances = &server.glances;
    let mut columns = Map::new();
    columns.insert("at_s".into(), glances.iter().map(|g| json!(g.at_s)).collect());
    for measure in Measure::ALL.into_iter().filter(|m| glances.iter().any(|g| g.gauges.contains_key(m))) {
        columns.insert(measure.name().into(), glances.iter().map(|g| json!(g.gauges.get(&measure))).collect());
    }
    columns.into()
}

fn buckets(b: &Buckets) -> Value {
    json!({ "bounds": b.bounds, "at_most": b.counts, "count": b.count, "sum": b.sum })
}

/// The server's times to first token beside those measured here.
fn ttft(servers: &Servers) -> Value {
    let Some(there) = servers.ttft() else { return Value::Null };
    let within = |p: f64| there.percentile(p).map(|(low, high)| [number(low), number(high)]);
    let here = |ns: Option<f64>| ns.map(|ns| ns / 1e9);
    let d: &Dist = &servers.ttft_here;
    let gap = servers.gap().map(|gap| match gap {
        Gap::OtherRequests(..) => "other_requests",
        Gap::LongerHere(_) => "longer_here",
        Gap::LongerThere(_) => "longer_there",
        Gap::Close(_) => "close",
    });
    json!({
        "server": { "n": there.count, "mean": there.mean(), "p50_between": within(50.0), "p99_between": within(99.0) },
        "here": { "n": d.n(), "mean": here(d.mean()), "p50": here(d.nearest_rank(50.0)), "p99": here(d.nearest_rank(99.0)) },
        "gap": gap,
    })
}
