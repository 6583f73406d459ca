//! The progress line: on standard error, redrawn on a terminal, one line every ten seconds elsewhere when asked for, never in the way.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use tailbound_client::Control;
use tailbound_clock::Dur;
use tailbound_os::{clock, sleep};

/// Draws until it is dropped.
pub struct Line {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Line {
    /// Starts drawing what `control` says of a run of `total` requests; nothing if `quiet` or if nobody would see it.
    pub fn start(control: &Arc<Control>, total: Option<u64>, quiet: bool) -> Line {
        let done = Arc::new(AtomicBool::new(false));
        let visible = !quiet && std::io::stderr().is_terminal() && std::env::var_os("CI").is_none();
        let thread = visible.then(|| {
            let (control, done) = (control.clone(), done.clone());
            std::thread::spawn(move || draw(&control, total, &done))
        });
        Line { done, thread }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.done.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
            eprint!("\r\x1b[K");
        }
    }
}

fn draw(control: &Control, total: Option<u64>, done: &AtomicBool) {
    let start = clock::now();
    while !done.load(Relaxed) {
        let line = line(control, total, clock::now().since(start));
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
        // Short naps, so that ending never waits for the line.
        for _ in 0..10 {
            if !done.load(Relaxed) {
                sleep::until(clock::now() + Dur::from_ms(20));
            }
        }
    }
}

fn line(control: &Control, total: Option<u64>, elapsed: Dur) -> String {
    let p = control.progress();
    let ended = p.done + p.failed;
    let secs = elapsed.ns() / 1_000_000_000;
    let clock = format!("{:02}:{:02}", secs / 60, secs % 60);
    let rate = ended as f64 / elapsed.secs().max(1e-3);
    let bar = total.map(|total| {
        let share = ended as f64 / total.max(1) as f64;
        let full = (share * 20.0) as usize;
        format!(" {}{} {ended}/{total}", "█".repeat(full.min(20)), "░".repeat(20 - full.min(20)))
    });
    let bar = bar.unwrap_or_else(|| format!(" {ended} done"));
    format!("{clock}{bar}  {rate:.1} req/s  {} in flight  {} failed", p.in_flight(), p.failed)
}
