use std::collections::VecDeque;

/// The queue: by importance (one for all under first come first served), then by arrival. A sequence that lost its blocks
/// keeps its arrival, and so stands before all that came after it.
#[derive(Debug, Default)]
pub(crate) struct Waiting(VecDeque<Place>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub priority: i32,
    pub arrival: u64,
    pub slot: u32,
}

impl Waiting {
    pub fn insert(&mut self, place: Place) {
        if self.0.back().is_none_or(|last| *last < place) {
            return self.0.push_back(place);
        }
        let at = self.0.partition_point(|other| *other < place);
        self.0.insert(at, place);
    }

    pub fn remove(&mut self, place: Place) {
        if let Ok(at) = self.0.binary_search(&place) {
            self.0.remove(at);
        }
    }

    /// The slot of the `i`-th.
    pub fn at(&self, i: usize) -> Option<u32> {
        self.0.get(i).map(|p| p.slot)
    }

    pub fn take(&mut self, i: usize) {
        self.0.remove(i);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn slots(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|p| p.slot)
    }
}
