//! Readiness of many sockets at once, with waits exact to the nanosecond the kernel's timers allow.
//!
//! Every descriptor is registered once, edge-triggered, for both directions, so that the hot path needs no `epoll_ctl`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use tailbound_clock::Dur;

/// An epoll instance and room for the events of one wait.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
    found: usize,
    has_pwait2: bool,
}

/// What one descriptor became ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The number it was registered under.
    pub token: u64,
    /// Bytes, or the end of them, can be read.
    pub readable: bool,
    /// Bytes can be written.
    pub writable: bool,
    /// The peer will send no more: read until the end.
    pub closing: bool,
    /// Both directions are gone: the peer reset the connection or closed it entirely.
    pub gone: bool,
}

impl Epoll {
    /// A new instance; one wait reports at most `capacity` descriptors.
    pub fn new(capacity: usize) -> io::Result<Epoll> {
        // SAFETY: takes no pointers; the result is checked before use.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened by the call above and is owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; capacity.max(1)];
        Ok(Epoll { fd, events, found: 0, has_pwait2: true })
    }

    /// Watches `fd` in both directions, edge-triggered, under `token`. Closing the descriptor ends it.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.register(fd, token, libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET)
    }

    /// Watches `fd` for input only, level-triggered, under `token`: for listeners and wake-up pipes.
    pub fn add_input(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.register(fd, token, libc::EPOLLIN)
    }

    /// Stops watching `fd` without closing it.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: both descriptors are open; DEL ignores the event pointer.
        let done =
            unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_DEL, fd.as_raw_fd(), std::ptr::null_mut()) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn register(&self, fd: BorrowedFd<'_>, token: u64, flags: i32) -> io::Result<()> {
        let mut event = libc::epoll_event { events: flags as u32, u64: token };
        // SAFETY: both descriptors are open and `event` outlives the call.
        let done = unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits until something is ready or `timeout` has passed (`None`: for ever) and gives how many are; a signal counts as zero.
    pub fn wait(&mut self, timeout: Option<Dur>) -> io::Result<usize> {
        let timeout = timeout.map(timespec);
        let mut found = self.wait_once(timeout.as_ref());
        if matches!(&found, Err(e) if e.raw_os_error() == Some(libc::ENOSYS)) {
            self.has_pwait2 = false;
            found = self.wait_once(timeout.as_ref());
        }
        self.found = match found {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => 0,
            other => other?,
        };
        Ok(self.found)
    }

    /// The `index`-th of what the last wait found.
    pub fn ready(&self, index: usize) -> Option<Ready> {
        let event = self.events[..self.found].get(index)?;
        let flags = event.events as i32;
        Some(Ready {
            token: event.u64,
            readable: flags & (libc::EPOLLIN | libc::EPOLLRDHUP) != 0,
            writable: flags & libc::EPOLLOUT != 0,
            closing: flags & libc::EPOLLRDHUP != 0,
            gone: flags & (libc::EPOLLHUP | libc::EPOLLERR) != 0,
        })
    }

    fn wait_once(&mut self, timeout: Option<&libc::timespec>) -> io::Result<usize> {
        let at = timeout.map_or(std::ptr::null(), std::ptr::from_ref);
        let room = self.events.len().min(i32::MAX as usize) as i32;
        let fd = self.fd.as_raw_fd();
        if self.has_pwait2 {
            // SAFETY: the buffer holds `room` events, `at` is null or points to a timespec that outlives the call,
            // and no signal mask is given.
            let n = unsafe {
                libc::syscall(libc::SYS_epoll_pwait2, fd, self.events.as_mut_ptr(), room, at, std::ptr::null::<u8>(), 8)
            };
            return count(n);
        }
        // Kernels before 5.11: an epoll descriptor can itself be polled, and ppoll has always taken nanoseconds.
        wait_for_input(fd, at)?;
        // SAFETY: as above.
        let n = unsafe { libc::epoll_wait(fd, self.events.as_mut_ptr(), room, 0) };
        count(i64::from(n))
    }
}

fn wait_for_input(fd: RawFd, timeout: *const libc::timespec) -> io::Result<()> {
    let mut one = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd is passed with a count of one; `timeout` is null or valid; no signal mask is given.
    let n = unsafe { libc::ppoll(&mut one, 1, timeout, std::ptr::null()) };
    count(i64::from(n)).map(|_| ())
}

fn count(n: i64) -> io::Result<usize> {
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

fn timespec(d: Dur) -> libc::timespec {
    let seconds = (d.ns() / 1_000_000_000).min(u64::from(u32::MAX));
    libc::timespec { tv_sec: seconds as libc::time_t, tv_nsec: (d.ns() % 1_000_000_000) as libc::c_long }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, UnixStream) {
        let (a, b) = UnixStream::pair().unwrap();
        a.set_nonblocking(true).unwrap();
        (a, b)
    }

    #[test]
    fn reports_what_became_readable_and_by_which_token() {
        for has_pwait2 in [true, false] {
            let (a, mut b) = pair();
            let mut epoll = Epoll::new(4).unwrap();
            epoll.has_pwait2 = has_pwait2;
            epoll.add_input(a.as_fd(), 7).unwrap();
            assert_eq!(epoll.wait(Some(Dur::ZERO)).unwrap(), 0);
            b.write_all(b"x").unwrap();
            assert_eq!(epoll.wait(None).unwrap(), 1);
            assert_eq!(
                epoll.ready(0),
                Some(Ready { token: 7, readable: true, writable: false, closing: false, gone: false })
            );
            assert_eq!(epoll.ready(1), None);
        }
    }

    #[test]
    fn edges_are_reported_once() {
        let (a, mut b) = pair();
        let mut epoll = Epoll::new(4).unwrap();
        epoll.add(a.as_fd(), 1).unwrap();
        assert_eq!(epoll.wait(Some(Dur::ZERO)).unwrap(), 1, "writable at once");
        b.write_all(b"x").unwrap();
        assert_eq!(epoll.wait(Some(Dur::ZERO)).unwrap(), 1);
        assert!(epoll.ready(0).unwrap().readable);
        assert_eq!(epoll.wait(Some(Dur::ZERO)).unwrap(), 0, "the same bytes are not a new edge");
    }

    #[test]
    fn a_closed_peer_is_gone() {
        let (a, b) = pair();
        let mut epoll = Epoll::new(4).unwrap();
        epoll.add(a.as_fd(), 1).unwrap();
        drop(b);
        assert_eq!(epoll.wait(None).unwrap(), 1);
        assert!(epoll.ready(0).unwrap().gone);
    }
}
