//! Kubernetes quantities and Go durations.

use serde_json::Value;
use tailbound_clock::Dur;

/// A whole number, or a text with a suffix: `5000`, `"1Gi"`, `"500M"`.
pub(super) fn quantity(value: &Value) -> Option<u64> {
    if let Some(n) = value.as_u64() {
        return Some(n);
    }
    let text = value.as_str()?.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let factor = match &text[digits..] {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// `1m30s`, `200ms`, `1.5s`.
pub(super) fn duration(text: &str) -> Option<Dur> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(Dur::ZERO);
    }
    let mut total = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        total += number * unit;
        rest = &rest[letters..];
    }
    Some(Dur::from_secs_f64(total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_have_binary_and_decimal_suffixes() {
        assert_eq!(quantity(&json!(5000)), Some(5000));
        assert_eq!(quantity(&json!("1Gi")), Some(1 << 30));
        assert_eq!(quantity(&json!("2G")), Some(2_000_000_000));
        assert_eq!(quantity(&json!("2X")), None);
        assert_eq!(quantity(&json!(-1)), None);
    }

    #[test]
    fn durations_are_sums() {
        assert_eq!(duration("1m30s"), Some(Dur::from_secs(90)));
        assert_eq!(duration("200ms"), Some(Dur::from_ms(200)));
        assert_eq!(duration("1.5s"), Some(Dur::from_ms(1500)));
        assert_eq!(duration("0"), Some(Dur::ZERO));
        assert_eq!(duration("5"), None);
        assert_eq!(duration(""), None);
    }
}
