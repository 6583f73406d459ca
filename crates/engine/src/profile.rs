//! Named replicas: a model on so many GPUs of a kind, with the sizes an engine would have there.

use crate::{Aic, Config, H100_VLLM, LLAMA_3_1_70B, Law, Model, QWEN3_32B};

/// A named replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// `llama-3.1-8b-h100`, `llama-3.1-70b-a100-tp8` …
    pub name: &'static str,
    /// The model's name on the hub.
    pub model: &'static str,
    /// The system's name in the source of the coefficients.
    pub system: &'static str,
    /// GPUs it is spread over (tensor parallelism).
    pub tp: u32,
    /// The step law.
    pub law: Aic,
    /// Where the law comes from.
    pub source: Source,
}

/// Where a profile's step law comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Fitted to step times composed from measured kernels: the GPU alone, without what an engine adds.
    Kernels,
    /// From what runs of vLLM on that kind of GPU took ([`crate::Gpu`]): the engine's own work is in it.
    Runs,
}

const LLAMA_8B: &str = "meta-llama/Meta-Llama-3.1-8B";
const LLAMA_70B: &str = "meta-llama/Meta-Llama-3.1-70B";
/// The context length of both models.
const MAX_MODEL_LEN: u32 = 131_072;
const GIB: f64 = (1u64 << 30) as f64;

/// Every profile. Those that end in `-vllm` come from runs of vLLM on that GPU ([`H100_VLLM`]); the others are fits to
/// AIConfigurator 0.12's step times for vLLM (bf16), which it composes from measured kernels; mean error 2–5 % (70B on L40S over 8 GPUs: 9 % and 16 %).
#[rustfmt::skip]
pub const PROFILES: &[Profile] = &[
    runs("llama-3.1-70b-h100-tp4-vllm", &LLAMA_3_1_70B, 4),
    runs("llama-3.1-70b-h100-tp8-vllm", &LLAMA_3_1_70B, 8),
    runs("qwen3-32b-h100-tp2-vllm", &QWEN3_32B, 2),
    fit("llama-3.1-8b-h100", LLAMA_8B, "h100_sxm", 1, [6.3654830996009695, 0.011364859019366463, 4.154373582728084e-05], [6.997160118247489, 0.01801941057572528, 1.0395619531866629e-06], 192),
    fit("llama-3.1-8b-h200", LLAMA_8B, "h200_sxm", 1, [4.9121964508806615, 0.011523303973810855, 2.950529882328641e-05], [5.495394961048436, 0.019175057309032933, 9.72671658217017e-07], 192),
    fit("llama-3.1-8b-a100", LLAMA_8B, "a100_sxm", 1, [11.533380125404738, 0.03218116609575363, 8.202700028141219e-05], [12.316379185198858, 0.055942464233552286, 2.8508938803920025e-06], 96),
    fit("llama-3.1-8b-l40s", LLAMA_8B, "l40s", 1, [22.250695556149786, 0.03570182399573122, 0.00018827219923033683], [25.228391285400782, 0.0635385933085849, 3.842505600745727e-06], 320),
    fit("llama-3.1-70b-h100-tp4", LLAMA_70B, "h100_sxm", 4, [15.183558797604345, 0.031991699031495145, 2.665345145239084e-05], [17.613383402947, 0.05920718849029685, 1.581662322114319e-06], 192),
    fit("llama-3.1-70b-h100-tp8", LLAMA_70B, "h100_sxm", 8, [9.940561363004965, 0.023619106758288832, 1.3580964268889578e-05], [11.79515776893707, 0.038061894353391405, 5.529842354370929e-07], 128),
    fit("llama-3.1-70b-h200-tp4", LLAMA_70B, "h200_sxm", 4, [12.145374747656703, 0.03217050199644596, 1.840579924945046e-05], [13.23722938440809, 0.05602525248456752, 1.4947437106671568e-06], 96),
    fit("llama-3.1-70b-h200-tp8", LLAMA_70B, "h200_sxm", 8, [8.147168080664718, 0.02484105855312337, 9.777382731834816e-06], [9.656644315481355, 0.03660373144033908, 5.298709211190578e-07], 96),
    fit("llama-3.1-70b-a100-tp4", LLAMA_70B, "a100_sxm", 4, [27.6176463890456, 0.09746334458373286, 5.741971604185381e-05], [31.35159385787311, 0.1596904590152792, 2.618007675675438e-06], 96),
    fit("llama-3.1-70b-a100-tp8", LLAMA_70B, "a100_sxm", 8, [17.13890077551743, 0.06822523391087777, 2.753962488794004e-05], [19.85447591116917, 0.10598629783563181, 2.9176694184285257e-07], 64),
    fit("llama-3.1-70b-l40s-tp4", LLAMA_70B, "l40s", 4, [55.10618031318197, 1.0736989411623648, 0.00011157506869396983], [89.28784747880228, 1.2106498362886433, 1.359503769826631e-05], 64),
    fit("llama-3.1-70b-l40s-tp8", LLAMA_70B, "l40s", 8, [29.10883770711236, 2.069994596095624, 4.620143002753707e-05], [83.11181421799681, 2.6355460161552444, 1.913887341320475e-05], 64),
];

const fn fit(
    name: &'static str,
    model: &'static str,
    system: &'static str,
    tp: u32,
    decode: [f64; 3],
    prefill: [f64; 3],
    knee: u32,
) -> Profile {
    Profile {
        name,
        model,
        system,
        tp,
        law: Aic { decode, prefill, knee: knee as f64, shared: None },
        source: Source::Kernels,
    }
}

const fn runs(name: &'static str, model: &'static Model, tp: u32) -> Profile {
    let law = H100_VLLM.law(model, tp, 2.0);
    Profile { name, model: model.name, system: "h100_sxm", tp, law, source: Source::Runs }
}

impl Profile {
    /// The profile of that name.
    pub fn named(name: &str) -> Option<&'static Profile> {
        PROFILES.iter().find(|p| p.name == name)
    }

    /// What vLLM would be there by default: its step budget and batch size for that kind of GPU, and the KV blocks of 16
    /// tokens that memory leaves room for, `⌊(0.92 · memory − weights − 2 GiB) · tp / block⌋` per replica.
    /// Where that is less than the model's context length, the context is what an operator would have to set: the
    /// largest power of two that fits.
    pub fn config(&self) -> Config {
        let blocks = self.num_blocks();
        let fitting = 1 << (blocks * 16).ilog2();
        let config = Config {
            kv_bytes_per_token: self.kv_bytes_per_token(),
            ..Config::new(Law::Aic(self.law), blocks, MAX_MODEL_LEN.min(fitting))
        };
        match self.system {
            "h100_sxm" | "h200_sxm" => Config {
                max_num_seqs: 1024,
                max_num_batched_tokens: 8192,
                // vLLM 0.12 looked at the first chunk alone; room for all of a prompt came later.
                reserve_full_prompt: self.source == Source::Kernels,
                ..config
            },
            _ => config,
        }
    }

    fn num_blocks(&self) -> u32 {
        let memory_gib = match self.system {
            "h200_sxm" => 139.8,
            "l40s" => 44.5,
            _ => 79.2,
        };
        let (weights, _) = self.sizes();
        let per_block = 16.0 * self.kv_bytes_per_token();
        let tp = f64::from(self.tp);
        let room = (0.92 * memory_gib - 2.0) * GIB * tp - weights;
        (room / per_block) as u32
    }

    /// Bytes that keys and values of a token take, in all GPUs together: all these models have 8 KV heads of 128, and
    /// values of 2 bytes.
    fn kv_bytes_per_token(&self) -> f64 {
        let (_, layers) = self.sizes();
        layers * 8.0 * 128.0 * 2.0 * 2.0
    }

    /// Weights in bytes, and layers.
    fn sizes(&self) -> (f64, f64) {
        match self.model {
            LLAMA_8B => (16.06e9, 32.0),
            m if m == QWEN3_32B.name => (65.5e9, 64.0),
            _ => (141.1e9, 80.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_makes_an_engine() {
        for profile in PROFILES {
            let config = profile.config();
            crate::Engine::new(config.clone()).unwrap_or_else(|e| panic!("{}: {e}", profile.name));
            assert_eq!(Profile::named(profile.name), Some(profile));
            println!("{}: {} blocks, context {}", profile.name, config.num_blocks, config.max_model_len);
        }
    }
}
