//! Nothing is allocated once every buffer has its size.

use tailbound_clock::{Dur, Time};
use tailbound_engine::*;
use tailbound_os::alloc::{self, Counting};

use crate::driver::constant;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations in the second half of a closed loop of `rounds` requests from each of 16 clients.
fn allocations(config: Config, rounds: u64) -> u64 {
    const CLIENTS: u64 = 16;
    let mut engine = Engine::new(Config { max_num_seqs: CLIENTS as u32, ..config }).expect("a sound configuration");
    let mut out = Vec::with_capacity(CLIENTS as usize + 1);
    let mut prompt = vec![0u32; 100];
    let mut again = Vec::with_capacity(CLIENTS as usize);
    let mut sent = 0;
    let mut before = 0;
    again.extend(0..CLIENTS);
    while sent < rounds * CLIENTS {
        if sent >= rounds * CLIENTS / 2 && before == 0 {
            before = alloc::allocations();
        }
        let now = engine.next_wake().unwrap_or(Time::ZERO);
        for client in again.drain(..) {
            prompt[50] = sent as u32; // the first half of each prompt is shared
            engine.on(now, Event::Submit(Submit::new(SeqId(client + CLIENTS * sent), &prompt, 60)), &mut out);
            sent += 1;
        }
        out.clear();
        let now = engine.next_wake().expect("there is always a request");
        engine.on(now, Event::Wake, &mut out);
        again.extend(engine.finished().iter().map(|f| f.id.0 % CLIENTS));
    }
    assert!(engine.counters().prefix_hits > 0 && engine.counters().evictions > 0);
    alloc::allocations() - before
}

#[test]
fn nothing_is_allocated_after_warm_up() {
    let base = Config::new(constant(), 400, 1024);
    let speculation = Some(Speculation { tokens: 3, acceptance: 0.6, draft_time: Dur::ZERO });
    assert_eq!(allocations(base.clone(), 40), 0);
    assert_eq!(allocations(Config { kv_events: KvEvents::Tokens, ..base.clone() }, 40), 0);
    assert_eq!(allocations(Config { speculation, ..base.clone() }, 40), 0);
    assert_eq!(allocations(Config { policy: Policy::Priority, ..base.clone() }, 40), 0);
    // Room for half of them: sequences lose their blocks all the time.
    assert_eq!(allocations(Config { num_blocks: 80, ..base }, 40), 0);
}
