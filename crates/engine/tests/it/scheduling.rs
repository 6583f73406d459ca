use crate::driver::{Driver, constant, prompt};
use tailbound_clock::{Dur, Time};
use tailbound_engine::*;

fn config() -> Config {
    Config::new(constant(), 1000, 4096)
}

#[test]
fn tokens_come_at_the_ends_of_steps() {
    let mut driver = Driver::new(config());
    driver.now = Time(5);
    driver.submit(1, &prompt(1, 20), 3);
    assert_eq!(driver.engine.next_wake(), Some(Time(5)), "the step waits for whatever else comes at this moment");
    driver.run();
    let ms = |x: u64| Time(5 + x * 1_000_000);
    let expected = [(ms(12), 0, 1, None), (ms(22), 1, 1, None), (ms(32), 2, 1, Some(Finish::Length))];
    assert_eq!(driver.tokens[&1], expected);
    let record = driver.finished[&1];
    assert_eq!((record.queued, record.scheduled, record.first_token), (Time(5), Some(Time(5)), Some(ms(12))));
    assert_eq!((record.last_token, record.prompt, record.generated), (Some(ms(32)), 20, 3));
}

#[test]
fn a_long_prompt_is_computed_in_chunks_beside_others_tokens() {
    let mut driver = Driver::new(Config { max_num_batched_tokens: 100, ..config() });
    driver.submit(1, &prompt(1, 50), 6);
    driver.wake(Time::MAX);
    driver.submit(2, &prompt(2, 250), 2);
    driver.run();
    // Steps: 50 | 1 + 99 | 1 + 99 | 1 + 52 | …
    assert_eq!(
        driver.steps.iter().map(|s| (s.prefill_tokens, s.decodes)).collect::<Vec<_>>()[..5],
        [(50, 0), (99, 1), (99, 1), (52, 1), (0, 2)]
    );
    assert_eq!(driver.times(1)[..5], [15.0, 34.9, 54.8, 70.0, 80.0]);
    assert_eq!(driver.times(2), [70.0, 80.0]);
}

#[test]
fn a_bound_on_long_prompts_leaves_room_for_short_ones() {
    let mut driver =
        Driver::new(Config { max_num_batched_tokens: 100, long_prefill_token_threshold: Some(40), ..config() });
    driver.submit(1, &prompt(1, 120), 1);
    driver.submit(2, &prompt(2, 30), 1);
    driver.run();
    assert_eq!(driver.steps.iter().map(|s| s.prefill_tokens).collect::<Vec<_>>(), [70, 40, 40]);
    assert!(driver.times(2)[0] < driver.times(1)[0]);
}

#[test]
fn without_chunks_a_prompt_waits_for_a_step_that_holds_it() {
    let config = Config { chunked_prefill: false, max_num_batched_tokens: 100, ..Config::new(constant(), 100, 100) };
    let mut driver = Driver::new(config);
    driver.submit(1, &prompt(1, 60), 1);
    driver.submit(2, &prompt(2, 60), 1);
    driver.run();
    assert_eq!(driver.steps.iter().map(|s| s.prefill_tokens).collect::<Vec<_>>(), [60, 60]);
}

#[test]
fn no_more_run_than_have_places() {
    let mut driver = Driver::new(Config { max_num_seqs: 2, ..config() });
    for id in 0..3 {
        driver.submit(id, &prompt(id as u32, 10), 2);
    }
    driver.wake(Time::MAX);
    let c = driver.engine.counters();
    assert_eq!((c.running, c.waiting), (2, 1));
    driver.run();
    assert!(driver.finished[&2].scheduled >= driver.finished[&0].last_token);
}

#[test]
fn the_least_important_waits_and_gives_up_its_blocks_first() {
    // Room for two sequences of 64 tokens at their end, three at their beginning.
    let tiny = Config { policy: Policy::Priority, block_size: 16, ..Config::new(constant(), 8, 128) };
    let mut driver = Driver::new(tiny);
    for (id, priority) in [(1, 5), (2, 0), (3, 0)] {
        let p = prompt(id as u32, 32);
        driver.on(Event::Submit(Submit { priority, ..Submit::new(SeqId(id), &p, 32) }));
    }
    driver.run();
    let preemptions: Vec<u32> = [1, 2, 3].map(|id| driver.finished[&id].preemptions).into();
    assert_eq!(preemptions, [1, 0, 0]);
    assert_eq!(driver.engine.counters().preemptions, 1);
    assert!(driver.finished[&1].last_token > driver.finished[&3].last_token);
}

#[test]
fn the_last_come_gives_up_its_blocks_and_is_computed_again() {
    let tiny = Config { prefix_caching: false, ..Config::new(constant(), 8, 128) };
    let mut driver = Driver::new(tiny);
    for id in [1, 2, 3] {
        driver.submit(id, &prompt(id as u32, 32), 32);
    }
    driver.run();
    let record = driver.finished[&3];
    assert_eq!((record.preemptions, record.generated), (1, 32));
    assert_eq!(driver.finished[&1].preemptions + driver.finished[&2].preemptions, 0);
    // What it had generated is computed again with its prompt: more than 32 tokens in one step, after the first.
    assert!(driver.steps[1..].iter().any(|s| s.prefill_tokens > 32));
}

#[test]
fn a_prompt_joins_only_if_all_of_it_fits() {
    for (reserve, joined) in [(true, 1), (false, 2)] {
        let config = Config {
            reserve_full_prompt: reserve,
            max_num_batched_tokens: 100,
            prefix_caching: false,
            ..Config::new(constant(), 10, 160)
        };
        let mut driver = Driver::new(config);
        driver.submit(1, &prompt(1, 80), 2);
        driver.submit(2, &prompt(2, 140), 1);
        driver.wake(Time::MAX);
        assert_eq!(driver.engine.counters().running, joined, "reserve {reserve}");
        driver.run();
        assert_eq!(driver.finished.len(), 2);
    }
}

#[test]
fn an_abort_frees_everything_at_once_and_nothing_more_comes() {
    let mut driver = Driver::new(config());
    driver.submit(1, &prompt(1, 100), 50);
    driver.submit(2, &prompt(2, 100), 3);
    driver.wake(Time::MAX);
    driver.wake(Time::MAX);
    assert_eq!(driver.on(Event::Abort(SeqId(1))), [Effect::Aborted { id: SeqId(1) }]);
    assert_eq!(driver.on(Event::Abort(SeqId(1))), [], "once");
    assert_eq!(driver.engine.counters().running, 1);
    driver.run();
    assert_eq!(driver.tokens[&1].len(), 1);
    assert_eq!(driver.tokens[&2].len(), 3);
    let record = driver.finished[&1];
    assert_eq!((record.finish, record.generated), (Finish::Abort, 1));
    assert_eq!(record.last_token, record.first_token);
}

#[test]
fn what_cannot_be_served_is_refused_with_its_reason() {
    let mut driver = Driver::new(Config { max_num_queued_reqs: Some(1), ..config() });
    driver.submit(1, &[], 1);
    driver.submit(2, &[1], 0);
    driver.submit(3, &prompt(3, 4096), 1);
    driver.submit(4, &prompt(4, 4095), 9);
    driver.submit(4, &[1], 1);
    driver.submit(5, &[1], 1);
    let why: Vec<WhyRejected> = driver.rejected.iter().map(|(_, why)| *why).collect();
    assert_eq!(
        why,
        [
            WhyRejected::EmptyPrompt,
            WhyRejected::NoOutput,
            WhyRejected::PromptTooLong { prompt: 4096, max_model_len: 4096 },
            WhyRejected::IdInUse,
            WhyRejected::QueueFull { waiting: 1 },
        ]
    );
    let c = driver.engine.counters();
    assert_eq!((c.rejected_invalid, c.rejected_queue_full), (4, 1));
    driver.run();
    assert_eq!(driver.finished[&4].generated, 1, "cut at the context length");
}

#[test]
fn a_configuration_no_engine_can_have_is_refused() {
    let with = |change: fn(&mut Config)| {
        let mut config = config();
        change(&mut config);
        Engine::new(config).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(with(|c| c.block_size = 0), Err("block_size must not be zero".into()));
    assert!(with(|c| c.num_blocks = 10).unwrap_err().contains("holds 160 tokens, fewer than max_model_len 4096"));
    assert!(with(|c| c.chunked_prefill = false).unwrap_err().contains("chunked prefill"));
    let s = |tokens, acceptance| Some(Speculation { tokens, acceptance, draft_time: Dur::ZERO });
    for speculation in [s(0, 0.5), s(99, 0.5), s(1, 1.5), s(1, f64::NAN)] {
        assert_eq!(Engine::new(Config { speculation, ..config() }).err(), Some(ConfigError::Speculation));
    }
    assert_eq!(with(|_| ()), Ok(()));
}
