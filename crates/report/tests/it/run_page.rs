//! The page of a run.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use crate::make::{self, Owned};
use base64::Engine;
use std::io::Read;
use tailbound_clock::Time;
use tailbound_record::{End, Finish, Moment, Row};
use tailbound_report::page::{Block, Packed, Page};
use tailbound_report::{About, Extras, Selection, run_page};
use tailbound_stats::{ClientHealth, Objectives, RunFacts};

fn page(owned: &Owned) -> Page {
    let about = About {
        command: "tailbound bench serve",
        target: "http://127.0.0.1:1",
        plan: "abc",
        seed: Some(3),
        health: &ClientHealth::default(),
        notes: &[],
    };
    run_page(&owned.run(), &about)
}

fn plots(page: &Page) -> usize {
    page.sections.iter().flat_map(|s| &s.blocks).filter(|b| matches!(b, Block::Plot(_))).count()
}

#[test]
fn an_invalid_run_says_so_across_every_plot_and_strikes_out_every_headline_and_row() {
    let owned = make::full();
    assert!(!owned.verdict.valid(), "this run is INVALID");
    let page = page(&owned);
    let html = page.html();
    assert!(plots(&page) >= 8);
    assert_eq!(html.matches("class=\"stamp\"").count(), 2 * plots(&page));
    assert!(page.svgs().len() == plots(&page) && page.svgs().iter().all(|(_, svg)| svg.contains("INVALID run")));
    assert_eq!(html.matches("<s>").count(), page.cards.len());
    assert!(page.cards.iter().all(|card| card.detail.starts_with("INVALID")));
    // What tells why it is INVALID stays readable, under a caption that says so.
    for caption in ["Failures, by kind (INVALID run)", "The client&#39;s condition (INVALID run)"] {
        assert!(html.contains(&format!("<caption>{caption}</caption>")), "{caption}");
    }
    assert!(html.contains("<h3>Timeline of requests</h3><p>INVALID run."));
    for caption in ["Percentiles, by nearest rank", "What requests were held to"] {
        let table = html.split(&format!("<caption>{caption}")).nth(1).unwrap().split("</table>").next().unwrap();
        assert_eq!(table.matches("<tr class=\"void\">").count(), table.matches("<tr").count() - 1, "{caption}");
    }
}

#[test]
fn a_valid_run_bears_no_such_mark() {
    let owned = make::plain();
    assert!(owned.verdict.valid(), "{:?}", owned.verdict.reasons);
    let html = page(&owned).html();
    assert!(!html.contains("class=\"stamp\"") && !html.contains("<s>") && !html.contains("class=\"void\""));
}

/// 10 requests a second for 60 s. The later one is sent, the more tokens it gets, and in the last half the first of them comes late.
fn overdriven(late_ms: u64) -> Owned {
    let row = |id: u64| {
        let (mut row, sent) = (Row::new(id), id * 100_000_000);
        for moment in [Moment::Scheduled, Moment::Released, Moment::WriteStart, Moment::Written] {
            row.at.set(moment, Time(sent));
        }
        let ttft = if id < 300 { 100 } else { late_ms };
        for token in 0..(8 + id / 40) {
            let at = Time(sent + ttft * 1_000_000 + token * 10_000_000);
            row.chunks.push(at, token as u32, 1, true);
            row.at.set_first(Moment::FirstToken, at);
            row.at.set(Moment::LastToken, at);
            row.at.set(Moment::StreamEnd, at);
        }
        row.end = End::Done(Finish::Length);
        row
    };
    let objectives = Objectives { all: vec!["ttft:200".parse().unwrap()], ..Objectives::default() };
    let facts = RunFacts { request_rate: Some(10.0), objectives, ..RunFacts::new(Time::ZERO, Time(62_000_000_000)) };
    Owned::new(facts, (0..600).map(row).collect(), Selection::default(), Extras::default())
}

#[test]
fn throughput_that_rises_while_goodput_falls_is_said_beside_the_verdict_and_over_the_plots() {
    let html = page(&overdriven(900)).html();
    assert_eq!(html.matches("Throughput rose while goodput fell").count(), 2);
    let (strip, over_time) = (html.find("<ul class=\"cautions\">").unwrap(), html.find("class=\"beware\"").unwrap());
    let at = html.find("Throughput rose while goodput fell").unwrap();
    assert!(strip < at && at < over_time);
    assert!(html.contains("but good requests from 9.9") && html.contains(" to 0/s."), "the figures stand with it");
    assert!(!page(&overdriven(150)).html().contains("Throughput rose"));
}

/// What the page's script does to get columns back.
fn unpacked(html: &str, id: &str) -> Vec<(String, Vec<Option<u64>>)> {
    let from = html.find(&format!("id=\"{id}\"")).unwrap();
    let (head, body) = html[from..].split_once('>').unwrap();
    let attribute = |name: &str| head.split(&format!(" data-{name}=\"")).nth(1).unwrap().split('"').next().unwrap();
    let packed = base64::engine::general_purpose::STANDARD.decode(body.split('<').next().unwrap()).unwrap();
    let (mut bytes, n) = (Vec::new(), attribute("n").parse::<usize>().unwrap());
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    let column = |(c, name): (usize, &str)| {
        let mut sum = 0;
        let value = |i: usize| (0..4).map(|b| u64::from(bytes[4 * n * c + b * n + i]) << (8 * b)).sum::<u64>();
        let mut read = |i: usize| {
            let value = value(i).checked_sub(1)?;
            sum += value;
            Some(if name.starts_with('+') { sum } else { value })
        };
        (name.trim_start_matches('+').to_owned(), (0..n).map(&mut read).collect())
    };
    attribute("columns").split(' ').enumerate().map(column).collect()
}

#[test]
fn packed_columns_come_back_as_they_went_in() {
    let rising = [Some(0), Some(0), None, Some(7), Some(4_000_000_000), Some(4_000_000_001)];
    let plain = [Some(0), None, Some(255), Some(256), Some(u64::from(u32::MAX) - 2), Some(u64::MAX)];
    let mut packed = Packed::new(6);
    packed.rising("due", rising.into_iter());
    packed.column("plain", plain.into_iter());
    let page = Page { attachments: vec![packed.finish("rows", "rows.csv", &[], 0)], ..Page::default() };
    let back = unpacked(&page.html(), "rows");
    let mut most = plain.to_vec();
    most[5] = Some(u64::from(u32::MAX) - 1);
    assert_eq!(back, [("due".to_owned(), rising.to_vec()), ("plain".to_owned(), most)]);
}

#[test]
fn a_pages_rows_are_those_of_the_run() {
    let owned = overdriven(900);
    let back = unpacked(&page(&owned).html(), "rows");
    let column = |name: &str| &back.iter().find(|(n, _)| n == name).unwrap().1;
    assert_eq!(
        (column("id").len(), column("due_us")[599], column("ttft_us")[599]),
        (600, Some(59_900_000), Some(900_000))
    );
    assert_eq!((column("output_tokens")[0], column("output_tokens")[599]), (Some(8), Some(22)));
}

#[test]
fn the_page_of_fifty_thousand_requests_is_small() {
    // Lengths and times as scattered as a real run's: what compresses well there must compress well here too.
    let mut rng = tailbound_clock::Seed(1).stream("rows");
    let row = |id: u64| {
        let (mut row, sent) = (Row::new(id), id * 10_000_000 + rng.below(9_000_000));
        for moment in [Moment::Scheduled, Moment::Released, Moment::WriteStart, Moment::Written] {
            row.at.set(moment, Time(sent));
        }
        let first = sent + 20_000_000 + rng.below(900_000_000);
        for (read, at) in [(0, first), (1, first + 50_000_000 + rng.below(9_000_000_000))] {
            row.chunks.push(Time(at), read, 100, true);
            row.at.set_first(Moment::FirstToken, Time(at));
            row.at.set(Moment::LastToken, Time(at));
            row.at.set(Moment::StreamEnd, Time(at));
        }
        row.tokens.prompt_server = Some(10 + rng.below(4000) as u32);
        row.tokens.output_server = Some(10 + rng.below(500) as u32);
        row.end = End::Done(Finish::Length);
        row
    };
    let rows: Vec<Row> = (0..50_000).map(row).collect();
    let facts = RunFacts { request_rate: Some(100.0), ..RunFacts::new(Time::ZERO, Time(510_000_000_000)) };
    let owned = Owned::new(facts, rows, Selection::default(), Extras::default());
    let html = page(&owned).html();
    let packed = html.split("id=\"rows\"").nth(1).unwrap().split("</script>").next().unwrap();
    assert!(packed.len() < 2_000_000, "{} bytes of columns", packed.len());
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
}
