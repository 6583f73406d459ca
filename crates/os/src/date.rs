//! Local dates, for file names and display only.

use std::fmt;

/// A moment of the wall clock in the local time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalDate {
    /// Year, month (1–12), day (1–31).
    pub ymd: (i32, u32, u32),
    /// Hour, minute, second.
    pub hms: (u32, u32, u32),
    /// Microseconds within the second.
    pub micros: u32,
}

impl LocalDate {
    /// Of a Unix time in nanoseconds.
    pub fn of_unix_ns(ns: u64) -> LocalDate {
        let seconds = (ns / 1_000_000_000) as libc::time_t;
        // SAFETY: `tm` is plain old data, for which all-zero bytes are a value; `localtime_r` only writes to the one it is given.
        let tm = unsafe {
            let mut tm: libc::tm = std::mem::zeroed();
            libc::localtime_r(&seconds, &mut tm);
            tm
        };
        LocalDate {
            ymd: (tm.tm_year + 1900, tm.tm_mon as u32 + 1, tm.tm_mday as u32),
            hms: (tm.tm_hour as u32, tm.tm_min as u32, tm.tm_sec as u32),
            micros: (ns % 1_000_000_000 / 1000) as u32,
        }
    }

    /// `YYYYmmdd-HHMMSS`.
    pub fn compact(&self) -> String {
        let ((y, m, d), (h, min, s)) = (self.ymd, self.hms);
        format!("{y:04}{m:02}{d:02}-{h:02}{min:02}{s:02}")
    }
}

impl fmt::Display for LocalDate {
    /// ISO 8601 as Python's `isoformat` writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((y, m, d), (h, min, s)) = (self.ymd, self.hms);
        write!(f, "{y:04}-{m:02}-{d:02}T{h:02}:{min:02}:{s:02}.{:06}", self.micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_reads_as_python_writes_it() {
        // Noon on 2026-11-30 UTC: the same day, month and year in every zone but those beyond ±12 h.
        let date = LocalDate::of_unix_ns(1_796_040_000_123_456_789);
        assert_eq!((date.ymd.0, date.ymd.1, date.micros), (2026, 11, 123_456));
        assert_eq!(date.compact().len(), 15);
        assert!(date.to_string().starts_with("2026-11-"));
        assert!(date.to_string().ends_with(".123456"));
    }
}
