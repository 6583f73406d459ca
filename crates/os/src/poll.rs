//! Readiness: `epoll` with nanosecond time-outs, and an `eventfd` to wake its waiter.

use crate::socket::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use tailbound_clock::Dur;

/// What a descriptor is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The number it was registered with.
    pub token: u64,
    /// Something can be read.
    pub readable: bool,
    /// Something can be written (or a connect has ended).
    pub writable: bool,
    /// The peer has closed its side, or the connection is broken: read until the end.
    pub closed: bool,
    /// Both directions are gone: a reset, or a full close.
    pub gone: bool,
}

/// An `epoll` instance. Sockets are registered once, edge-triggered, for both directions, so the hot path needs no further call.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
    got: usize,
    has_pwait2: bool,
}

impl Epoll {
    /// One that returns at most `batch` descriptors per wait.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn new(batch: usize) -> io::Result<Epoll> {
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: just opened, owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; batch.max(1)];
        Ok(Epoll { fd, events, got: 0, has_pwait2: true })
    }

    /// Watches a socket edge-triggered, for reading, writing and the peer's closing. Closing the socket ends it.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn watch(&self, socket: &impl AsRawFd, token: u64) -> io::Result<()> {
        self.add(socket, token, libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET)
    }

    /// Watches something level-triggered for reading (a listener, an [`EventFd`]).
    ///
    /// # Errors
    /// What the operating system says.
    pub fn watch_level(&self, fd: &impl AsRawFd, token: u64) -> io::Result<()> {
        self.add(fd, token, libc::EPOLLIN)
    }

    fn add(&self, fd: &impl AsRawFd, token: u64, flags: i32) -> io::Result<()> {
        let mut event = libc::epoll_event { events: flags as u32, u64: token };
        // SAFETY: `event` is valid for the call; both descriptors are open.
        check(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event) })
            .map(drop)
    }

    /// Waits up to `timeout` (nanosecond resolution) and returns how many descriptors are ready; see [`Epoll::ready`].
    /// A signal, like the time-out, gives 0.
    pub fn wait(&mut self, timeout: Dur) -> usize {
        let ts = timespec(timeout);
        if self.has_pwait2 {
            // SAFETY: `events` is valid for writes of `len` entries, `ts` for reads; the signal mask is null: unchanged.
            let n = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    self.fd.as_raw_fd(),
                    self.events.as_mut_ptr(),
                    self.events.len() as libc::c_int,
                    &raw const ts,
                    std::ptr::null::<libc::sigset_t>(),
                    8usize,
                )
            };
            self.got = usize::try_from(n).unwrap_or(0);
            self.has_pwait2 = n >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS);
            return self.got;
        }
        // Kernels before 5.11: an epoll descriptor can itself be polled, and ppoll has always taken nanoseconds.
        wait_readable(&self.fd, timeout);
        // SAFETY: `events` is valid for writes of `len` entries.
        let n = unsafe {
            libc::epoll_wait(self.fd.as_raw_fd(), self.events.as_mut_ptr(), self.events.len() as libc::c_int, 0)
        };
        self.got = usize::try_from(n).unwrap_or(0);
        self.got
    }

    /// The `i`-th descriptor of the last wait.
    pub fn ready(&self, i: usize) -> Ready {
        debug_assert!(i < self.got);
        let event = self.events[i];
        let flags = event.events as i32;
        Ready {
            token: event.u64,
            readable: flags & libc::EPOLLIN != 0,
            writable: flags & libc::EPOLLOUT != 0,
            closed: flags & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) != 0,
            gone: flags & (libc::EPOLLHUP | libc::EPOLLERR) != 0,
        }
    }
}

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

    #[test]
    fn a_signal_wakes_and_is_cleared() {
        for has_pwait2 in [true, false] {
            let event = EventFd::new().unwrap();
            let mut epoll = Epoll::new(8).unwrap();
            epoll.has_pwait2 = has_pwait2;
            epoll.watch_level(&event, 7).unwrap();
            assert_eq!(epoll.wait(Dur::ZERO), 0);
            assert!(!event.wait(Dur::ZERO));
            event.signal();
            event.signal();
            assert!(event.wait(Dur::from_secs(5)));
            assert_eq!(epoll.wait(Dur::from_secs(5)), 1);
            let ready = epoll.ready(0);
            assert!(ready.token == 7 && ready.readable && !ready.closed);
            event.clear();
            assert_eq!(epoll.wait(Dur::ZERO), 0);
        }
    }

    #[test]
    fn edges_are_reported_once_and_a_close_is_told_apart() {
        let (mut near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut epoll = Epoll::new(8).unwrap();
        epoll.watch(&far, 1).unwrap();
        assert_eq!(epoll.wait(Dur::ZERO), 1, "writable at once");
        std::io::Write::write_all(&mut near, b"x").unwrap();
        assert_eq!(epoll.wait(Dur::from_secs(5)), 1);
        assert!(epoll.ready(0).readable && !epoll.ready(0).closed);
        assert_eq!(epoll.wait(Dur::ZERO), 0, "the same bytes are not a new edge");
        drop(near);
        assert_eq!(epoll.wait(Dur::from_secs(5)), 1);
        assert!(epoll.ready(0).closed && epoll.ready(0).gone);
    }
}
