use super::Case;
use crate::names::Key;
use crate::table::Table;

/// A ring of hashes for consistent hashing: each replica stands at several places, a request goes to the next one after its
/// own, and a replica that comes or goes moves only its neighbours' requests.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    nodes: u32,
    places: Vec<(u64, u32)>,
    /// Replicas came or went since it was built.
    old: bool,
}

impl Ring {
    /// With so many places per replica; 0 keeps no ring.
    pub(crate) fn new(nodes: u32) -> Ring {
        Ring { nodes, places: Vec::new(), old: false }
    }

    /// Replicas came or went.
    pub(crate) fn members_changed(&mut self) {
        self.old = self.nodes > 0;
    }

    fn rebuild(&mut self, table: &Table) {
        self.places.clear();
        for slot in &table.live {
            let Key(name) = Key::of(&table.info[*slot as usize].name);
            self.places.extend((0..self.nodes).map(|i| (mix(name ^ u64::from(i) << 40), *slot)));
        }
        self.places.sort_unstable();
    }

    /// The candidate's place whose turn it is, passing by those that carry more than `load_factor` times the mean.
    pub(crate) fn find(&mut self, case: &Case, candidates: &[u32], load_factor: f64) -> Option<u32> {
        if std::mem::take(&mut self.old) {
            self.rebuild(case.table);
        }
        if self.places.is_empty() {
            return None;
        }
        let start = case.request.chains.first().and_then(|c| c.first()).copied();
        let key = case.request.session.map(|Key(k)| k).or(start).unwrap_or(case.request.tenant.0);
        let from = self.places.partition_point(|(h, _)| *h < mix(key));
        let load = |s: u32| f64::from(case.table.load[s as usize].requests);
        let total: f64 = candidates.iter().map(|s| load(*s)).sum();
        let limit = libm::ceil(load_factor * (total + 1.0) / candidates.len() as f64);
        let around = self.places[from..].iter().chain(&self.places[..from]);
        let eligible = around.filter_map(|(_, slot)| candidates.iter().position(|s| s == slot).map(|p| (p, *slot)));
        let mut eligible = eligible.peekable();
        let first = eligible.peek().map(|(p, _)| *p);
        eligible.find(|(_, slot)| load(*slot) < limit).map(|(p, _)| p).or(first).map(|p| p as u32)
    }
}

/// The finaliser of SplitMix64.
fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
