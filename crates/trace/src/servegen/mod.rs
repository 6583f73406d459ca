//! ServeGen's client pools.

/// Whether the first line of a table is a ServeGen client's window: `t,rate,cv,pattern,p1,p2`.
pub(crate) fn is_trace_line(cells: &[String]) -> bool {
    let [t, rate, cv, pattern, ..] = cells else { return false };
    cells.len() == 6
        && [t, rate, cv].iter().all(|c| c.parse::<f64>().is_ok())
        && matches!(pattern.as_str(), "" | "Gamma" | "Weibull")
}
