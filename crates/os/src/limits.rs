//! What this machine lets a process have: descriptors, ports.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// The limit on open descriptors, before and after asking for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoFile {
    /// What the process started with.
    pub was: u64,
    /// What it has now.
    pub now: u64,
    /// The ceiling it may raise itself to.
    pub hard: u64,
}

/// Raises the soft limit on open descriptors as far as the process may: to the hard limit, and the hard limit itself where
/// that is permitted (up to 1,048,576).
///
/// # Errors
/// Where the limit cannot even be read.
pub fn raise_nofile() -> io::Result<NoFile> {
    const WISH: u64 = 1 << 20;
    let before = nofile()?;
    if before.rlim_max < WISH {
        let _ = set_nofile(libc::rlimit { rlim_cur: WISH, rlim_max: WISH });
    }
    let ceiling = nofile()?;
    if ceiling.rlim_cur < ceiling.rlim_max.min(WISH) {
        let _ = set_nofile(libc::rlimit { rlim_cur: ceiling.rlim_max.min(WISH), rlim_max: ceiling.rlim_max });
    }
    let after = nofile()?;
    Ok(NoFile { was: before.rlim_cur, now: after.rlim_cur, hard: after.rlim_max })
}

/// Makes the table of descriptors large enough for `n` of them now.
///
/// The kernel doubles it as descriptors are opened, and in a process with several threads each doubling waits for all processors
/// to have passed a quiet point: about ten milliseconds at the 256th, 512th, 1024th … connection, during which nothing is sent.
pub fn widen_table(n: u64) {
    let Ok(highest) = libc::c_int::try_from(n.min(1 << 20).saturating_sub(1)) else { return };
    // SAFETY: no pointers. Without standard input, or beyond the limit, it fails and nothing has changed.
    let fd = unsafe { libc::fcntl(0, libc::F_DUPFD_CLOEXEC, highest) };
    if fd >= 0 {
        // SAFETY: just opened, owned by nobody else.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
}

fn nofile() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes.
    crate::socket::check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
    Ok(limit)
}

fn set_nofile(limit: libc::rlimit) -> io::Result<()> {
    // SAFETY: `limit` is valid for reads.
    crate::socket::check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }).map(drop)
}

/// How many descriptors this process has open; `None` where `/proc` does not say.
pub fn open_files() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

/// How many local ports there are for outgoing connections to one address; `None` where `/proc` does not say.
pub fn ephemeral_ports() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = text.split_whitespace().map(str::parse::<u32>);
    let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some(high.checked_sub(low)? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        let limit = raise_nofile().unwrap();
        assert!(limit.now >= limit.was && limit.now <= limit.hard);
        assert_eq!(limit.now, limit.hard.min(1 << 20));
        assert!(open_files().is_some_and(|n| n > 2 && n < limit.now));
        widen_table(limit.now.min(4096));
        let highest = format!("/proc/self/fd/{}", limit.now.min(4096) - 1);
        assert!(!std::path::Path::new(&highest).exists(), "it leaves none open");
        assert!(ephemeral_ports().is_some_and(|n| n > 100));
    }
}
