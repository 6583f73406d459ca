//! What this process and its threads have used.

use tailbound_clock::Dur;

/// CPU time of the whole process so far, user and system.
pub fn process_cpu() -> Dur {
    Dur(crate::clock::process_cpu_ns())
}

/// CPU time of the calling thread so far, user and system.
pub fn thread_cpu() -> Dur {
    Dur(crate::clock::thread_cpu_ns())
}

/// The largest resident memory so far, in bytes; `None` where `/proc` does not say.
/// (`getrusage` would also count what the launching program had before `exec`.)
pub fn peak_rss() -> Option<u64> {
    status_kib("VmHWM:")
}

/// Resident memory now, in bytes; `None` where `/proc` does not say.
pub fn rss() -> Option<u64> {
    status_kib("VmRSS:")
}

fn status_kib(field: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_cpu_time_and_memory_is_counted() {
        let (thread, process) = (thread_cpu(), process_cpu());
        let mut x = 1u64;
        for i in 0..2_000_000u64 {
            x = std::hint::black_box(x.wrapping_mul(31).wrapping_add(i));
        }
        assert!(thread_cpu() > thread && process_cpu() > process);
        assert!(peak_rss() >= rss() && rss().is_some_and(|n| n > 100_000));
    }
}
