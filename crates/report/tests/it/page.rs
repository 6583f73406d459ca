//! Pages: whatever goes in, what comes out is one well-formed file that loads nothing.

use proptest::prelude::*;
use tailbound_report::page::{Attachment, Point, figure};
use tailbound_report::page::{
    Axis, Block, Card, Column, Mark, Page, Plot, Scale, Section, Series, Strip, Table, Ticks, Tone,
};

fn plot(points: Vec<(f64, f64)>, x: Axis, y: Axis, mark: Mark) -> Plot {
    let series = vec![Series::new("a", mark, points.clone()), Series::new("b", Mark::Line, points)];
    Plot { title: "t".into(), finding: "f".into(), x, y, series }
}

fn page(text: &str, plots: Vec<Plot>) -> Page {
    let table = Table {
        caption: text.into(),
        columns: vec![Column::Text(text.into()), Column::Figure("n".into())],
        rows: vec![vec![text.into(), text.into()]],
        invalid: vec![0],
    };
    let blocks = plots.into_iter().map(Block::Plot).chain([
        Block::Table(table),
        Block::Note(text.into()),
        Block::Beware(text.into()),
    ]);
    Page {
        title: text.into(),
        kind: text.into(),
        lead: text.into(),
        verdict: Some(Strip {
            tone: Tone::Void,
            word: text.into(),
            sentence: text.into(),
            reasons: vec![(text.into(), text.into())],
            cautions: vec![(text.into(), String::new())],
        }),
        cards: vec![Card { label: text.into(), value: text.into(), detail: text.into(), void: true }],
        sections: vec![Section { id: "one".into(), heading: text.into(), blocks: blocks.collect() }],
        absent: vec![text.into()],
        attachments: vec![Attachment::json("one", text, format!("\"{text}\""))],
        footer: text.into(),
    }
}

/// Names of the elements opened and closed, in order; fails where they do not nest.
fn nests(html: &str) -> Result<usize, String> {
    const EMPTY: [&str; 11] =
        ["meta", "link", "line", "rect", "circle", "path", "br", "!doctype", "input", "polygon", "?xml"];
    let (mut open, mut seen, mut rest) = (Vec::new(), 0, html);
    while let Some(at) = rest.find('<') {
        let end = at + rest[at..].find('>').ok_or("an element without an end")?;
        let tag = &rest[at + 1..end];
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default().to_owned();
        seen += 1;
        if let Some(closed) = tag.strip_prefix('/') {
            if open.pop().as_deref() != Some(closed) {
                return Err(format!("</{closed}> closes something else"));
            }
        } else if !EMPTY.contains(&name.as_str()) {
            open.push(name.clone());
        }
        rest = &rest[end + 1..];
        if matches!(name.as_str(), "style" | "script") && !tag.starts_with('/') {
            rest = &rest[rest.find(&format!("</{name}")).ok_or("no end of style or script")?..];
        }
    }
    if open.is_empty() { Ok(seen) } else { Err(format!("{open:?} are never closed")) }
}

/// The page without what is in its script elements: its own script, which no input reaches, and data, which nobody reads as markup.
fn told(html: &str) -> String {
    let mut pieces = html.split("<script");
    let mut told = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        told += "<script></script>";
        told += piece.split_once("</script>").expect("its end").1;
    }
    told
}

#[test]
fn hostile_text_stays_text() {
    let attack = "</script><img src=x onerror=alert(1)>\" onload='x' \u{202e}&amp;\u{0}";
    let plain = page("plain", Vec::new()).html();
    let html = page(attack, Vec::new()).html();
    assert_eq!(nests(&html), nests(&plain), "not one element more");
    let html = told(&html);
    assert!(!html.contains('\u{202e}') && !html.contains('\0') && !html.contains("<img"));
    assert!(
        html.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot; onload=&#39;x&#39; \u{fffd}&amp;amp;")
    );
}

#[test]
fn a_page_may_load_nothing_and_runs_only_its_own_script() {
    let html = page("x", Vec::new()).html();
    assert!(html.contains("default-src 'none'") && !html.contains("unsafe-inline"));
    for outside in ["http:", "https:", "//", "url(", "@import", "style=\""] {
        assert!(!told(&html).contains(outside), "{outside}");
    }
    assert_eq!(html.matches("<script>").count(), 1);
}

#[test]
fn every_kind_of_mark_is_drawn_twice_and_stands_in_a_table() {
    for mark in [Mark::Line, Mark::Step, Mark::Frontier, Mark::Bars(1.0), Mark::Dots, Mark::Level, Mark::Upright] {
        let html =
            page("x", vec![plot(vec![(0.0, 1.0), (1.0, 3.0)], Axis::linear("x"), Axis::linear("y"), mark)]).html();
        nests(&html).unwrap();
        assert_eq!(html.matches("role=\"img\"").count(), 2, "{mark:?}");
        assert_eq!(html.matches("<tr data-f=").count(), 4, "{mark:?}");
    }
}

#[test]
fn what_does_not_count_is_hollow_and_named_so_in_every_plot_and_table() {
    let points =
        || vec![Point::within(1.0, 0.5, Some((0.4, 0.6))), Point::within(2.0, 0.9, None).counting_unless(true)];
    let curve = || figure::Curve { name: "a".into(), points: points() };
    let (x, y) = (|| Axis::linear("x"), || Axis::linear("y"));
    let rows = [figure::Estimate { name: "TTFT".into(), value: Some(1.0), interval: Some((0.5, 1.5)), invalid: true }];
    let shown =
        figure::Attainment { probes: points(), required: 0.9, capacity: Some((1.0, 1.5)), ..Default::default() };
    for plot in [
        figure::attainment("f", x(), &shown),
        figure::pareto("t", "f", x(), y(), &[curve()]),
        figure::forest("t", "f", x(), &rows, 0.0, Some((-0.1, 0.1))),
    ] {
        let html = page("x", vec![plot.clone()]).html();
        nests(&html).unwrap();
        assert!(html.contains("hollow: INVALID") && html.contains("(INVALID)"), "{}", plot.title);
        assert_eq!(html.matches(" class=\"hollow\" ").count(), 2, "{}", plot.title);
        nests(&plot.svg()).unwrap();
        assert!(plot.svg().contains("#0072b2") && !plot.svg().contains("var("));
    }
    let plot = figure::lines("t", "f", x(), y(), &[curve()]);
    assert!(page("x", vec![plot]).html().contains("class=\"band\""));
}

#[test]
fn a_gap_in_the_data_is_a_gap_in_the_line() {
    let broken = plot(vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)], Axis::linear("x"), Axis::linear("y"), Mark::Line);
    let path = broken.svg();
    assert_eq!(path.matches("h0").count(), 4, "two lines of two stretches: {path}");
}

fn axis() -> impl Strategy<Value = Axis> {
    prop_oneof![
        Just(Axis::linear("l")),
        Just(Axis::log("log")),
        Just(Axis::nines("nines")),
        (0.0..1e9f64).prop_map(|s| Axis::seconds("time", (0.0, s))),
        Just(Axis { scale: Scale::Linear, ticks: Ticks::Named(vec![(1.0, "one".into())]), ..Axis::linear("named") }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_is_plotted_stays_inside_and_is_a_number(
        points in prop::collection::vec((prop::num::f64::ANY, prop::num::f64::ANY), 0..20), x in axis(), y in axis(),
    ) {
        let html = page("x", vec![plot(points, x, y, Mark::Step)]).html();
        prop_assert!(nests(&html).is_ok());
        let html = told(&html);
        for bad in ["NaN", "inf", "Infinity"] {
            prop_assert!(!html.contains(&format!("\"{bad}")) && !html.contains(&format!(" {bad}")), "{}", bad);
        }
    }

    #[test]
    fn any_text_nests(text in "\\PC{0,30}") {
        prop_assert!(nests(&page(&text, Vec::new()).html()).is_ok());
    }
}
