/// A count, exactly, its digits in threes: `27 303 999`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

/// A real number to three significant digits, without a tail of zeros: `0.00687`, `13.2`, `1 155`, `3.2e−12`.
pub fn brief(x: f64) -> String {
    if !x.is_finite() {
        return if x.is_nan() { "–".into() } else { format!("{}∞", if x < 0.0 { "−" } else { "" }) };
    }
    let sign = if x < 0.0 { "−" } else { "" };
    let size = x.abs();
    if size >= 999.5 {
        return if size < 1e15 { format!("{sign}{}", count(size.round() as u64)) } else { format!("{sign}{size:.2e}") };
    }
    if size == 0.0 {
        return "0".into();
    }
    if size < 1e-4 {
        return format!("{sign}{}", format!("{size:.2e}").replace('-', "−"));
    }
    let digits = (2 - size.log10().floor() as i32).clamp(0, 7) as usize;
    let text = format!("{size:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{sign}{text}")
}

/// A share in percent that does not round to a perfection that was not reached.
pub fn percent(share: f64) -> String {
    crate::text::percent(share).replace(' ', "\u{202f}")
}

/// Two figures as an interval, with its unit; nothing where there is none.
pub fn interval(range: Option<(f64, f64)>, unit: &str) -> String {
    range.map_or(String::new(), |(low, high)| format!("{}–{}{unit}", brief(low), brief(high)))
}

/// A tick's label: `0.5`, `20`, `5k`, `1M`.
pub(super) fn tick(x: f64) -> String {
    let (value, unit) = match x.abs() {
        1e9.. => (x / 1e9, "G"),
        1e6.. => (x / 1e6, "M"),
        1e3.. => (x / 1e3, "k"),
        _ => (x, ""),
    };
    // Ticks are round: twelve digits hide what floating point adds.
    let text = format!("{:.12}", value.abs());
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let sign = if x < 0.0 { "−" } else { "" };
    if value != 0.0 && value.abs() < 1e-4 {
        return format!("{sign}{:e}", value.abs()).replace('-', "−");
    }
    format!("{sign}{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_they_mean_something() {
        for (x, text) in [
            (0.0, "0"),
            (0.006_865_25, "0.00687"),
            (13.2499, "13.2"),
            (100.0, "100"),
            (999.6, "1\u{202f}000"),
            (1154.7, "1\u{202f}155"),
            (-0.25, "−0.25"),
            (3.21e-12, "3.21e−12"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(brief(x), text);
        }
        assert_eq!(count(27_303_999), "27\u{202f}303\u{202f}999");
        assert_eq!([0.1 + 0.2, 20.0, 1500.0, 2e6, -5.0].map(tick), ["0.3", "20", "1.5k", "2M", "−5"]);
    }
}
