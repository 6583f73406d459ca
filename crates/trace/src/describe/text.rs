//! The description for reading.

use crate::describe::{ArrivalFigures, Description, Grouped, LengthFigures, PrefixFigures, SessionFigures};
use std::fmt::{self, Display, Formatter};

impl Display for Description {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  ({})", self.file, self.format)?;
        account(f, self)?;
        if let Some(arrivals) = &self.arrivals {
            arrival_lines(f, arrivals)?;
        }
        if let Some(cycles) = &self.periodicity {
            if cycles.is_empty() {
                writeln!(f, "  cycles       none found")?;
            }
            for c in cycles {
                let (h, a, s) = (num(c.peak_at_h), num(100.0 * c.amplitude), num(c.strength));
                writeln!(
                    f,
                    "  cycle        {} h, peak at hour {h}, amplitude {a} % of the mean (strength {s})",
                    c.period_h
                )?;
            }
        }
        lengths(f, self)?;
        if let Some(groups) = &self.groups {
            group_lines(f, groups)?;
        }
        if let Some(sessions) = &self.sessions {
            session_lines(f, sessions)?;
        }
        if let Some(prefix) = &self.prefix {
            prefix_lines(f, prefix)?;
        }
        conversation_lines(f, self)
    }
}

fn account(f: &mut Formatter<'_>, d: &Description) -> fmt::Result {
    let a = &d.accounting;
    writeln!(f, "rows           {} read = {} used + {} dropped", a.rows_read, a.rows_emitted, a.rows_dropped())?;
    for (why, seen) in &a.dropped {
        writeln!(f, "  dropped      {}: {}, first at row {}", why.word(), seen.count, seen.first_row)?;
    }
    for (what, seen) in &a.notices {
        writeln!(f, "  note         {}: {}, first at row {}", what.word(), seen.count, seen.first_row)?;
    }
    Ok(())
}

fn arrival_lines(f: &mut Formatter<'_>, a: &ArrivalFigures) -> fmt::Result {
    let rate = a.mean_rate_nminus1_over_span.map_or("-".into(), num);
    writeln!(f, "arrivals       {} over {} s, {rate} /s", a.n, num(a.span_s))?;
    if let Some(gaps) = &a.iat {
        let cv = gaps.cv_pop.map_or("-".into(), num);
        let (p50, p99, max) = (num(gaps.p50), num(gaps.p99), num(gaps.max));
        writeln!(
            f,
            "  gaps         mean {} s, CV {cv}, p50 {p50}, p99 {p99}, max {max}; {} zero",
            num(gaps.mean),
            gaps.zero_gaps
        )?;
        if let Some(fit) = gaps.gamma_mle_on_positive_gaps {
            writeln!(f, "  Gamma fit    shape {}, scale {} s", num(fit.shape), num(fit.scale))?;
        }
        if let Some(fit) = gaps.weibull_mle_on_positive_gaps {
            writeln!(f, "  Weibull fit  shape {}, scale {} s", num(fit.shape), num(fit.scale))?;
        }
    }
    for (word, counts) in [("1 s", &a.counts_1s), ("10 s", &a.counts_10s), ("60 s", &a.counts_60s)] {
        if let Some(c) = counts {
            let iod = c.index_of_dispersion.map_or("-".into(), num);
            writeln!(
                f,
                "  per {word:<4}     dispersion {iod}, mean {}, peak {}, {} of {} empty",
                num(c.mean),
                c.peak,
                c.empty,
                c.windows
            )?;
        }
    }
    for (word, window) in [("60 s", &a.gap_cv_in_60s_windows), ("300 s", &a.gap_cv_in_300s_windows)] {
        if let Some(w) = window {
            writeln!(
                f,
                "  CV in {word:<5}  p5 {}, p50 {}, p95 {} ({} windows)",
                num(w.p5),
                num(w.p50),
                num(w.p95),
                w.windows_used
            )?;
        }
    }
    a.artefacts.iter().try_for_each(|line| writeln!(f, "  beware       {line}"))
}

fn lengths(f: &mut Formatter<'_>, d: &Description) -> fmt::Result {
    for (word, figures) in [("input", d.input_length), ("output", d.output_length)] {
        if let Some(figures) = figures {
            length_line(f, &format!("{word} tokens"), &figures)?;
        }
    }
    if let Some(r) = d.spearman_in_out {
        writeln!(f, "  in/out       Spearman {}", num(r))?;
    }
    if let Some(failures) = d.failures.filter(|x| x.failed_rows > 0) {
        writeln!(f, "failed         {} rows; without them:", failures.failed_rows)?;
        for (word, figures) in [("input", failures.input), ("output", failures.output)] {
            if let Some(figures) = figures {
                length_line(f, &format!("  {word}"), &figures)?;
            }
        }
    }
    d.duration_s.map_or(Ok(()), |figures| length_line(f, "duration (s)", &figures))
}

pub(crate) fn length_line(f: &mut Formatter<'_>, word: &str, x: &LengthFigures) -> fmt::Result {
    let (p1, p50, p90, p99, p999) = (num(x.p1), num(x.p50), num(x.p90), num(x.p99), num(x.p999));
    writeln!(
        f,
        "{word:<14} mean {}, p1 {p1}, p50 {p50}, p90 {p90}, p99 {p99}, p99.9 {p999}, max {}",
        num(x.mean),
        num(x.max)
    )
}

fn group_lines(f: &mut Formatter<'_>, groups: &Grouped) -> fmt::Result {
    for (word, map) in [("model", &groups.models), ("class", &groups.classes), ("client", &groups.clients)] {
        let mut list: Vec<_> = map.iter().collect();
        list.sort_by_key(|(_, g)| std::cmp::Reverse(g.n));
        for (name, g) in list.iter().take(8) {
            let part = |x: Option<f64>| x.map_or("-".into(), num);
            let (input, output, cv) = (part(g.mean_input), part(g.mean_output), part(g.gap_cv_pop));
            writeln!(
                f,
                "{word:<14} {name}: {} ({} %), in {input}, out {output}, gap CV {cv}",
                g.n,
                num(100.0 * g.share)
            )?;
        }
        if list.len() > 8 {
            writeln!(f, "               … and {} more", list.len() - 8)?;
        }
    }
    Ok(())
}

fn session_lines(f: &mut Formatter<'_>, s: &SessionFigures) -> fmt::Result {
    writeln!(
        f,
        "sessions       {} with {} rows; {} rows without; {} of one turn",
        s.count, s.rows_with_session, s.rows_without, s.single_turn
    )?;
    for (word, figures) in [("  turns", s.turns), ("  think (s)", s.think_time_s), ("  gap (s)", s.turn_gap_s)] {
        if let Some(figures) = figures {
            length_line(f, word, &figures)?;
        }
    }
    Ok(())
}

fn prefix_lines(f: &mut Formatter<'_>, p: &PrefixFigures) -> fmt::Result {
    writeln!(f, "prefix blocks  {} of {} tokens, {} distinct", p.hash_ids.total, p.block_tokens, p.hash_ids.distinct)?;
    for c in &p.prefix_cache {
        let size = c.capacity_blocks.map_or("infinite".into(), |n| n.to_string());
        let tokens = c.token_hit_ratio.map_or("-".into(), |r| num(100.0 * r));
        writeln!(f, "  cache {size:<8} hits {} % of blocks, {tokens} % of tokens", num(100.0 * c.block_hit_ratio))?;
    }
    if p.top_block_request_share >= 0.999 {
        writeln!(
            f,
            "  beware       every request holds the same block: the share of requests with a hit says nothing"
        )?;
    }
    if let Some(row) = p.first_partial_conflict_row {
        let n = p.partial_block_conflicts;
        writeln!(f, "  beware       {n} blocks occur both partly and differently filled, first at request {row}")?;
    }
    Ok(())
}

fn conversation_lines(f: &mut Formatter<'_>, d: &Description) -> fmt::Result {
    if let Some(c) = &d.conversations {
        writeln!(
            f,
            "entries        {}; {} with two messages or more; {} question-answer pairs",
            c.entries, c.entries_ge2, c.human_gpt_pairs
        )?;
    }
    let Some(p) = &d.prompts else { return Ok(()) };
    for (word, figures) in [("prompt chars", p.input_chars), ("answer chars", p.output_chars)] {
        if let Some(figures) = figures {
            length_line(f, word, &figures)?;
        }
    }
    Ok(())
}

/// Six significant digits, without a tail of zeros.
pub(crate) fn num(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return format!("{x}");
    }
    let digits = (5 - libm::floor(libm::log10(x.abs())) as i32).clamp(0, 12) as usize;
    let text = format!("{x:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
