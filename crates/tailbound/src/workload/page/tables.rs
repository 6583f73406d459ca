use tailbound_report::page::{Block, Column, Table, brief, count};
use tailbound_trace::describe::{ArrivalFigures, Definition, Description, Grouped, LengthFigures, PrefixFigures};

fn table(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Block {
    let column = |(i, head): (usize, &&str)| {
        let head = (*head).to_owned();
        if i == 0 { Column::Text(head) } else { Column::Figure(head) }
    };
    Block::Table(Table {
        caption: caption.into(),
        columns: columns.iter().enumerate().map(column).collect(),
        rows,
        ..Table::default()
    })
}

fn maybe(x: Option<f64>) -> String {
    x.map_or("–".into(), brief)
}

/// Gaps and counts.
pub fn arrivals(a: &ArrivalFigures) -> Block {
    let mut rows = Vec::new();
    let mut row = |what: &str, value: String| rows.push(vec![what.to_owned(), value]);
    row("Mean rate (/s)", maybe(a.mean_rate_nminus1_over_span));
    row("Rows at the time of the row before", count(a.duplicate_timestamps));
    row("Rows earlier than the row before", count(a.order_inversions_in_file));
    if let Some(g) = &a.iat {
        row("Gap, mean (s)", brief(g.mean));
        row("Gap, p50, p99, max (s)", format!("{}, {}, {}", brief(g.p50), brief(g.p99), brief(g.max)));
        row("Gap CV", maybe(g.cv_pop));
        if let Some(f) = g.gamma_mle_on_positive_gaps {
            row("Gamma fit of the gaps: shape, scale (s)", format!("{}, {}", brief(f.shape), brief(f.scale)));
        }
        if let Some(f) = g.weibull_mle_on_positive_gaps {
            row("Weibull fit of the gaps: shape, scale (s)", format!("{}, {}", brief(f.shape), brief(f.scale)));
        }
    }
    for (word, counts) in [("1 s", a.counts_1s), ("10 s", a.counts_10s), ("60 s", a.counts_60s)] {
        if let Some(c) = counts {
            row(&format!("Index of dispersion, {word}"), maybe(c.index_of_dispersion));
            row(&format!("Busiest {word}, over the mean"), format!("{}, {}×", count(c.peak), maybe(c.peak_to_mean)));
        }
    }
    table("Arrivals", &["figure", "value"], rows)
}

const LENGTHS: [&str; 8] = ["quantity", "mean", "p1", "p50", "p90", "p99", "p99.9", "max"];

fn figures(word: &str, x: &LengthFigures) -> Vec<String> {
    let values = [x.mean, x.p1, x.p50, x.p90, x.p99, x.p999, x.max].map(brief);
    std::iter::once(word.to_owned()).chain(values).collect()
}

/// Percentiles of lengths.
pub fn lengths(d: &Description) -> Option<Block> {
    let good = d.failures.filter(|f| f.failed_rows > 0);
    let rows: Vec<Vec<String>> = [
        ("input tokens", d.input_length),
        ("output tokens", d.output_length),
        ("input tokens, without failures", good.and_then(|f| f.input)),
        ("output tokens, without failures", good.and_then(|f| f.output)),
        ("prompt characters", d.prompts.as_ref().and_then(|p| p.input_chars)),
        ("answer characters", d.prompts.as_ref().and_then(|p| p.output_chars)),
        ("duration at the source (s)", d.duration_s),
    ]
    .into_iter()
    .filter_map(|(word, x)| Some(figures(word, &x?)))
    .collect();
    (!rows.is_empty()).then(|| table("Lengths", &LENGTHS, rows))
}

/// The most of one kind that a table lists.
const MOST_GROUPS: usize = 20;

/// Shares and means by model, class and client.
pub fn groups(d: &Description) -> Vec<Block> {
    let Some(Grouped { models, classes, clients, .. }) = &d.groups else { return Vec::new() };
    let mut blocks = Vec::new();
    for (word, plural, map) in
        [("model", "Models", models), ("class", "Classes", classes), ("client", "Clients", clients)]
    {
        if map.is_empty() {
            continue;
        }
        let mut list: Vec<_> = map.iter().collect();
        list.sort_by_key(|(_, g)| std::cmp::Reverse(g.n));
        let left = list.len().saturating_sub(MOST_GROUPS);
        let rows = list.into_iter().take(MOST_GROUPS).map(|(name, g)| {
            let share = format!("{}\u{202f}%", brief(100.0 * g.share));
            let fails = g.fail_share.map_or("–".into(), |x| format!("{}\u{202f}%", brief(100.0 * x)));
            vec![name.clone(), count(g.n), share, maybe(g.mean_input), maybe(g.mean_output), maybe(g.gap_cv_pop), fails]
        });
        let heads = [word, "requests", "share", "mean input", "mean output", "gap CV", "failed"];
        blocks.push(table(plural, &heads, rows.collect()));
        if left > 0 {
            blocks.push(Block::Note(format!("… and {left} more, each with fewer requests.")));
        }
    }
    blocks
}

/// Turns and waits.
pub fn sessions(d: &Description) -> Vec<Block> {
    let Some(s) = &d.sessions else { return Vec::new() };
    let parts = [
        ("turns", s.turns),
        ("think time (s)", s.think_time_s),
        ("from arrival to next arrival (s)", s.turn_gap_s),
        ("elapsed (s)", s.elapsed_s),
    ];
    let rows: Vec<Vec<String>> = parts.into_iter().filter_map(|(word, x)| Some(figures(word, &x?))).collect();
    let note = format!(
        "{} sessions hold {} requests; {} requests belong to none. {} sessions have one turn; {} turns came before the \
         answer to the one before them.",
        count(s.count),
        count(s.rows_with_session),
        count(s.rows_without),
        count(s.single_turn),
        count(s.negative_think)
    );
    vec![Block::Note(note), table("Per session", &LENGTHS, rows)]
}

/// Hits by cache size.
pub fn caches(p: &PrefixFigures) -> Block {
    let rows = p.prefix_cache.iter().map(|c| {
        let size = c.capacity_blocks.map_or("without limit".into(), count);
        let tokens = c.token_hit_ratio.map_or("–".into(), |r| format!("{}\u{202f}%", brief(100.0 * r)));
        vec![size, format!("{}\u{202f}%", brief(100.0 * c.block_hit_ratio)), tokens, count(c.requests_with_hit)]
    });
    let heads = ["blocks", "of blocks hit", "of tokens hit", "requests with a hit"];
    table("Prefix cache (LRU)", &heads, rows.collect())
}

/// Read, used, dropped, remarked on.
pub fn account(d: &Description) -> Vec<Block> {
    let a = &d.accounting;
    let mut rows = vec![
        vec!["read".into(), count(a.rows_read), String::new()],
        vec!["used".into(), count(a.rows_emitted), String::new()],
    ];
    let of = |word: String, seen: &tailbound_trace::Seen| vec![word, count(seen.count), count(seen.first_row)];
    rows.extend(a.dropped.iter().map(|(why, seen)| of(format!("dropped: {}", why.word()), seen)));
    rows.extend(a.notices.iter().map(|(what, seen)| of(format!("note: {}", what.word()), seen)));
    vec![table("Rows", &["what became of them", "rows", "first at row"], rows)]
}

/// What the figures mean.
pub fn definitions(list: &[Definition]) -> Block {
    let rows = list.iter().map(|d| vec![d.figure.to_owned(), d.meaning.to_owned()]);
    let columns = vec![Column::Text("figure, by its name in JSON".into()), Column::Text("meaning".into())];
    Block::Table(Table { caption: "How figures are defined".into(), columns, rows: rows.collect(), ..Table::default() })
}
