//! A log shown while it is written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use tailbound_clock::Dur;
use tailbound_os::{clock, sleep};

/// Copies to standard error what is appended to a file, until it is dropped.
pub struct Follower {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Begins at the file's present end; the file need not be there yet.
    pub fn start(path: &Path) -> Follower {
        let at = std::fs::metadata(path).map_or(0, |m| m.len());
        let done = Arc::new(AtomicBool::new(false));
        let (path, told) = (path.to_owned(), done.clone());
        let thread = std::thread::spawn(move || follow(&path, at, &told));
        Follower { done, thread: Some(thread) }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.done.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn follow(path: &PathBuf, mut at: u64, done: &AtomicBool) {
    loop {
        // Looked at first, so that what was written before the end is still shown.
        let last = done.load(Relaxed);
        let copied = File::open(path).and_then(|file| copy(file, at));
        at += copied.unwrap_or(0);
        if last {
            return;
        }
        sleep::until(clock::now() + Dur::from_ms(100));
    }
}

fn copy(mut file: File, from: u64) -> io::Result<u64> {
    file.seek(SeekFrom::Start(from))?;
    let mut new = Vec::new();
    file.read_to_end(&mut new)?;
    io::stderr().write_all(&new)?;
    Ok(new.len() as u64)
}
