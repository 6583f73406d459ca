//! The emulator's log of the truth beside a client's rows: same clock, so the difference is the client's error.

use crate::failure::{Failure, Outcome};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_record::{Moment, Row};
use tailbound_stats::Dist;

/// When each token of a request left the server, ns after the request had arrived whole; by request number.
pub struct Truth(BTreeMap<u64, Vec<u64>>);

/// How far a client's figures were from the truth, ns.
pub struct Errors {
    /// Time to first token: ours from the request written, theirs from its arrival. Sizes, without their sign.
    pub ttft: Dist,
    /// Gaps between tokens.
    pub itl: Dist,
    /// Time to the last token.
    pub e2e: Dist,
}

impl Truth {
    /// Reads the log; only requests whose id is `prefix` and a number.
    pub fn read(file: &Path, prefix: &str) -> Outcome<Truth> {
        let failed = |e: String| Failure::new(format!("failed to read {}: {e}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|e| failed(e.to_string()))?;
        let mut requests = BTreeMap::new();
        for line in text.lines() {
            let row: Value = serde_json::from_str(line).map_err(|e| failed(e.to_string()))?;
            let number = row["id"].as_str().and_then(|id| id.strip_prefix(prefix)?.parse().ok());
            let sent: Vec<u64> = row["sent"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
            if let (Some(number), false) = (number, sent.is_empty()) {
                requests.insert(number, sent);
            }
        }
        Ok(Truth(requests))
    }

    /// How many requests it knows.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Time from arrival to the first token's send, ns.
    pub fn ttft(&self) -> Dist {
        Dist::new(self.0.values().map(|sent| sent[0] as f64).collect())
    }

    /// Time from arrival to the last token's send, ns.
    pub fn e2e(&self) -> Dist {
        Dist::new(self.0.values().map(|sent| sent[sent.len() - 1] as f64).collect())
    }

    /// The rows' errors, request by request and token by token.
    pub fn errors(&self, rows: &[Row]) -> Errors {
        let (mut ttft, mut itl, mut e2e) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows.iter().filter(|r| r.ok()) {
            let Some(sent) = self.0.get(&row.id).filter(|sent| sent.len() == row.chunks.len()) else { continue };
            let off =
                |moment, truth: u64| Some((row.at.between(Moment::Written, moment)?.ns() as f64 - truth as f64).abs());
            ttft.extend(off(Moment::FirstToken, sent[0]));
            e2e.extend(off(Moment::LastToken, sent[sent.len() - 1]));
            itl.extend(
                row.chunks.gaps().zip(sent.windows(2)).map(|(gap, s)| (gap.ns() as f64 - (s[1] - s[0]) as f64).abs()),
            );
        }
        Errors { ttft: Dist::new(ttft), itl: Dist::new(itl), e2e: Dist::new(e2e) }
    }
}
