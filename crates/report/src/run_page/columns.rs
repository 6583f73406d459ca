//! The requests in columns, packed for the page's script: what the timeline draws and what is downloaded from it.

use crate::Run;
use crate::page::{Attachment, Packed};
use crate::rows::outcome;
use tailbound_record::{Moment, Row};
use tailbound_stats::{departure, met, output_tokens};

/// The attachment's anchor.
pub(super) const ID: &str = "rows";
/// More rows are thinned out: every miss and failure stays, and an even sample of the others.
const MOST: usize = 100_000;

pub(super) fn attachment(run: &Run<'_>) -> Attachment {
    let mut rows: Vec<&Row> = run.rows.iter().collect();
    let all = rows.len();
    if all > MOST {
        let every = all.div_ceil(MOST);
        rows.retain(|r| !r.ok() || met(r, run.facts) == Some(false) || (r.id as usize).is_multiple_of(every));
    }
    let due = |r: &Row| {
        r.at.get(Moment::Scheduled)
            .filter(|_| run.facts.open_loop())
            .or_else(|| departure(r))
            .or(r.at.get(Moment::Scheduled))
    };
    let start = run.facts.start;
    rows.sort_by_key(|r| (due(r), r.id));
    let words = std::cell::RefCell::new(vec![]);
    let word = |text: String| {
        let mut words = words.borrow_mut();
        let known = words.iter().position(|w| *w == text);
        known.unwrap_or_else(|| {
            words.push(text);
            words.len() - 1
        }) as u64
    };
    let between = |a: Option<tailbound_clock::Time>, b: Option<tailbound_clock::Time>| {
        a.zip(b).map(|(a, b)| b.since(a).ns() / 1000)
    };
    let over =
        |r: &Row| r.at.get(Moment::StreamEnd).or_else(|| Moment::ALL.into_iter().filter_map(|m| r.at.get(m)).max());
    let mut packed = Packed::new(rows.len());
    packed.rising("due_us", rows.iter().map(|r| due(r).map(|t| t.since(start).ns() / 1000)));
    packed.column("id", rows.iter().map(|r| Some(r.id)));
    packed.column("class", rows.iter().map(|r| Some(u64::from(r.class))));
    packed.column("wait_us", rows.iter().map(|r| between(due(r), departure(r))));
    packed.column("ttft_us", rows.iter().map(|r| between(departure(r), r.at.get(Moment::FirstToken))));
    packed.column("decode_us", rows.iter().map(|r| between(r.at.get(Moment::FirstToken), r.at.get(Moment::LastToken))));
    packed.column("life_us", rows.iter().map(|r| between(departure(r), over(r))));
    packed.column("input_tokens", rows.iter().map(|r| r.prompt_tokens().map(u64::from)));
    packed.column("cached_tokens", rows.iter().map(|r| r.tokens.cached_server.map(u64::from)));
    packed.column("output_tokens", rows.iter().map(|r| r.ok().then(|| u64::from(output_tokens(r).0))));
    packed.column("outcome", rows.iter().map(|r| Some(word(outcome(r, run.facts)))));
    let left_out = all - rows.len();
    packed.finish(ID, "requests.csv", &words.into_inner(), left_out)
}
