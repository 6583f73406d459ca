//! Where and how urgently threads run.

use std::io;
use std::mem::{size_of, zeroed};

/// The cores this process may run on, in order.
pub fn cores() -> Vec<usize> {
    // SAFETY: all-zero is a valid (empty) cpu_set_t.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: `set` is valid for writes of the size given; 0 is the calling thread.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return vec![0];
    }
    // SAFETY: every index is below CPU_SETSIZE.
    (0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect()
}

/// Ties the calling thread to one core.
///
/// # Errors
/// The core does not exist or is not allowed.
pub fn pin_to(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: all-zero is a valid (empty) cpu_set_t.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: the index was checked.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: `set` is valid for reads of the size given; 0 is the calling thread.
    crate::socket::check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) }).map(drop)
}

/// Makes the calling thread run before every ordinary one (`SCHED_FIFO` at `priority`, 1 to 99).
///
/// # Errors
/// A sentence that says what is missing: the capability, the limit, or the kernel's share for such threads.
pub fn realtime(priority: u8) -> Result<(), String> {
    let param = libc::sched_param { sched_priority: i32::from(priority) };
    // SAFETY: `param` is valid for reads; 0 is the calling thread.
    let rc = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &param) };
    if rc == 0 {
        return Ok(());
    }
    let e = io::Error::last_os_error();
    Err(match e.raw_os_error() {
        Some(libc::EPERM) => format!(
            "no permission for real-time scheduling: needs CAP_SYS_NICE, or RLIMIT_RTPRIO of at least {priority} \
             (`ulimit -r {priority}`), or, in a container, a cpu.rt_runtime_us above 0"
        ),
        _ => format!("no real-time scheduling here: {e}"),
    })
}

/// Puts the calling thread back to ordinary scheduling.
pub fn ordinary() {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: `param` is valid for reads; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &param) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_to_a_core_it_may_use() {
        let allowed = cores();
        assert!(!allowed.is_empty());
        let last = allowed[allowed.len() - 1];
        std::thread::spawn(move || {
            pin_to(last).unwrap();
            assert_eq!(cores(), [last]);
        })
        .join()
        .unwrap();
        assert!(pin_to(1_000_000).is_err());
    }

    #[test]
    fn realtime_works_or_says_why_not() {
        std::thread::spawn(|| match realtime(1) {
            Ok(()) => ordinary(),
            Err(why) => assert!(why.contains("real-time"), "{why}"),
        })
        .join()
        .unwrap();
    }
}
