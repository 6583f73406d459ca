//! The only clock of the workspace.

use tailbound_clock::Time;

/// Now on the monotonic clock: nanoseconds since an origin that is the same for every process of this machine until it is
/// restarted, so that the stamps of a client and of a server on one host can be subtracted from each other.
pub fn now() -> Time {
    Time(read(libc::CLOCK_MONOTONIC))
}

/// The wall clock in nanoseconds since 1970. It jumps when somebody sets it: for display, and to map kernel stamps.
pub(crate) fn wall_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// CPU time used so far by the calling thread, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time used so far by the whole process, in nanoseconds.
pub(crate) fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid, writable timespec for the whole call. The clocks used exist on every Linux, so it cannot fail.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// Ties one moment to the wall clock, once, so that a run's moments can be shown as dates however the wall clock moves later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallAnchor {
    at: Time,
    unix_ns: u64,
}

impl WallAnchor {
    /// Reads both clocks now.
    pub fn take() -> WallAnchor {
        let at = now();
        WallAnchor { at, unix_ns: wall_ns() }
    }

    /// The wall time of a moment, in nanoseconds since 1970.
    pub fn unix_ns(&self, at: Time) -> u64 {
        self.unix_ns.saturating_add_signed(at.minus(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_clock::Dur;

    #[test]
    fn the_clock_never_goes_back() {
        let mut last = now();
        for _ in 0..10_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
    }

    #[test]
    fn an_anchor_carries_differences_over() {
        let anchor = WallAnchor { at: Time(1_000), unix_ns: 5_000_000 };
        assert_eq!(anchor.unix_ns(Time(1_250)), 5_000_250);
        assert_eq!(anchor.unix_ns(Time(400)), 4_999_400);
        let now = WallAnchor::take();
        assert!(now.unix_ns(now.at + Dur::from_secs(1)) > 1_500_000_000_000_000_000);
    }
}
