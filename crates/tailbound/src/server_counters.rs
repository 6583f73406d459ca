//! The server's own counters of speculative decoding, read from its `/metrics` before and after a run.

use crate::http::Server;
use std::collections::BTreeMap;
use tailbound_report::SpecDecode;

/// `vllm:spec_decode_*` counters, summed over engines.
#[derive(Debug, Default, PartialEq)]
pub struct Counters {
    drafts: f64,
    draft_tokens: f64,
    accepted: f64,
    per_position: BTreeMap<u32, f64>,
}

impl Counters {
    /// What the server says now; `None` if it has no metrics, or none of these.
    pub fn read(server: &Server) -> Option<Counters> {
        let reply = server.ask("/metrics", None).ok()?;
        (reply.status == 200).then(|| Counters::parse(&String::from_utf8_lossy(&reply.body)))?
    }

    fn parse(text: &str) -> Option<Counters> {
        let mut found = false;
        let mut counters = Counters::default();
        for line in text.lines().filter(|l| l.starts_with("vllm:spec_decode_")) {
            let (name, value) = line.rsplit_once(' ')?;
            let value: f64 = value.parse().ok()?;
            let bare = name.split('{').next().unwrap_or(name);
            found = true;
            match bare {
                "vllm:spec_decode_num_drafts_total" => counters.drafts += value,
                "vllm:spec_decode_num_draft_tokens_total" => counters.draft_tokens += value,
                "vllm:spec_decode_num_accepted_tokens_total" => counters.accepted += value,
                "vllm:spec_decode_num_accepted_tokens_per_pos_total" => {
                    let position = name.split("position=\"").nth(1)?.split('"').next()?.parse().ok()?;
                    *counters.per_position.entry(position).or_default() += value;
                }
                _ => {}
            }
        }
        found.then_some(counters)
    }

    /// What came since `before`; `None` if nothing was drafted.
    pub fn since(&self, before: &Counters) -> Option<SpecDecode> {
        let grown = |now: f64, then: f64| (now - then).max(0.0) as u64;
        let drafts = grown(self.drafts, before.drafts);
        (drafts > 0).then(|| SpecDecode {
            drafts,
            draft_tokens: grown(self.draft_tokens, before.draft_tokens),
            accepted_tokens: grown(self.accepted, before.accepted),
            accepted_per_position: self
                .per_position
                .iter()
                .map(|(position, &n)| grown(n, before.per_position.get(position).copied().unwrap_or(0.0)))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_summed_and_positions_kept_apart() {
        let before = "vllm:spec_decode_num_drafts_total{engine=\"0\",model_name=\"m\"} 10.0\n";
        let after = "# TYPE vllm:spec_decode_num_drafts counter\n\
            vllm:spec_decode_num_drafts_total{engine=\"0\",model_name=\"m\"} 30.0\n\
            vllm:spec_decode_num_drafts_total{engine=\"1\",model_name=\"m\"} 5.0\n\
            vllm:spec_decode_num_draft_tokens_total{engine=\"0\",model_name=\"m\"} 50.0\n\
            vllm:spec_decode_num_accepted_tokens_total{engine=\"0\",model_name=\"m\"} 40.0\n\
            vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",model_name=\"m\",position=\"1\"} 15.0\n\
            vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",model_name=\"m\",position=\"0\"} 25.0\n";
        let delta = Counters::parse(after).unwrap().since(&Counters::parse(before).unwrap()).unwrap();
        assert_eq!((delta.drafts, delta.draft_tokens, delta.accepted_tokens), (25, 50, 40));
        assert_eq!(delta.accepted_per_position, [25, 15]);
        assert_eq!(Counters::parse("up 1\n"), None);
    }
}
