//! An `eventfd` to wake whoever waits in an [`Epoll`](crate::epoll::Epoll) or on it alone.

use crate::socket::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use tailbound_clock::Dur;

/// A counter that wakes whoever waits for it.
#[derive(Debug)]
pub struct EventFd {
    fd: OwnedFd,
}

impl EventFd {
    /// A new one, not signalled.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn new() -> io::Result<EventFd> {
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })?;
        // SAFETY: just opened, owned by nobody else.
        Ok(EventFd { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Wakes the waiter, or lets its next wait return at once.
    pub fn signal(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are read from `one`. The only failure is a full counter, which is a pending signal anyway.
        unsafe { libc::write(self.fd.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Takes back all signals.
    pub fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: eight bytes are written to `count`. EAGAIN means there was no signal.
        unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), 8) };
    }

    /// Waits for a signal, `timeout` at most. Returns whether there is one; does not clear it.
    pub fn wait(&self, timeout: Dur) -> bool {
        wait_readable(self, timeout)
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Waits until `fd` can be read, `timeout` at most; returns whether it can.
pub fn wait_readable(fd: &impl AsRawFd, timeout: Dur) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let ts = timespec(timeout);
    // SAFETY: one pollfd, valid for writes; `ts` valid for reads; no signal mask.
    unsafe { libc::ppoll(&mut poll, 1, &ts, std::ptr::null()) > 0 }
}

fn timespec(d: Dur) -> libc::timespec {
    crate::sleep::timespec(tailbound_clock::Time(d.ns().min(3_600_000_000_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::epoll::Epoll;
    use std::os::fd::AsFd;

    #[test]
    fn a_signal_wakes_and_is_cleared() {
        let event = EventFd::new().unwrap();
        let mut epoll = Epoll::new(8).unwrap();
        epoll.add_input(event.as_fd(), 7).unwrap();
        assert_eq!(epoll.wait(Some(Dur::ZERO)).unwrap(), 0);
        assert!(!event.wait(Dur::ZERO));
        event.signal();
        event.signal();
        assert!(event.wait(Dur::from_secs(5)));
        assert_eq!(epoll.wait(Some(Dur::from_secs(5))).unwrap(), 1);
        assert!(epoll.ready(0).is_some_and(|r| r.token == 7 && r.readable));
        event.clear();
        assert_eq!(epoll.wait(Some(Dur::ZERO)).unwrap(), 0);
    }
}
