//! Another configuration while requests wait and are in flight.

use crate::driver::*;
use tailbound_clock::Seed;
use tailbound_route::*;

const FLOW: &str = "featureGates: [flowControl]
plugins:
- {type: queue-scorer}
- {type: concurrency-detector, parameters: {maxConcurrency: LIMIT}}
schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]
flowControl:
  saturationDetector: {pluginRef: concurrency-detector}
  maxRequests: MOST
";

fn flow(limit: u32, most: u32) -> Config {
    Config::new(yaml(&FLOW.replace("LIMIT", &limit.to_string()).replace("MOST", &most.to_string())), Seed(7))
}

fn reload(pool: &mut Pool, config: Config) -> Vec<Effect> {
    let mut out = Vec::new();
    pool.router.reload(pool.now, config, &mut out);
    out
}

#[test]
fn what_is_in_flight_stays_and_is_given_back_once() {
    let mut pool = Pool::new(policy("queue-scorer"), 2);
    let ids: Vec<RequestId> = (0..5).map(|_| pool.ask(100).0).collect();
    assert_eq!(reload(&mut pool, Config::new(policy("least-load-picker"), Seed(7))), []);
    assert_eq!(pool.load(0).requests + pool.load(1).requests, 5);
    let before = [pool.load(0).requests, pool.load(1).requests];
    assert_eq!(target(&pool.ask(100).1), u32::from(before[1] < before[0]), "by the new policy");
    ids.into_iter().for_each(|id| drop(pool.end(id)));
    assert_eq!(pool.load(0).requests + pool.load(1).requests, 1);
}

#[test]
fn who_waits_keeps_its_turn_and_goes_when_there_is_more_room() {
    let mut pool = Pool::with(flow(1, 10), 1);
    let ids: Vec<RequestId> = (0..5).map(|_| pool.ask(10).0).collect();
    assert_eq!(pool.router.waiting().requests, 4);
    assert_eq!(sent(&reload(&mut pool, flow(3, 10))), ids[1..3]);
    assert_eq!(pool.router.waiting().requests, 2);
    // Less room: who came last is refused.
    let effects = reload(&mut pool, flow(3, 1));
    assert_eq!(effects, [Effect::Refuse(ids[4], Refusal::QueueFull)]);
    // No queue any more: nobody waits.
    assert_eq!(sent(&reload(&mut pool, Config::new(policy("queue-scorer"), Seed(7)))), ids[3..4]);
    assert_eq!(pool.load(0).requests, 4);
}

#[test]
fn an_index_that_is_to_be_as_it_was_is_kept_and_another_is_learnt_anew() {
    let approx = |block: u32| {
        yaml(&format!(
            "plugins:
- {{type: approx-prefix-cache-producer, parameters: {{autoTune: false, blockSizeTokens: {block}}}}}
- {{type: prefix-cache-scorer}}
schedulingProfiles: [{{name: default, plugins: [{{pluginRef: prefix-cache-scorer}}]}}]
"
        ))
    };
    let mut pool = Pool::new(approx(16), 4);
    let prompt: Vec<u32> = (0..160).collect();
    let home = target(&pool.prompt(&prompt).1);
    reload(&mut pool, Config::new(approx(16), Seed(7)));
    let (id, effects) = pool.prompt(&prompt);
    assert_eq!((target(&effects), pool.router.explain(id).unwrap().cached), (home, 160));
    reload(&mut pool, Config::new(approx(8), Seed(7)));
    assert_eq!(pool.router.indexed(), (0, 0));
    let (id, _) = pool.prompt(&prompt);
    assert_eq!(pool.router.explain(id).unwrap().cached, 0);
    assert_eq!(pool.router.indexed(), (20, 20));
}

#[test]
fn other_figures_and_labels_are_read() {
    let filter = |name: &str| {
        yaml(&format!(
            "plugins:
- type: endpoint-attribute-filter
  parameters: {{attribute: {name}, algorithm: {{type: threshold, threshold: {{operator: LessThan, value: 5}}}}}}
schedulingProfiles: [{{name: default, plugins: [{{pluginRef: endpoint-attribute-filter}}]}}]
"
        ))
    };
    let mut pool = Pool::new(filter("a"), 2);
    let now = pool.now;
    for id in 0..2 {
        let attributes: &[(&str, f64)] = &[("a", f64::from(9 * id)), ("b", f64::from(9 - 9 * id))];
        pool.hear(id, Signals { attributes, ..Signals::idle(now) });
    }
    assert_eq!(target(&pool.ask(10).1), 0);
    reload(&mut pool, Config::new(filter("b"), Seed(7)));
    for id in 0..2 {
        let attributes: &[(&str, f64)] = &[("a", f64::from(9 * id)), ("b", f64::from(9 - 9 * id))];
        pool.hear(id, Signals { attributes, ..Signals::idle(now) });
    }
    assert_eq!(target(&pool.ask(10).1), 1);
}
