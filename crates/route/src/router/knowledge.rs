use crate::config::ProducerConfig;
use crate::pick::Scratch;
use crate::prefix::{Approx, Burst, Index, Matches, Precise, media_chain};
use crate::request::{Arrival, Request};
use crate::table::Table;
use tailbound_clock::Time;

/// The prefix indexes of one configuration, and what they last found.
#[derive(Debug)]
pub(super) struct Knowledge {
    producers: Vec<Producer>,
    pub(super) matches: Vec<Matches>,
    media: Option<Index>,
    pub(super) media_matches: Matches,
}

#[derive(Debug)]
enum Producer {
    Precise(Box<Precise>),
    Approx(Box<Approx>),
    Burst(Box<Burst>),
}

/// Media remembered of one replica.
const MEDIA: u32 = 10_000;

impl Knowledge {
    pub(super) fn new(configs: &[ProducerConfig], media: bool) -> Knowledge {
        let producers = configs.iter().cloned().map(|config| match config {
            ProducerConfig::Precise(c) => Producer::Precise(Box::new(Precise::new(c))),
            ProducerConfig::Approx(c) => Producer::Approx(Box::new(Approx::new(c))),
            ProducerConfig::Burst(c) => Producer::Burst(Box::new(Burst::new(c))),
        });
        Knowledge {
            producers: producers.collect(),
            matches: vec![Matches::default(); configs.len()],
            media: media.then(Index::default),
            media_matches: Matches::default(),
        }
    }

    /// Block hashes of a prompt that is to be served by `model`.
    pub(super) fn chains(&self, model: &str, arrival: &Arrival, request: &mut Request) {
        request.chains.resize_with(self.producers.len(), Vec::new);
        for (producer, chain) in self.producers.iter().zip(&mut request.chains) {
            match producer {
                Producer::Precise(p) => p.chain(arrival, chain),
                Producer::Approx(a) => a.chain(model, arrival, chain),
                Producer::Burst(b) => b.chain(model, arrival, chain),
            }
        }
        if self.media.is_some() {
            media_chain(arrival.media, &mut request.media);
        }
    }

    /// Looks up who has what of a request.
    pub(super) fn find(&mut self, now: Time, request: &Request, slots: usize) {
        for ((producer, chain), matches) in self.producers.iter_mut().zip(&request.chains).zip(&mut self.matches) {
            match producer {
                Producer::Precise(p) => p.find(now, chain, slots, matches),
                Producer::Approx(a) => a.find(chain, slots, matches),
                Producer::Burst(b) => b.find(now, chain, slots, matches),
            }
        }
        if let Some(media) = &self.media {
            media.count(&request.media, slots, &mut self.media_matches);
        }
    }

    /// A request was sent to a replica that computes its prompt.
    pub(super) fn sent(&mut self, now: Time, slot: u32, request: &Request) {
        for ((producer, chain), matches) in self.producers.iter_mut().zip(&request.chains).zip(&self.matches) {
            match producer {
                Producer::Precise(p) => p.sent(now, slot, chain, matches.tokens(slot)),
                Producer::Approx(a) => a.sent(slot, chain),
                Producer::Burst(b) => b.sent(now, slot, chain),
            }
        }
        if let Some(media) = &mut self.media {
            for hash in &request.media {
                media.hold(slot, *hash, 1, |_| ());
            }
        }
    }

    pub(super) fn left(&mut self, slot: u32) {
        for producer in &mut self.producers {
            match producer {
                Producer::Precise(p) => p.left(slot),
                Producer::Approx(a) => a.left(slot),
                Producer::Burst(b) => b.left(slot),
            }
        }
        if let Some(media) = &mut self.media {
            media.limit(slot, 0, |_| ());
        }
    }

    /// Replicas came, went, or said how large their caches are.
    pub(super) fn fit(&mut self, table: &Table) {
        for producer in &mut self.producers {
            match producer {
                Producer::Precise(p) => p.fit(table),
                Producer::Approx(a) => a.fit(table),
                Producer::Burst(_) => {}
            }
        }
        if let Some(media) = &mut self.media {
            table.live.iter().for_each(|s| media.limit(*s, MEDIA, |_| ()));
        }
    }

    pub(super) fn precise(&mut self) -> Option<&mut Precise> {
        self.producers.iter_mut().find_map(|p| if let Producer::Precise(p) = p { Some(&mut **p) } else { None })
    }

    /// Invariants of the indexes, for debug builds.
    #[cfg(debug_assertions)]
    pub(super) fn check(&self) {
        if let Some(precise) = self.precise_ref() {
            precise.check();
        }
    }

    pub(super) fn precise_ref(&self) -> Option<&Precise> {
        self.producers.iter().find_map(|p| if let Producer::Precise(p) = p { Some(&**p) } else { None })
    }

    /// Entries and different blocks of all indexes.
    pub(super) fn size(&self) -> (usize, usize) {
        let of = |index: &Index| (index.len(), index.blocks());
        let sizes = self.producers.iter().map(|p| match p {
            Producer::Precise(p) => of(p.index()),
            Producer::Approx(a) => of(a.index()),
            Producer::Burst(_) => (0, 0),
        });
        sizes.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// Prompt tokens that the chosen one is believed to have.
    pub(super) fn cached(&self, scratch: &Scratch) -> u64 {
        let chosen = scratch.picked.first().map(|p| scratch.candidates[*p as usize]);
        chosen.map_or(0, |slot| self.matches.first().map_or(0, |m| m.tokens(slot)))
    }
}
