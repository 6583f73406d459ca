use super::{Aic, Shared};

/// What decides how long a step of a dense transformer takes: its sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// The model's name on the hub.
    pub name: &'static str,
    /// Parameters.
    pub parameters: f64,
    /// Transformer blocks.
    pub layers: f64,
    /// Width of the residual stream.
    pub hidden: f64,
    /// Query heads × head size.
    pub attention_width: f64,
    /// Key and value heads × head size.
    pub kv_width: f64,
    /// Key and value heads.
    pub kv_heads: f64,
}

/// Llama 3.1 70B: 80 blocks of 64 query and 8 key-value heads of 128.
pub const LLAMA_3_1_70B: Model = Model {
    name: "meta-llama/Llama-3.1-70B-Instruct",
    parameters: 70.6e9,
    layers: 80.0,
    hidden: 8192.0,
    attention_width: 8192.0,
    kv_width: 1024.0,
    kv_heads: 8.0,
};

/// Qwen3 32B: 64 blocks of 64 query and 8 key-value heads of 128.
pub const QWEN3_32B: Model = Model {
    name: "Qwen/Qwen3-32B",
    parameters: 32.8e9,
    layers: 64.0,
    hidden: 5120.0,
    attention_width: 8192.0,
    kv_width: 1024.0,
    kv_heads: 8.0,
};

/// A kind of GPU under one serving engine, as the rates it really reaches there. What does not depend on the model is
/// here and nowhere else, so that it can be learnt on one model and used for another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// Bytes of weights read per second.
    pub weight_rate: f64,
    /// Bytes of the KV cache read per second.
    pub kv_rate: f64,
    /// The same where another sequence has just read them: out of the second-level cache.
    pub again_rate: f64,
    /// Streaming multiprocessors: as many (sequence, KV head) pairs are read at the same time.
    pub multiprocessors: f64,
    /// Floating-point operations per second in the matrices, with 16-bit weights; with 8-bit weights twice that.
    pub matrix_rate: f64,
    /// The same in attention to a prompt.
    pub attention_rate: f64,
    /// Bytes per second of one GPU's part in an all-reduce.
    pub reduce_rate: f64,
    /// Milliseconds of each block whatever it computes: launches, latency of the two all-reduces.
    pub block_ms: f64,
    /// Milliseconds of each sequence in a step: sampling, and the host's bookkeeping.
    pub sequence_ms: f64,
    /// Tokens that go through the matrices while the weights are read anyway.
    pub knee: f64,
}

/// H100 SXM under vLLM. Learnt by `examples/fit_h100.rs` from the measured rows of Qwen3 32B (16-bit weights, vLLM 0.12,
/// 1,024 and 4,096 tokens in, 128 to 1,024 out, 8 to 128 clients, 2, 4 and 8 GPUs) and from nothing else; the measured
/// rows of Llama 3.1 70B (8-bit weights) are what it was tried on. TPOT: p90 of the error 4.9 % there, 5.3 % here. The rate of
/// attention to prompts is that of the measured kernels. The parts share work that can't be told apart from outside (the
/// weights' rate is a little over what the memory gives): only their sum is known. The second-level cache's rate was not learnt, as no
/// row here shares a prefix: it is what Chips and Cheese found on the PCIe card, as remembered; it could not be looked up again.
pub const H100_VLLM: Gpu = Gpu {
    weight_rate: 3.4377e12,
    kv_rate: 2.9059e12,
    again_rate: 5.5e12,
    multiprocessors: 132.0,
    matrix_rate: 7.6073e14,
    attention_rate: 4.15e14,
    reduce_rate: 2.8324e11,
    block_ms: 0.072847,
    sequence_ms: 0.065231,
    knee: 0.0,
};

impl Gpu {
    /// The step law of a model spread over `tp` of them (tensor parallelism), its weights taking `weight_bytes` each (2
    /// or 1), its KV cache 2 a value.
    ///
    /// * Every step: `block_ms · layers`, and the weights are read, `parameters · weight_bytes / tp / weight_rate`.
    /// * A sequence that decodes: `sequence_ms`; and of each token of its context the keys and values are read,
    ///   `2 · 2 · layers · kv_width / tp / kv_rate`.
    ///   Of a token that sequences share only what each round of `multiprocessors / (kv_heads / tp)` of them reads first costs
    ///   that; the others read it at `again_rate`.
    /// * A prompt token past the knee: `2 · parameters / tp / matrix_rate`, and two all-reduces a block of its activations,
    ///   `2 · layers · 2 · hidden · 2 (tp − 1) / tp / reduce_rate`.
    /// * A pair of tokens that attention looks at: `4 · attention_width · layers / tp / attention_rate`.
    pub const fn law(&self, model: &Model, tp: u32, weight_bytes: f64) -> Aic {
        let tp = tp as f64;
        let every = self.block_ms * model.layers + 1e3 * model.parameters * weight_bytes / tp / self.weight_rate;
        let context = 1e3 * 4.0 * model.layers * model.kv_width / tp / self.kv_rate;
        let matrices = 1e3 * 2.0 * model.parameters / tp / (self.matrix_rate * 2.0 / weight_bytes);
        let reduces = 1e3 * 2.0 * model.layers * 2.0 * model.hidden * 2.0 * (tp - 1.0) / tp / self.reduce_rate;
        let pair = 1e3 * 4.0 * model.attention_width * model.layers / tp / self.attention_rate;
        let at_once = self.multiprocessors * tp / model.kv_heads;
        Aic {
            decode: [every, self.sequence_ms, context],
            prefill: [every, matrices + reduces, pair],
            knee: self.knee,
            shared: Some(Shared { again: self.kv_rate / self.again_rate, at_once }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: Gpu = Gpu {
        weight_rate: 1e12,
        kv_rate: 1e12,
        again_rate: 2e12,
        multiprocessors: 100.0,
        matrix_rate: 1e15,
        attention_rate: 1e15,
        reduce_rate: 1e11,
        block_ms: 0.1,
        sequence_ms: 0.05,
        knee: 100.0,
    };
    const MODEL: Model = Model {
        name: "m",
        parameters: 1e10,
        layers: 10.0,
        hidden: 1e3,
        attention_width: 1e3,
        kv_width: 100.0,
        kv_heads: 4.0,
    };

    #[test]
    fn each_part_is_its_bytes_or_operations_over_its_rate() {
        let law = GPU.law(&MODEL, 2, 2.0);
        // 10 · 0.1 ms, and 10 GB at 1 TB/s; 2 kB a token at 1 TB/s; 1e10 operations at 1e15, and 40 kB at 100 GB/s.
        assert!((law.decode[0] - 11.0).abs() < 1e-12 && (law.prefill[0] - 11.0).abs() < 1e-12);
        assert!((law.decode[2] - 2e-6).abs() < 1e-18, "{:?}", law.decode);
        assert!((law.prefill[1] - (0.01 + 0.0004)).abs() < 1e-12, "{:?}", law.prefill);
        assert!((law.prefill[2] - 2e-8).abs() < 1e-18, "{:?}", law.prefill);
        assert_eq!(law.shared, Some(Shared { again: 0.5, at_once: 50.0 }));
    }

    #[test]
    fn weights_of_a_byte_are_read_and_multiplied_in_half_the_time() {
        let (two, one) = (GPU.law(&MODEL, 1, 2.0), GPU.law(&MODEL, 1, 1.0));
        assert!((two.decode[0] - 1.0 - 2.0 * (one.decode[0] - 1.0)).abs() < 1e-9);
        assert!((two.prefill[1] - 2.0 * one.prefill[1]).abs() < 1e-12);
        assert_eq!(two.decode[2], one.decode[2]);
    }
}
