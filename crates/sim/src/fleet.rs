use tailbound_clock::Time;
use tailbound_engine::{Config, ConfigError, Effect, Engine, KvEvents};
use tailbound_kv::vllm::{self, Batch, Removed, Stored};
use tailbound_route::Signals;

/// A replica: its engine, and the number of its next message of KV events.
pub(crate) struct Replica {
    pub(crate) engine: Engine,
    pub(crate) effects: Vec<Effect>,
    /// The wake that is on the heap already.
    pub(crate) wake: Option<Time>,
    seq: u64,
}

impl Replica {
    pub(crate) fn new(config: &Config, events: bool) -> Result<Replica, ConfigError> {
        let kv_events = if events { KvEvents::Tokens } else { KvEvents::Off };
        let engine = Engine::new(Config { kv_events, ..config.clone() })?;
        Ok(Replica { engine, effects: Vec::new(), wake: None, seq: 0 })
    }

    /// What a scrape at `now` would say.
    pub(crate) fn signals(&self, now: Time) -> Signals<'static> {
        let c = self.engine.counters();
        Signals {
            waiting: c.waiting,
            running: c.running,
            kv_usage: c.kv_usage(),
            block_size: Some(self.engine.config().block_size),
            blocks: Some(c.blocks),
            ..Signals::idle(now)
        }
    }

    /// The last step's changes of the cache as vLLM would send them, if there were any. Blocks whose parents chain are one event.
    pub(crate) fn message(&mut self) -> Option<(u64, Batch)> {
        let log = self.engine.kv();
        if log.events().is_empty() {
            return None;
        }
        let mut events: Vec<vllm::Event> = Vec::new();
        for event in log.events() {
            match event {
                tailbound_kv::Event::Stored(s) => {
                    let tokens = log.tokens(s).unwrap_or(&[]);
                    let parent = s.parent.map(|p| p.get());
                    match events.last_mut() {
                        Some(vllm::Event::Stored(run)) if parent.is_some() && run.hashes.last() == parent.as_ref() => {
                            run.hashes.push(s.hash.get());
                            run.tokens.extend_from_slice(tokens);
                        }
                        _ => events.push(vllm::Event::Stored(Stored {
                            hashes: vec![s.hash.get()],
                            parent,
                            tokens: tokens.to_vec(),
                            block_size: log.block_size(),
                            ..Stored::default()
                        })),
                    }
                }
                tailbound_kv::Event::Removed { hash } => match events.last_mut() {
                    Some(vllm::Event::Removed(run)) => run.hashes.push(hash.get()),
                    _ => events.push(vllm::Event::Removed(Removed { hashes: vec![hash.get()], ..Removed::default() })),
                },
                tailbound_kv::Event::Cleared => events.push(vllm::Event::Cleared),
            }
        }
        let seq = self.seq;
        self.seq += 1;
        Some((seq, Batch { ts: 0.0, events, dp_rank: None }))
    }
}
