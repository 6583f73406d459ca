//! Wall-clock times as LoadGen's logs spell them, from milliseconds since 1970 (UTC).

/// `MM-DD-YYYY HH:MM:SS.mmm`.
pub fn for_power(unix_ms: i64) -> String {
    let (year, month, day) = civil(unix_ms.div_euclid(86_400_000));
    let (h, m, s, ms) = clock(unix_ms);
    format!("{month:02}-{day:02}-{year:04} {h:02}:{m:02}:{s:02}.{ms:03}")
}

/// `YYYY-MM-DDTHH:MM:SSZ`.
pub fn iso8601(unix_ms: i64) -> String {
    let (year, month, day) = civil(unix_ms.div_euclid(86_400_000));
    let (h, m, s, _) = clock(unix_ms);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}Z")
}

fn clock(unix_ms: i64) -> (i64, i64, i64, i64) {
    let ms = unix_ms.rem_euclid(86_400_000);
    (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000)
}

/// Year, month and day of a day count since 1970-01-01 (Hinnant's `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_calendars() {
        assert_eq!(iso8601(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso8601(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(for_power(1_796_047_208_528), "11-30-2026 14:00:08.528");
    }
}
