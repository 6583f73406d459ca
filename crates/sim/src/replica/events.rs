use tailbound_kv::vllm::{Event, Removed, Stored};
use tailbound_kv::{self as kv, Log};

/// A step's changes of the cache as vLLM would tell them. Blocks whose parents chain are one event.
pub(super) fn as_vllm(log: &Log) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for event in log.events() {
        match event {
            kv::Event::Stored(s) => {
                let tokens = log.tokens(s).unwrap_or(&[]);
                let parent = s.parent.map(|p| p.get());
                match events.last_mut() {
                    Some(Event::Stored(run)) if parent.is_some() && run.hashes.last() == parent.as_ref() => {
                        run.hashes.push(s.hash.get());
                        run.tokens.extend_from_slice(tokens);
                    }
                    _ => events.push(Event::Stored(Stored {
                        hashes: vec![s.hash.get()],
                        parent,
                        tokens: tokens.to_vec(),
                        block_size: log.block_size(),
                        ..Stored::default()
                    })),
                }
            }
            kv::Event::Removed { hash } => match events.last_mut() {
                Some(Event::Removed(run)) => run.hashes.push(hash.get()),
                _ => events.push(Event::Removed(Removed { hashes: vec![hash.get()], ..Removed::default() })),
            },
            kv::Event::Cleared => events.push(Event::Cleared),
        }
    }
    events
}
