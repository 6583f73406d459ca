use super::pace::Pace;
use tailbound_clock::Time;

/// When a replica's steps ended, as far as answers still need it.
///
/// Most steps add a token to every answer under way. That is said once, here, and each answer takes what is its own when it ends.
#[derive(Debug)]
pub(crate) struct Steps {
    ends: Vec<Time>,
    /// The number of the first in `ends`.
    first: u64,
    /// So many ends are looked through for those that nobody needs.
    many: usize,
    /// Requests that got a token in every step since they were listed.
    pub(crate) listed: Vec<u64>,
    /// Requests whose answer has begun and that aren't listed.
    pub(crate) apart: usize,
    /// Times a sequence lost its blocks, as of the last step.
    pub(super) preemptions: u64,
}

const MANY: usize = 4096;

impl Steps {
    pub(super) fn new() -> Steps {
        Steps { ends: Vec::new(), first: 0, many: MANY, listed: Vec::new(), apart: 0, preemptions: 0 }
    }

    /// The number of the next step.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.ends.len() as u64
    }

    pub(crate) fn push(&mut self, end: Time) {
        self.ends.push(end);
    }

    /// Adds steps that ended at these moments of the replica's own time; when the last of them did.
    pub(super) fn extend(&mut self, ends: &[Time], pace: &Pace) -> Option<Time> {
        let before = self.ends.len();
        match pace.is_even() {
            true => self.ends.extend_from_slice(ends),
            false => self.ends.extend(ends.iter().filter_map(|own| pace.world(*own))),
        }
        self.ends[before..].last().copied()
    }

    /// Ends of the steps from number `from` on.
    pub(crate) fn since(&self, from: u64) -> &[Time] {
        &self.ends[(from - self.first) as usize..]
    }

    pub(crate) fn are_many(&self) -> bool {
        self.ends.len() >= self.many
    }

    /// Forgets those before number `from`.
    pub(crate) fn forget_before(&mut self, from: u64) {
        self.ends.drain(..(from - self.first) as usize);
        self.first = from;
        self.many = MANY.max(2 * self.ends.len());
    }

    pub(crate) fn unlist(&mut self, id: u64) {
        if let Some(place) = self.listed.iter().position(|listed| *listed == id) {
            self.listed.swap_remove(place);
        }
    }
}
