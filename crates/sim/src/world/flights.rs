use std::sync::Arc;
use tailbound_clock::Dur;
use tailbound_record::Row;

/// A request that has come and hasn't ended.
pub(super) struct Flight {
    pub(super) row: Row,
    /// Which part of the load it belongs to.
    pub(super) part: u32,
    pub(super) prompt: Arc<[u32]>,
    /// The replica that has it, if one has.
    pub(super) at: Option<u32>,
    /// While another computes its prompt: the replica that is to answer it.
    pub(super) then: Option<u32>,
    /// The replica that holds keys and values it still has to fetch.
    pub(super) held_by: Option<u32>,
    /// The replica that computed its prompt for another.
    pub(super) prefilled_by: Option<u32>,
    /// How its answer is being written down.
    pub(super) stream: Stream,
    /// What the router made of the model's name.
    pub(super) model: Option<Arc<str>>,
    pub(super) waited: Dur,
    /// How often it was sent.
    pub(super) sent: u16,
}

/// How the tokens of an answer get into its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// None has come yet.
    Silent,
    /// One with every step in its replica's list, from the step of this number on; they are written down when the answer ends.
    Listed(u64),
    /// It lost its blocks, and its tokens are written down one by one.
    Apart,
}

/// Requests under way, by number.
pub(super) struct Flights {
    places: Vec<Option<Flight>>,
    free: Vec<u32>,
    /// The place of each request.
    of: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Flights {
    pub(super) fn new(requests: usize) -> Flights {
        Flights { places: Vec::new(), free: Vec::new(), of: vec![NOWHERE; requests] }
    }

    pub(super) fn add(&mut self, number: u64, flight: Flight) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.places[place as usize] = Some(flight);
        self.of[number as usize] = place;
    }

    pub(super) fn take(&mut self, number: u64) -> Option<Flight> {
        let place = std::mem::replace(self.of.get_mut(number as usize)?, NOWHERE);
        let flight = self.places.get_mut(place as usize)?.take();
        self.free.push(place);
        flight
    }

    pub(super) fn get(&self, number: u64) -> Option<&Flight> {
        self.places.get(*self.of.get(number as usize)? as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Flight> {
        self.places.get_mut(*self.of.get(number as usize)? as usize)?.as_mut()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The numbers of those that a replica has, the oldest first.
    pub(super) fn of_replica(&self, replica: u32) -> Vec<u64> {
        let there = self.places.iter().flatten().filter(|f| f.at == Some(replica));
        let mut numbers: Vec<u64> = there.map(|f| f.row.id).collect();
        numbers.sort_unstable();
        numbers
    }
}
