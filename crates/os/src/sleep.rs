//! Sleeping until a moment.

use tailbound_clock::Time;

/// Sleeps until `at` on the monotonic clock, however often a signal interrupts it. Returns at once if `at` has passed.
///
/// Call [`exact_timers`] on the thread first: the kernel's default slack of 50 µs would be added to each sleep.
pub fn until(at: Time) {
    let ts = timespec(at);
    // SAFETY: `ts` is a valid timespec; a null remainder is allowed with TIMER_ABSTIME.
    while unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &ts, std::ptr::null_mut()) }
        == libc::EINTR
    {}
}

/// Makes the calling thread's timers as exact as the kernel can: a slack of 1 ns instead of 50 µs.
pub fn exact_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer argument and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

pub(crate) fn timespec(at: Time) -> libc::timespec {
    libc::timespec {
        tv_sec: (at.ns() / 1_000_000_000) as libc::time_t,
        tv_nsec: (at.ns() % 1_000_000_000) as libc::c_long,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_clock::Dur;

    #[test]
    fn it_never_wakes_early() {
        exact_timers();
        let at = crate::clock::now() + Dur::from_us(300);
        until(at);
        assert!(crate::clock::now() >= at);
        until(Time(1));
    }
}
