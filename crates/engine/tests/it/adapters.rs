//! LoRA adapters share a batch up to `max_loras`.

use crate::driver::{Driver, constant};
use tailbound_clock::{Dur, Time};
use tailbound_engine::*;

fn config() -> Config {
    let lora = Lora { max_loras: 1, max_cpu_loras: 2, load: Dur::from_ms(7), fetch: Dur::from_ms(30) };
    Config { lora: Some(lora), ..Config::new(constant(), 100, 1600) }
}

fn submit(driver: &mut Driver, id: u64, lora: Option<u32>, output: u32) {
    driver.on(Event::Submit(Submit { lora, ..Submit::new(SeqId(id), &[id as u32; 10], output) }));
}

#[test]
fn a_request_whose_adapter_has_no_place_lets_others_by() {
    let mut driver = Driver::new(config());
    submit(&mut driver, 1, Some(1), 3);
    submit(&mut driver, 2, Some(2), 1);
    submit(&mut driver, 3, None, 1);
    submit(&mut driver, 4, Some(1), 1);
    driver.wake(Time::MAX);
    assert_eq!(driver.engine.running_adapters().collect::<Vec<_>>(), [1]);
    assert_eq!(driver.engine.waiting_adapters(), [2]);
    driver.run();
    // The first step brings adapter 1 (37 ms) and computes three prompts; 2 comes when the last with 1 has ended.
    assert_eq!(driver.times(1), [50.0, 60.0, 70.0]);
    assert_eq!((driver.times(3), driver.times(4)), (vec![50.0], vec![50.0]));
    assert_eq!(driver.times(2), [118.0]);
    assert_eq!(driver.engine.counters().lora_loads, 2);
}

#[test]
fn an_adapter_still_in_host_memory_comes_sooner() {
    let mut driver = Driver::new(config());
    for (id, lora) in [(1, 1), (2, 2), (3, 1), (4, 1)] {
        submit(&mut driver, id, Some(lora), 1);
        driver.run();
    }
    let took = |id| driver.finished[&id].first_token.unwrap().since(driver.finished[&id].queued).ms();
    assert_eq!([1, 2, 3, 4].map(took), [48.0, 48.0, 18.0, 11.0]);
}
