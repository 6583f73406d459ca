//! The servers' own view of a run: their pages of metrics, looked at about once a second by one thread beside the load.
//!
//! A server without metrics costs one look before the load. Whatever a page turns out to be (endless, huge, no page at all), each look is
//! bounded in time and bytes, and the run's end waits for a last look no longer than [`LAST`].

mod source;

use crate::bench::serve::journal::Journal;
use source::Source;
pub use source::{check, sources};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tailbound_clock::{Dur, Time};
use tailbound_os::clock;
use tailbound_record::server::{Measure, Scrape};
use tailbound_report::SpecDecode;
use tailbound_stats::servers::Servers;

/// From one look to the next.
const EVERY: Dur = Dur::from_secs(1);
/// For the first look at all sources, which the load waits for: counters must be known as they were before it.
const FIRST: Dur = Dur::from_secs(2);
/// For each look at all sources during the run.
const LOOK: Dur = Dur::from_secs(5);
/// For the last look, which the end waits for.
const LAST: Dur = Dur::from_secs(2);

/// Looks at sources while a run goes on.
pub struct Scraper {
    kept: Arc<Mutex<Kept>>,
    /// Closed, it ends the thread.
    stop: Option<Sender<()>>,
    over: Receiver<()>,
}

/// What was seen, where both threads find it.
struct Kept {
    scrapes: Vec<Scrape>,
    /// What became of sources that had no metrics.
    notes: Vec<String>,
    /// `None` once the run is over: nothing is added then.
    journal: Option<Journal>,
}

impl Scraper {
    /// Begins, and returns after the first look.
    pub fn start(sources: Vec<Source>, journal: Journal) -> Scraper {
        let kept = Kept { scrapes: Vec::new(), notes: Vec::new(), journal: Some(journal) };
        let kept = Arc::new(Mutex::new(kept));
        let (stop, stopped) = mpsc::channel();
        let (looked, first) = mpsc::channel();
        let (done, over) = mpsc::channel();
        let looks = Looks { sources, kept: kept.clone() };
        let thread = std::thread::Builder::new().name("server-metrics".into());
        // The thread ends by itself: nobody joins it, as nobody may wait for a server that doesn't answer.
        let started = thread.spawn(move || {
            looks.run(&looked, &stopped);
            drop(done);
        });
        if let Err(e) = started {
            let note = format!("the server's metrics are not read: failed to start a thread: {e}");
            lock(&kept).notes.push(note);
        }
        // An error says that there is nothing to look at.
        let _ = first.recv_timeout(Duration::from_nanos(FIRST.ns()));
        Scraper { kept, stop: Some(stop), over }
    }

    /// Has a last look, and gives what was seen and what there is to say.
    pub fn finish(mut self) -> (Vec<Scrape>, Vec<String>) {
        drop(self.stop.take());
        let _ = self.over.recv_timeout(Duration::from_nanos(LAST.ns()));
        let mut kept = lock(&self.kept);
        kept.journal = None;
        (std::mem::take(&mut kept.scrapes), std::mem::take(&mut kept.notes))
    }
}

/// The thread's own.
struct Looks {
    sources: Vec<Source>,
    kept: Arc<Mutex<Kept>>,
}

impl Looks {
    fn run(mut self, looked: &Sender<()>, stopped: &Receiver<()>) {
        let mut due = clock::now();
        self.look(due + FIRST);
        let _ = looked.send(());
        while !self.sources.is_empty() {
            due += EVERY;
            let wait = due.since(clock::now());
            match stopped.recv_timeout(Duration::from_nanos(wait.ns())) {
                Err(RecvTimeoutError::Timeout) => self.look(clock::now() + LOOK),
                _ => return self.look(clock::now() + LAST),
            }
            // A slow answer is no reason to ask twice at once.
            due = due.max(clock::now() - EVERY);
        }
    }

    /// Looks at all sources, and drops those that have never had anything to say.
    fn look(&mut self, deadline: Time) {
        let kept = &self.kept;
        let mut left = self.sources.len() as u64;
        self.sources.retain_mut(|source| {
            let begun = clock::now();
            // A silent one must not eat the time of the others.
            let page = source.read(deadline.since(begun) / left);
            left -= 1;
            let took = clock::now().since(begun);
            let mut kept = lock(kept);
            // The run is over, and the scrapes are where they are needed.
            let Some(journal) = &mut kept.journal else { return false };
            let reading = match page {
                Ok(reading) => Some(reading),
                Err(why) if !source.known => {
                    kept.notes.push(format!("no server metrics from {source}: {why}"));
                    return false;
                }
                Err(_) => None,
            };
            source.known = true;
            let scrape = Scrape { from: source.to_string(), at: begun + took / 2, took, reading };
            // A log that can't be written ends the run through its rows.
            let _ = journal.scrape(&scrape);
            kept.scrapes.push(scrape);
            true
        });
    }
}

fn lock(kept: &Mutex<Kept>) -> std::sync::MutexGuard<'_, Kept> {
    // What was pushed before a panic elsewhere is whole.
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Speculative decoding over the run, by the servers' counters; `None` if nothing was drafted.
pub fn spec_decode(servers: &Servers) -> Option<SpecDecode> {
    let grown = |measure| servers.growth(measure).map(|n| n as u64);
    let drafts = grown(Measure::Drafts).filter(|n| *n > 0)?;
    Some(SpecDecode {
        drafts,
        draft_tokens: grown(Measure::DraftTokens).unwrap_or(0),
        accepted_tokens: grown(Measure::AcceptedTokens).unwrap_or(0),
        accepted_per_position: servers.accepted_at().into_iter().map(|n| n as u64).collect(),
    })
}
