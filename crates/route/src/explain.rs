use crate::endpoint::EndpointId;
use crate::pick::{Profile, Scratch};
use crate::request::RequestId;
use crate::table::Table;
use tailbound_clock::Time;

/// Scorers a decision remembers.
pub const MAX_SCORES: usize = 8;

/// Why a request went where it went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Which.
    pub request: RequestId,
    /// When.
    pub at: Time,
    /// Where to.
    pub endpoint: EndpointId,
    /// How many could have been taken, after the filters.
    pub candidates: u32,
    /// How full the pool was, if that was asked.
    pub saturation: Option<f64>,
    /// The scores of the chosen one, in the order of the profile's scorers, without their weights.
    pub scores: [f64; MAX_SCORES],
    /// How many of them.
    pub scorers: u8,
    /// Prompt tokens it is believed to have cached.
    pub cached: u64,
}

/// The last decisions.
#[derive(Clone, Debug)]
pub(crate) struct Decisions {
    kept: Vec<Decision>,
    next: usize,
    most: usize,
}

impl Decisions {
    pub(crate) fn new(most: usize) -> Decisions {
        Decisions { kept: Vec::with_capacity(most), next: 0, most }
    }

    pub(crate) fn push(&mut self, decision: Decision) {
        if self.most == 0 {
            return;
        }
        if self.kept.len() < self.most {
            self.kept.push(decision);
        } else {
            self.kept[self.next] = decision;
        }
        self.next = (self.next + 1) % self.most;
    }

    pub(crate) fn of(&self, request: RequestId) -> Option<&Decision> {
        let newest_first = self.kept[..self.next].iter().rev().chain(self.kept[self.next..].iter().rev());
        newest_first.into_iter().find(|d| d.request == request)
    }
}

impl Decision {
    pub(crate) fn new(
        now: Time,
        request: RequestId,
        profile: &Profile,
        scratch: &Scratch,
        table: &Table,
        saturation: f64,
        cached: u64,
    ) -> Decision {
        let place = scratch.picked[0] as usize;
        let scorers = profile.scorers.len().min(MAX_SCORES);
        let mut scores = [0.0; MAX_SCORES];
        for (score, part) in scores.iter_mut().zip(&scratch.parts[..scorers]) {
            *score = part[place];
        }
        Decision {
            request,
            at: now,
            endpoint: table.id[scratch.candidates[place] as usize],
            candidates: scratch.candidates.len() as u32,
            saturation: (!saturation.is_nan()).then_some(saturation),
            scores,
            scorers: scorers as u8,
            cached,
        }
    }
}
