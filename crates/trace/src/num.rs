//! Numbers as files write them, exactly: decimals to integers without a float in between.

use crate::account::Drop;

/// A decimal (`12`, `-0.5`, `61.114`, `1e3`) times 10^`shift`, rounded to the nearest integer, halves away from zero.
/// `shift` 9 turns seconds into nanoseconds, 6 milliseconds.
pub(crate) fn scaled(text: &[u8], shift: i32) -> Result<i64, Drop> {
    let d = decimal(text)?;
    let power = shift - d.fraction_digits + d.exponent;
    let value = match power {
        0.. => pow10(power).and_then(|p| d.digits.checked_mul(p)).ok_or(Drop::OutOfRange)?,
        _ => {
            let Some(unit) = pow10(-power) else { return Ok(0) };
            (d.digits + unit / 2) / unit
        }
    };
    let value = i64::try_from(value).map_err(|_| Drop::OutOfRange)?;
    Ok(if d.negative { -value } else { value })
}

/// A count: `472`, or `472.0` as some tools re-save it. Negative, fractional and blank are refused, each by its own name.
pub(crate) fn count(text: &[u8]) -> Result<u32, Drop> {
    let text = text.trim_ascii();
    if !text.is_empty() && text.len() <= 9 && text.iter().all(u8::is_ascii_digit) {
        return Ok(text.iter().fold(0, |n, b| n * 10 + u32::from(b - b'0')));
    }
    let d = decimal(text)?;
    if d.negative && d.digits != 0 {
        return Err(Drop::Negative);
    }
    let power = d.exponent - d.fraction_digits;
    let whole = match power {
        0.. => pow10(power).and_then(|p| d.digits.checked_mul(p)).ok_or(Drop::OutOfRange)?,
        _ => {
            let unit = pow10(-power).ok_or(Drop::NotANumber)?;
            if d.digits % unit != 0 {
                return Err(Drop::NotANumber);
            }
            d.digits / unit
        }
    };
    u32::try_from(whole).map_err(|_| Drop::OutOfRange)
}

/// Whether a decimal has a fractional part that is not zero.
pub(crate) fn has_fraction(text: &[u8]) -> bool {
    decimal(text).is_ok_and(|d| {
        let power = d.fraction_digits - d.exponent;
        power > 0 && pow10(power).is_none_or(|unit| d.digits % unit != 0)
    })
}

struct Decimal {
    negative: bool,
    digits: u128,
    fraction_digits: i32,
    exponent: i32,
}

fn decimal(text: &[u8]) -> Result<Decimal, Drop> {
    let text = text.trim_ascii();
    let (negative, mut rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let mut out = Decimal { negative, digits: 0, fraction_digits: 0, exponent: 0 };
    let (mut seen, mut point) = (false, false);
    while let Some((&b, tail)) = rest.split_first() {
        match b {
            b'0'..=b'9' => {
                seen = true;
                // 30 digits hold any time to the attosecond; further fraction digits say nothing.
                if out.digits < 10u128.pow(29) {
                    out.digits = out.digits * 10 + u128::from(b - b'0');
                    out.fraction_digits += i32::from(point);
                } else if !point {
                    return Err(Drop::OutOfRange);
                }
            }
            b'.' if !point => point = true,
            b'e' | b'E' if seen => {
                let exponent = std::str::from_utf8(tail).map_err(|_| Drop::NotANumber)?;
                out.exponent = exponent.parse().map_err(|_| Drop::NotANumber)?;
                if out.exponent.abs() > 1000 {
                    return Err(Drop::OutOfRange);
                }
                break;
            }
            _ => return Err(Drop::NotANumber),
        }
        rest = tail;
    }
    if seen { Ok(out) } else { Err(Drop::NotANumber) }
}

fn pow10(power: i32) -> Option<u128> {
    10u128.checked_pow(u32::try_from(power).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_become_nanoseconds_exactly() {
        for (text, ns) in [
            ("0", 0),
            ("61.114", 61_114_000_000),
            ("1e3", 1_000_000_000_000),
            ("-0.0000000015", -2),
            ("5.", 5_000_000_000),
        ] {
            assert_eq!(scaled(text.as_bytes(), 9), Ok(ns), "{text}");
        }
        assert_eq!(scaled(b"19440110.0", 9), Ok(19_440_110_000_000_000));
        assert_eq!(scaled(b"1e-40", 9), Ok(0));
        assert_eq!(scaled(b"99999999999999", 9), Err(Drop::OutOfRange));
    }

    #[test]
    fn counts_are_counts() {
        for (text, want) in [
            ("472", Ok(472)),
            ("472.0", Ok(472)),
            (" 7 ", Ok(7)),
            ("4.7e2", Ok(470)),
            ("-0", Ok(0)),
            ("-5", Err(Drop::Negative)),
            ("4.5", Err(Drop::NotANumber)),
            ("", Err(Drop::NotANumber)),
            ("abc", Err(Drop::NotANumber)),
            (".", Err(Drop::NotANumber)),
            ("nan", Err(Drop::NotANumber)),
            ("4294967296", Err(Drop::OutOfRange)),
        ] {
            assert_eq!(count(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn fractions_are_seen() {
        assert!(has_fraction(b"61.114") && has_fraction(b"5e-1"));
        assert!(!has_fraction(b"61.0") && !has_fraction(b"61") && !has_fraction(b"1.5e1"));
    }
}
