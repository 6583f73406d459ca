//! Figures inside sentences.

/// Nanoseconds in the unit that reads best.
pub(super) fn ms(ns: f64) -> String {
    let ms = ns * 1e-6;
    match ms {
        0.0..0.995 => format!("{ms:.2} ms"),
        ..9.95 => format!("{ms:.1} ms"),
        ..995.0 => format!("{ms:.0} ms"),
        _ => format!("{:.1} s", ms * 1e-3),
    }
}

/// A share.
pub(super) fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p < 10.0 { format!("{p:.1} %") } else { format!("{p:.0} %") }
}

/// A deviation.
pub(super) fn signed_percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}
