use super::refuse;
use crate::collect::Trace;
use crate::error::Error;
use crate::hash::Mix;
use crate::row::Body;
use std::hash::Hasher;

impl Trace {
    /// Multiplies prompt and output lengths, rounded, at least 1 where there was something. Block ids follow: two prompts share
    /// `input` times the tokens they shared, to the block. Refused for prompts given as text, whose length is not the trace's to
    /// choose.
    pub fn multiply_lengths(&mut self, input: f64, output: f64) -> Result<(), Error> {
        if !(input > 0.0 && output > 0.0 && input.is_finite() && output.is_finite()) {
            return refuse("failed to multiply lengths: the factors must be above zero");
        }
        let is_text = |row: &crate::row::Row| row.more.as_ref().is_some_and(|m| m.body != Body::None);
        if let Some(i) = self.rows.iter().position(|r| input != 1.0 && is_text(r)) {
            return refuse(format!("failed to multiply prompt lengths: row {} has its prompt as text", i + 1));
        }
        let times = |n: &mut u32, factor: f64| {
            if *n > 0 {
                *n = libm::round(f64::from(*n) * factor).clamp(1.0, f64::from(u32::MAX)) as u32;
            }
        };
        let block = self.block_tokens;
        for row in &mut self.rows {
            let before = row.input;
            row.input.iter_mut().for_each(|n| times(n, input));
            row.output.iter_mut().for_each(|n| times(n, output));
            let blocks = row.more.as_mut().and_then(|m| m.blocks.as_mut()).filter(|_| input != 1.0);
            if let (Some(ids), Some(block)) = (blocks, block) {
                let tokens = row.input.or(before).map_or(ids.len() as f64 * input, |n| f64::from(n) / f64::from(block));
                *ids = stretched(ids, libm::ceil(tokens - 1e-9) as usize, input);
            }
        }
        Ok(())
    }

    /// Cuts every group of prompts that share a beginning into `roots` groups that share nothing with each other: a client or
    /// session stays in one, other rows go by their place in the trace.
    pub fn split_prefixes(&mut self, roots: u32) -> Result<(), Error> {
        if roots == 0 {
            return refuse("failed to split prefixes: there must be one root at least");
        }
        for i in 0..self.rows.len() {
            let row = &self.rows[i];
            let owner = row.session.or(row.client);
            let root = match owner {
                Some(name) => mixed(self.names.text(name).bytes().fold(0, |h, b| mixed(h, u64::from(b))), 1),
                None => mixed(i as u64, 2),
            } % u64::from(roots);
            if let Some(ids) = self.rows[i].more.as_mut().and_then(|m| m.blocks.as_mut()).filter(|_| root > 0) {
                ids.iter_mut().for_each(|id| *id = mixed(*id, root));
            }
        }
        Ok(())
    }
}

/// The ids of a prompt `by` times as long, in `n` blocks: block j is made of the old block at j/by and its place, so that prompts
/// that shared the old block share it.
fn stretched(ids: &[u64], n: usize, by: f64) -> Vec<u64> {
    let Some(last) = ids.len().checked_sub(1) else { return Vec::new() };
    (0..n).map(|j| mixed(ids[((j as f64 / by) as usize).min(last)], j as u64)).collect()
}

fn mixed(a: u64, b: u64) -> u64 {
    let mut hash = Mix::default();
    hash.write_u64(a);
    hash.write_u64(b);
    hash.finish()
}
