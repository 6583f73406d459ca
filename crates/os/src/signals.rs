//! Ctrl-C and the polite kill, as counters that anybody can look at.

use std::sync::atomic::{AtomicU32, Ordering};

static INTERRUPTS: AtomicU32 = AtomicU32::new(0);
static TERMINATES: AtomicU32 = AtomicU32::new(0);

/// From now on SIGINT and SIGTERM are counted instead of ending the process, and SIGPIPE is ignored.
pub fn watch() {
    // SAFETY: the handler only adds to atomics, which is async-signal-safe; `signal` takes no other memory.
    unsafe {
        libc::signal(libc::SIGINT, on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t);
        libc::signal(libc::SIGTERM, on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t);
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
}

/// How many SIGINTs came since [`watch`].
pub fn interrupts() -> u32 {
    INTERRUPTS.load(Ordering::Relaxed)
}

/// How many SIGTERMs came since [`watch`].
pub fn terminates() -> u32 {
    TERMINATES.load(Ordering::Relaxed)
}

extern "C" fn on_signal(signal: libc::c_int) {
    let count = if signal == libc::SIGINT { &INTERRUPTS } else { &TERMINATES };
    count.fetch_add(1, Ordering::Relaxed);
}
