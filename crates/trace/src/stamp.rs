//! Dates as files write them, to nanoseconds since the Unix epoch.

use crate::account::Drop;

/// `2023-11-16 18:15:46.6805900`, with `T` or a blank between, no to nine (or more) fractional digits, and nothing, `Z` or
/// `±hh:mm` behind. Without a zone it is taken as UTC.
pub(crate) fn date(text: &[u8]) -> Result<i64, Drop> {
    let text = text.trim_ascii();
    if text.len() < 19 || text[4] != b'-' || text[7] != b'-' || !matches!(text[10], b' ' | b'T' | b't') {
        return Err(Drop::BadTime);
    }
    if text[13] != b':' || text[16] != b':' {
        return Err(Drop::BadTime);
    }
    let n = |from: usize, to: usize| digits(&text[from..to]);
    let (year, month, day) = (n(0, 4)?, n(5, 7)?, n(8, 10)?);
    let (hour, minute, second) = (n(11, 13)?, n(14, 16)?, n(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return Err(Drop::BadTime);
    }
    let (fraction, rest) = fraction(&text[19..]);
    let secs = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - zone(rest)?;
    secs.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(fraction)).ok_or(Drop::OutOfRange)
}

fn digits(text: &[u8]) -> Result<i64, Drop> {
    let mut n = 0;
    for b in text {
        if !b.is_ascii_digit() {
            return Err(Drop::BadTime);
        }
        n = n * 10 + i64::from(b - b'0');
    }
    Ok(n)
}

/// Nanoseconds of `.123…`, and what follows. Digits beyond the ninth are cut.
fn fraction(text: &[u8]) -> (i64, &[u8]) {
    let Some(tail) = text.strip_prefix(b".") else { return (0, text) };
    let len = tail.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut ns = 0;
    for i in 0..9 {
        ns = ns * 10 + tail[..len].get(i).map_or(0, |digit| i64::from(digit - b'0'));
    }
    (ns, &tail[len..])
}

/// Seconds east of UTC.
fn zone(text: &[u8]) -> Result<i64, Drop> {
    let text = text.trim_ascii();
    let (sign, rest) = match text {
        [] | [b'Z' | b'z'] | b"UTC" => return Ok(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return Err(Drop::BadTime),
    };
    let (h, m) = match rest.len() {
        2 => (digits(rest)?, 0),
        4 => (digits(&rest[..2])?, digits(&rest[2..])?),
        5 if rest[2] == b':' => (digits(&rest[..2])?, digits(&rest[3..])?),
        _ => return Err(Drop::BadTime),
    };
    Ok(sign * (h * 3600 + m * 60))
}

/// Days since 1970-01-01 of the proleptic Gregorian calendar (Hinnant, "chrono-compatible low-level date algorithms").
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y - era * 400;
    let doy = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    era * 146_097 + doe - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_every_shape_seen() {
        for (text, ns) in [
            ("1970-01-01 00:00:00", 0),
            ("2023-11-16 18:17:03.9799600", 1_700_158_623_979_960_000),
            ("2023-11-16T18:17:03.979960Z", 1_700_158_623_979_960_000),
            ("2023-11-16 20:17:03.97996+02:00", 1_700_158_623_979_960_000),
            ("2024-02-29 00:00:02.123456789", 1_709_164_802_123_456_789),
            ("1969-12-31 23:59:59.5", -500_000_000),
        ] {
            assert_eq!(date(text.as_bytes()), Ok(ns), "{text}");
        }
        for text in ["", "2023-11-16", "2023-13-16 18:17:03", "2023-11-16 18:17:03 CET", "2023-11-16 25:17:03", "now"] {
            assert_eq!(date(text.as_bytes()), Err(Drop::BadTime), "{text}");
        }
    }
}
