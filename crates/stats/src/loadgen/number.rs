//! Numbers as a C++ stream prints them.

/// `std::ostream << double` with its default six significant digits (`%g`).
pub fn general(value: f64) -> String {
    if let Some(word) = not_finite(value) {
        return word;
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return without_trailing_zeros(&format!("{value:.*}", (5 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.abs())
}

/// `std::fixed` with that many decimals.
pub fn fixed(value: f64, decimals: usize) -> String {
    not_finite(value).unwrap_or_else(|| format!("{value:.decimals$}"))
}

fn not_finite(value: f64) -> Option<String> {
    if value.is_nan() {
        // What x86 makes of 0 / 0, as glibc prints it.
        return Some("-nan".into());
    }
    if value.is_infinite() {
        return Some(if value > 0.0 { "inf".into() } else { "-inf".into() });
    }
    None
}

fn without_trailing_zeros(digits: &str) -> String {
    if !digits.contains('.') {
        return digits.to_owned();
    }
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_significant_digits_like_printf_g() {
        for (value, text) in [
            (0.0, "0"),
            (500.0, "500"),
            (666.6666666, "666.667"),
            (1.5e6, "1.5e+06"),
            (999_999.5, "1e+06"),
            (999_999.4, "999999"),
            (8.75964e-07, "8.75964e-07"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.99, "0.99"),
            (-17.25, "-17.25"),
            (1.08e14, "1.08e+14"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(general(value), text);
        }
    }
}
