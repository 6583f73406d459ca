use super::{Curve, Grid, Table};

/// Layers measured one by one, as text of three CSV files in the form of LLMServingSim's profiler (times in µs, of one
/// transformer block).
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// `prefill_chunk,kv_prefill,n_decode,kv_decode,time_us`: attention.
    pub attention: &'a str,
    /// `layer,tokens,time_us`: what depends on the tokens of the step alone.
    pub dense: &'a str,
    /// `layer,sequences,time_us`: what depends on the sequences that sample.
    pub per_sequence: &'a str,
    /// Transformer blocks of the model.
    pub blocks: u32,
}

/// What is wrong with a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} line {line}: {problem}")]
pub struct LayersError {
    /// Which of the three.
    pub file: &'static str,
    /// Where, from 1; 0: the file as a whole.
    pub line: usize,
    /// What, and what was expected.
    pub problem: String,
}

/// How often a layer runs in a step of a decoder with so many blocks: norms twice a block (before attention and before
/// the MLP), embedding and the last norm once.
fn times(layer: &str, blocks: f64) -> Option<f64> {
    Some(match layer {
        "qkv_proj" | "rotary_emb" | "o_proj" | "gate_up_proj" | "act_fn" | "down_proj" => blocks,
        "layernorm" => 2.0 * blocks,
        "embedding" | "final_layernorm" | "lm_head" | "sampler" => 1.0,
        _ => return None,
    })
}

impl Layers<'_> {
    /// The law of a step that runs every layer one after the other, and nothing besides.
    pub fn table(&self) -> Result<Table, LayersError> {
        let blocks = f64::from(self.blocks);
        let attention = numbers("attention.csv", self.attention, &ATTENTION)?;
        let attention = attention.iter().map(|v| ([v[0], v[1], v[2], v[3]], v[4] * blocks * 1e-3));
        let empty = |file| LayersError { file, line: 0, problem: "it has no measurements".to_owned() };
        Ok(Table {
            fixed_ms: 0.0,
            tokens: sum("dense.csv", self.dense, "tokens", blocks)?,
            sequences: sum("per_sequence.csv", self.per_sequence, "sequences", blocks)?,
            attention: Grid::new(attention).ok_or_else(|| empty("attention.csv"))?,
        })
    }
}

const ATTENTION: [&str; 5] = ["prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"];

/// The layers of a file added up, in ms by its variable.
fn sum(file: &'static str, text: &str, variable: &str, blocks: f64) -> Result<Curve, LayersError> {
    let error = |line: usize, problem: String| LayersError { file, line, problem };
    let mut layers: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    let mut lines = text.lines().enumerate();
    let header = format!("layer,{variable},time_us");
    if lines.next().is_none_or(|(_, first)| first.trim() != header) {
        return Err(error(1, format!("the header must be `{header}`")));
    }
    for (i, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let Some((layer, rest)) = line.split_once(',') else {
            return Err(error(i + 1, format!("`{line}` has no three fields")));
        };
        let v = fields(rest, 2).ok_or_else(|| error(i + 1, format!("`{line}`: two numbers must follow the layer")))?;
        let n = times(layer, blocks).ok_or_else(|| error(i + 1, format!("no layer `{layer}` is known")))?;
        let point = (v[0], v[1] * n * 1e-3);
        match layers.iter_mut().find(|(name, _)| *name == layer) {
            Some((_, points)) => points.push(point),
            None => layers.push((layer, vec![point])),
        }
    }
    let mut xs: Vec<f64> = layers.iter().flat_map(|(_, points)| points.iter().map(|p| p.0)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let curves: Option<Vec<Curve>> = layers.into_iter().map(|(_, points)| Curve::new(points)).collect();
    let curves = curves.filter(|c| !c.is_empty()).ok_or_else(|| error(0, "it has no measurements".to_owned()))?;
    let summed = xs.iter().map(|&x| (x, curves.iter().map(|c| c.at(x)).sum()));
    Curve::new(summed).ok_or_else(|| error(0, "a number is not finite".to_owned()))
}

/// Lines of numbers under a header.
fn numbers(file: &'static str, text: &str, header: &[&str]) -> Result<Vec<Vec<f64>>, LayersError> {
    let error = |line: usize, problem: String| LayersError { file, line, problem };
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, first)| first.trim() != header.join(",")) {
        return Err(error(1, format!("the header must be `{}`", header.join(","))));
    }
    let rows = lines.filter(|(_, line)| !line.trim().is_empty()).map(|(i, line)| {
        fields(line, header.len()).ok_or_else(|| error(i + 1, format!("`{line}`: {} numbers wanted", header.len())))
    });
    rows.collect()
}

fn fields(line: &str, count: usize) -> Option<Vec<f64>> {
    let values: Option<Vec<f64>> =
        line.split(',').map(|v| v.trim().parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0)).collect();
    values.filter(|v| v.len() == count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Batch;

    const DENSE: &str = "layer,tokens,time_us\nembedding,1,5\nembedding,100,5\nlayernorm,1,1\nlayernorm,100,2\n\
                         qkv_proj,1,10\nqkv_proj,100,20\n";
    const SEQUENCES: &str = "layer,sequences,time_us\nlm_head,1,1000\nlm_head,10,1000\nsampler,1,20\nsampler,10,20\n";
    const ATTENTION: &str = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,1,16,10\n0,0,2,16,20\n";

    fn layers() -> Layers<'static> {
        Layers { attention: ATTENTION, dense: DENSE, per_sequence: SEQUENCES, blocks: 4 }
    }

    #[test]
    fn a_step_is_its_layers_one_after_the_other() {
        let table = layers().table().unwrap();
        let batch = Batch { decodes: 1, decode_tokens: 1, decode_context: 16, ..Batch::default() };
        // 5 + 4·(2·1 + 10) + 4·10 + 1020 µs
        assert!((table.ms(&batch) - 1.113).abs() < 1e-12, "{}", table.ms(&batch));
    }

    #[test]
    fn a_bad_line_is_named() {
        let bad = |dense| Layers { dense, ..layers() }.table().unwrap_err().to_string();
        assert_eq!(bad("layer,tokens\n"), "dense.csv line 1: the header must be `layer,tokens,time_us`");
        assert_eq!(
            bad("layer,tokens,time_us\nqkv_proj,1,x\n"),
            "dense.csv line 2: `qkv_proj,1,x`: two numbers must follow the layer"
        );
        assert_eq!(bad("layer,tokens,time_us\nmoe,1,3\n"), "dense.csv line 2: no layer `moe` is known");
        assert_eq!(bad("layer,tokens,time_us\n"), "dense.csv line 0: it has no measurements");
    }
}
