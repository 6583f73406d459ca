use tailbound_clock::{Dur, Time};
use tailbound_engine::*;

fn constant() -> Law {
    Law::Constant { step: Dur::from_ms(10), per_prefill_token: Dur::from_us(100) }
}

#[test]
fn one_request_gets_its_tokens_at_the_ends_of_steps() {
    let mut engine = Engine::new(Config::new(constant(), 100, 1000)).unwrap();
    let mut out = Vec::new();
    let prompt: Vec<u32> = (0..20).collect();
    engine.on(Time(5), Event::Submit(Submit::new(SeqId(1), &prompt, 3)), &mut out);
    assert_eq!(engine.next_wake(), Some(Time(5)));
    let mut tokens = Vec::new();
    while let Some(at) = engine.next_wake() {
        engine.on(at, Event::Wake, &mut out);
        tokens.extend(engine.emitted().iter().map(|e| (at.minus(Time(5)) / 1_000_000, e.first, e.finish)));
        engine.check().unwrap();
    }
    assert_eq!(tokens, [(12, 0, None), (22, 1, None), (32, 2, Some(Finish::Length))]);
    assert_eq!(engine.counters().running, 0);
}
