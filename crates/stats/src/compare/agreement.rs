//! Whether two sides said the same.

use crate::{Dist, wilson};
use std::collections::BTreeMap;
use tailbound_record::Row;

/// The answers of one side against those of another to the same requests. It says something only where both sampled at temperature 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agreement {
    /// Requests answered whole on both sides, with both texts kept.
    pub pairs: usize,
    /// Of those, the ones whose texts are the same to the last byte.
    pub identical: usize,
    /// Requests of which a text is missing: failed on a side, or not kept.
    pub unread: usize,
    /// Of texts that differ: how many characters are the same before the first that isn't.
    pub first_divergence: Dist,
    /// Of texts that differ: the same as a share of the shorter text, 0–1.
    pub shared_beginning: Dist,
}

impl Agreement {
    /// The share of identical pairs; `None` of nothing.
    pub fn share(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.identical as f64 / self.pairs as f64)
    }

    /// Wilson's 95 % interval of that.
    pub fn interval(&self) -> Option<(f64, f64)> {
        wilson(self.identical, self.pairs, 0.95)
    }
}

/// Compares texts request by request, by number, over all rounds.
pub fn agreement<'a>(rounds: impl IntoIterator<Item = (&'a [Row], &'a [Row])>) -> Agreement {
    let mut agreement = Agreement::default();
    let (mut first, mut shared) = (Vec::new(), Vec::new());
    for (a, b) in rounds {
        let texts: BTreeMap<u64, &str> = a.iter().filter_map(|row| Some((row.id, text(row)?))).collect();
        for row in b {
            let Some((a, b)) = texts.get(&row.id).copied().zip(text(row)) else {
                agreement.unread += 1;
                continue;
            };
            agreement.pairs += 1;
            if a == b {
                agreement.identical += 1;
                continue;
            }
            let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
            let shorter = a.chars().count().min(b.chars().count());
            first.push(same as f64);
            shared.push(if shorter == 0 { 0.0 } else { same as f64 / shorter as f64 });
        }
    }
    agreement.first_divergence = Dist::new(first);
    agreement.shared_beginning = Dist::new(shared);
    agreement
}

fn text(row: &Row) -> Option<&str> {
    row.text.as_deref().filter(|_| row.ok())
}
