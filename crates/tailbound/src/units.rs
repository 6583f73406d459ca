//! Numbers with units, as people write them: `250ms`, `92/s`, `4k`.

use tailbound_clock::Dur;

/// A duration; a bare number counts in seconds.
pub fn duration(text: &str) -> Result<Dur, String> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "" | "s" | "sec" => number,
        "ns" => number * 1e-9,
        "us" | "µs" => number * 1e-6,
        "ms" => number * 1e-3,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        "d" => number * 86_400.0,
        _ => return Err(format!("unknown unit `{unit}` (use ns, us, ms, s, m, h or d, as in `250ms`)")),
    };
    if !seconds.is_finite() || seconds < 0.0 {
        return Err(format!("a duration can't be `{text}`"));
    }
    Ok(Dur::from_secs_f64(seconds))
}

/// A rate in events per second: `92`, `92/s`, `5.5/min`, `2k/s`, `inf`.
pub fn rate(text: &str) -> Result<f64, String> {
    let (amount, per) = text.split_once('/').unwrap_or((text, "s"));
    let seconds = match per.trim() {
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("unknown unit `/{other}` (use /s, /min or /h, as in `92/s`)")),
    };
    // Range and sense are the plan's to judge; here only the spelling counts, so `-1` and `inf` pass.
    match amount.trim() {
        "inf" | "Infinity" => Ok(f64::INFINITY),
        "-inf" => Ok(f64::NEG_INFINITY),
        amount => Ok(magnitude(amount)? / seconds),
    }
}

/// A whole number that is not negative: `1000`, `1_000`, `4k`, `1.5M`.
pub fn count(text: &str) -> Result<u64, String> {
    let value = magnitude(text)?;
    if value < 0.0 || value != value.trunc() || value > 9e15 {
        return Err(format!("`{text}` is not a whole number of things"));
    }
    Ok(value as u64)
}

/// As [`count32`], and at least one.
pub fn some32(text: &str) -> Result<u32, String> {
    match count32(text)? {
        0 => Err("must be at least 1".into()),
        n => Ok(n),
    }
}

/// As [`count`], for 32 bits.
pub fn count32(text: &str) -> Result<u32, String> {
    u32::try_from(count(text)?).map_err(|_| format!("`{text}` is too large"))
}

fn magnitude(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        _ => return Err(format!("unknown suffix `{unit}` (use k, M or G, as in `4k`)")),
    };
    Ok(number * factor)
}

fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let numeric = |(i, c): (usize, char)| {
        let exponent =
            (c == 'e' || c == 'E') && text[i + 1..].starts_with(|d: char| d.is_ascii_digit() || d == '-' || d == '+');
        let sign = (c == '-' || c == '+') && (i == 0 || text[..i].ends_with(['e', 'E']));
        c.is_ascii_digit() || c == '.' || c == '_' || exponent || sign
    };
    let end = text.char_indices().find(|&at| !numeric(at)).map_or(text.len(), |(i, _)| i);
    let number = text[..end].replace('_', "");
    let number = number.parse().map_err(|_| format!("`{text}` is not a number"))?;
    Ok((number, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_units_and_bare_seconds() {
        assert_eq!(duration("250ms"), Ok(Dur::from_ms(250)));
        assert_eq!(duration("1.5"), Ok(Dur::from_ms(1500)));
        assert_eq!(duration("2 min"), Ok(Dur::from_secs(120)));
        assert_eq!(duration("1e-3s"), Ok(Dur::from_ms(1)));
        assert!(duration("3 parsecs").unwrap_err().contains("parsecs"));
        assert!(duration("-1s").is_err());
        assert!(duration("").is_err());
    }

    #[test]
    fn rates_and_counts_take_suffixes() {
        assert_eq!(rate("92/s"), Ok(92.0));
        assert_eq!(rate("120/min"), Ok(2.0));
        assert_eq!(rate("2k"), Ok(2000.0));
        assert_eq!(rate("inf"), Ok(f64::INFINITY));
        assert_eq!(rate("-1"), Ok(-1.0));
        assert!(rate("fast").is_err());
        assert_eq!(count("4k"), Ok(4000));
        assert_eq!(count("1_000"), Ok(1000));
        assert_eq!(count("1.5M"), Ok(1_500_000));
        assert!(count("1.5").is_err());
        assert!(count("-1").is_err());
    }
}
