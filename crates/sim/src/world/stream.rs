//! Tokens of answers get into their rows: together where every answer of a replica got one, one by one otherwise.

use super::World;
use super::flights::{Flight, Stream};
use tailbound_clock::Time;
use tailbound_engine::Emit;
use tailbound_record::{Chunks, Moment, Row};

/// Moments of a first token.
const FIRST: [Moment; 5] =
    [Moment::Headers, Moment::FirstByte, Moment::FirstEvent, Moment::FirstToken, Moment::FirstVisible];

impl World<'_, '_> {
    /// Brings a replica up to now where nobody was to be woken. Comes before everything else that happens to it.
    pub(super) fn catch_up(&mut self, replica: u32) {
        if let Some(last) = self.replicas[replica as usize].pass(self.now) {
            self.moved = self.moved.max(last);
        }
    }

    /// A step has ended: whatever of it isn't one more token of a listed answer is in `self.emitted`.
    pub(super) fn list(&mut self, replica: u32) {
        let r = &mut self.replicas[replica as usize];
        if !r.sort_out(&mut self.emitted) {
            return self.write_all_down(replica);
        }
        if r.steps.listed.is_empty() && !r.steps.are_many() {
            return;
        }
        r.steps.push(self.now);
        self.moved = self.now;
        if r.steps.are_many() {
            let oldest = r.steps.listed.iter().filter_map(|id| match self.flights.get(*id)?.stream {
                Stream::Listed(from) => Some(from),
                _ => None,
            });
            let oldest = oldest.min().unwrap_or(r.steps.next());
            r.steps.forget_before(oldest);
        }
    }

    /// One token or several of an answer that isn't listed, or its first.
    pub(super) fn note(&mut self, replica: u32, emit: &Emit) {
        let Some(flight) = self.flights.get_mut(emit.id.0) else { return };
        let steps = &mut self.replicas[replica as usize].steps;
        // A listed one that ends: its last token is in the list.
        if let Stream::Listed(_) = flight.stream {
            return;
        }
        steps.apart -= usize::from(flight.stream == Stream::Apart);
        note_tokens(&mut flight.row, self.now, emit);
        flight.stream = Stream::Listed(steps.next());
        steps.listed.push(emit.id.0);
    }

    /// A request's tokens so far, before it ends.
    pub(super) fn write_down(&mut self, number: u64) {
        let Some(flight) = self.flights.get_mut(number) else { return };
        let steps = &mut self.replicas[flight.row.worker as usize].steps;
        match flight.stream {
            Stream::Silent => return,
            Stream::Apart => steps.apart -= 1,
            Stream::Listed(from) => {
                take(flight, steps.since(from));
                steps.unlist(number);
            }
        }
        flight.stream = Stream::Silent;
    }

    /// The tokens so far of all answers under way at a replica; they are apart from then on.
    pub(super) fn write_all_down(&mut self, replica: u32) {
        let steps = &mut self.replicas[replica as usize].steps;
        for number in std::mem::take(&mut steps.listed) {
            let Some(flight) = self.flights.get_mut(number) else { continue };
            let Stream::Listed(from) = flight.stream else { continue };
            take(flight, steps.since(from));
            flight.stream = Stream::Apart;
            steps.apart += 1;
        }
        steps.forget_before(steps.next());
    }
}

/// One token with each of these steps.
fn take(flight: &mut Flight, ends: &[Time]) {
    let Some(last) = ends.last() else { return };
    let row = &mut flight.row;
    for at in ends {
        row.net.reads += 1;
        row.chunks.push(*at, row.net.reads, 1, true);
    }
    row.at.set(Moment::LastToken, *last);
}

/// Tokens came out.
fn note_tokens(row: &mut Row, now: Time, emit: &Emit) {
    if emit.first == 0 {
        FIRST.iter().for_each(|moment| row.at.set(*moment, now));
        row.chunks = Chunks::with_capacity(row.tokens.output_asked.unwrap_or(1) as usize);
        row.tokens.cached_server = Some(emit.cached);
    }
    row.net.reads += 1;
    row.chunks.push(now, row.net.reads, emit.tokens as u16, true);
    row.at.set(Moment::LastToken, now);
}
