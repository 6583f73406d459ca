use crate::{Config, ConfigError, Effect, Engine, Event, SeqId, Submit};
use tailbound_clock::Time;

/// So many clients, each of which sends its next request when its last has ended; all requests alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Prompt tokens, no two prompts with a beginning in common.
    pub input: u32,
    /// Generated tokens.
    pub output: u32,
    /// Clients.
    pub clients: u32,
}

/// Means over a steady closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    /// Time to first token in milliseconds.
    pub ttft: f64,
    /// Time per output token after the first in milliseconds.
    pub tpot: f64,
}

impl Closed {
    /// What the engine takes once it is steady: five requests a client, of which the first two and the last don't count.
    /// The clients' first requests are of different lengths, so that they don't go in step ever after, as clients of a
    /// real engine don't.
    pub fn run(&self, config: Config) -> Result<Means, ConfigError> {
        let mut engine = Engine::new(config)?;
        let clients = u64::from(self.clients);
        let requests = 5 * clients;
        let mut prompt = vec![0; self.input as usize];
        let mut out: Vec<Effect> = Vec::new();
        let mut now = Time::ZERO;
        let mut sent = 0;
        let mut send = |engine: &mut Engine, out: &mut Vec<Effect>, now| {
            prompt[0] = sent as u32;
            let first = u64::from(self.output) * (sent + 1) / clients;
            let output = if sent < clients { (first as u32).max(1) } else { self.output };
            engine.on(now, Event::Submit(Submit::new(SeqId(sent), &prompt, output)), out);
            sent += 1;
        };
        for _ in 0..clients {
            send(&mut engine, &mut out, now);
        }
        let (mut ttft, mut tpot, mut n) = (0.0, 0.0, 0.0);
        let mut left = requests - clients;
        while let Some(at) = engine.next_wake() {
            now = at;
            out.clear();
            engine.on(now, Event::Wake, &mut out);
            let ended = engine.finished().len() as u64;
            for f in engine.finished() {
                let counts = f.id.0 >= 2 * clients && f.id.0 < requests - clients;
                let (Some(first), Some(last)) = (f.first_token, f.last_token) else { continue };
                if counts {
                    ttft += first.since(f.queued).ms();
                    tpot += last.since(first).ms() / f64::from(self.output.max(2) - 1);
                    n += 1.0;
                }
            }
            for _ in 0..ended.min(left) {
                send(&mut engine, &mut out, now);
            }
            left -= ended.min(left);
        }
        Ok(Means { ttft: ttft / n, tpot: tpot / n })
    }
}
