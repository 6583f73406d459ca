//! Names that stand for other models.

use crate::driver::*;
use tailbound_clock::Seed;
use tailbound_route::*;

fn pool(rules: &str) -> Pool {
    let rewrite: Rewrite = serde_saphyr::from_str(rules).unwrap();
    Pool::with(Config { rewrites: vec![rewrite], ..Config::new(policy("queue-scorer"), Seed(11)) }, 2)
}

const ROLLOUT: &str = "
poolRef: {name: p}
rules:
- matches: [{model: {type: Exact, value: chat}}]
  targets: [{weight: 90, modelRewrite: chat-v1}, {weight: 10, modelRewrite: chat-v2}]
- targets: [{modelRewrite: fallback-a}, {modelRewrite: fallback-b}]
";

fn model(pool: &mut Pool, model: &str, session: Option<&str>) -> Option<String> {
    let id = pool.name();
    let (id, effects) = pool.send(Arrival { id, session, model, ..arrival(&[1]) });
    pool.end(id);
    let Effect::Dispatch(d) = &effects[0] else { panic!("{effects:?}") };
    d.model.as_deref().map(str::to_owned)
}

/// Within four standard deviations of a binomial of 10,000 at a tenth.
fn within(n: usize) -> bool {
    (880..=1120).contains(&n)
}

#[test]
fn a_rollout_has_its_share_with_and_without_sessions() {
    let mut pool = pool(ROLLOUT);
    let v2 = |pool: &mut Pool, session: &dyn Fn(u32) -> Option<String>| {
        (0..10_000).filter(|i| model(pool, "chat", session(*i).as_deref()).as_deref() == Some("chat-v2")).count()
    };
    let anonymous = v2(&mut pool, &|_| None);
    assert!(within(anonymous), "{anonymous}");
    let sessions = v2(&mut pool, &|i| Some(format!("session-{i}")));
    assert!(within(sessions), "{sessions}");
}

#[test]
fn a_session_sticks_to_its_version() {
    let mut pool = pool(ROLLOUT);
    for i in 0..50 {
        let session = format!("user {i}");
        let first = model(&mut pool, "chat", Some(&session));
        assert!((0..5).all(|_| model(&mut pool, "chat", Some(&session)) == first));
    }
}

#[test]
fn exact_names_win_over_the_rest_and_the_rest_is_even() {
    let mut pool = pool(ROLLOUT);
    let a = (0..1000).filter(|_| model(&mut pool, "anything", None).as_deref() == Some("fallback-a")).count();
    assert!((430..570).contains(&a), "{a}");
    let mut none = self::pool("{rules: [{matches: [{model: {value: chat}}], targets: [{modelRewrite: x}]}]}");
    assert_eq!(model(&mut none, "other", None), None, "what no rule names stays as it is");
}

#[test]
fn a_header_names_the_model_before_the_rules_do() {
    let mut pool = pool("{rules: [{matches: [{model: {value: chat}}], targets: [{modelRewrite: chat-v9}]}]}");
    let id = pool.name();
    let (_, effects) = pool.send(Arrival { id, model_override: Some("chat"), model: "other", ..arrival(&[1]) });
    let Effect::Dispatch(d) = &effects[0] else { panic!("{effects:?}") };
    assert_eq!(d.model.as_deref(), Some("chat-v9"));
    let id = pool.name();
    let (_, effects) = pool.send(Arrival { id, model_override: Some("direct"), model: "chat", ..arrival(&[1]) });
    let Effect::Dispatch(d) = &effects[0] else { panic!("{effects:?}") };
    assert_eq!(d.model.as_deref(), Some("direct"));
}
