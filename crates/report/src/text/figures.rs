//! Figures as people read them.

/// The rule and width of vLLM's report.
pub(super) const RULE: usize = 50;

/// `label` in 40 columns, then the value, padded as vLLM pads it.
pub(super) fn line(out: &mut String, label: &str, value: impl std::fmt::Display) {
    let value = value.to_string();
    out.push_str(&format!("{label:<40} {value:<10}\n"));
}

/// The same with two decimals.
pub(super) fn line2(out: &mut String, label: &str, value: f64) {
    line(out, label, format_args!("{value:.2}"));
}

/// The same without padding at the end, for our own lines; `n/a` for what is missing.
pub(super) fn own(out: &mut String, label: &str, value: Option<String>) {
    let value = value.unwrap_or_else(|| "n/a".to_owned());
    out.push_str(&format!("{label:<40} {value}\n"));
}

/// A title in the middle of a rule.
pub(super) fn title(out: &mut String, text: &str, c: char) {
    let missing = RULE.saturating_sub(text.chars().count());
    let left = missing / 2;
    out.extend(std::iter::repeat_n(c, left));
    out.push_str(text);
    out.extend(std::iter::repeat_n(c, missing - left));
    out.push('\n');
}

/// Nanoseconds as milliseconds, with three or four figures that matter.
pub(super) fn ms(ns: f64) -> String {
    let ms = ns * 1e-6;
    match ms {
        _ if ms.is_infinite() => "inf".to_owned(),
        ..10.0 => format!("{ms:.3}"),
        ..100.0 => format!("{ms:.2}"),
        ..1_000.0 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    let p = share * 100.0;
    match p {
        0.0 => "0 %".to_owned(),
        100.0 => "100 %".to_owned(),
        // Never round to a perfection that was not reached.
        99.95..100.0 => format!("{:.3} %", (p * 1e3).floor() / 1e3),
        ..0.1 => format!("{p:.3} %"),
        _ => format!("{p:.1} %"),
    }
}

/// A rate with two decimals.
pub(super) fn rate(v: f64) -> String {
    format!("{v:.2}")
}
