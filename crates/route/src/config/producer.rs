use super::part::{bad, read, time};
use super::{Complaint, PluginSpec, params as p};
use crate::prefix::{ApproxConfig, BurstConfig, HashInput, PreciseConfig, TierWeights};
use tailbound_clock::Dur;

/// What a plugin tells of prefixes, if that is what it does.
pub(super) fn producer(spec: &PluginSpec) -> Result<Option<super::ProducerConfig>, Complaint> {
    Ok(Some(match spec.kind.as_str() {
        "approx-prefix-cache-producer" => {
            let q: p::ApproxProducer = read(spec)?;
            let block = q.block_size_tokens.unwrap_or(16);
            let by_tokens = q.max_prefix_tokens_to_match / block.max(1) as usize;
            approx(
                spec,
                HashInput::Tokens,
                block,
                q.auto_tune,
                q.max_prefix_blocks_to_match.min(by_tokens),
                q.lru_capacity_per_server,
            )?
        }
        "prefix-cache-scorer" => {
            let q: p::PrefixScorer = read(spec)?;
            if q.prefix_match_info_producer_name.is_some() {
                return Ok(None);
            }
            let block = q.block_size_tokens.or(q.block_size.map(|chars| chars / 4)).unwrap_or(16);
            let most = q.max_prefix_tokens_to_match.map_or(q.max_prefix_blocks_to_match, |t| t / block.max(1) as usize);
            approx(spec, HashInput::Chars, block, q.auto_tune, most, q.lru_capacity_per_server)?
        }
        "precise-prefix-cache-producer" | "precise-prefix-cache-scorer" => precise(spec)?,
        "burst-prefix-cache-producer" => burst(spec)?,
        _ => return Ok(None),
    }))
}

fn approx(
    spec: &PluginSpec,
    input: HashInput,
    block_tokens: u32,
    auto_tune: bool,
    most_blocks: usize,
    capacity: usize,
) -> Result<super::ProducerConfig, Complaint> {
    if block_tokens == 0 {
        return Err(bad(spec, "the block size must be at least one token"));
    }
    let capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
    let max_entries = super::policy::MAX_ENTRIES;
    Ok(super::ProducerConfig::Approx(ApproxConfig {
        input,
        block_tokens,
        auto_tune,
        most_blocks,
        capacity,
        max_entries,
    }))
}

fn precise(spec: &PluginSpec) -> Result<super::ProducerConfig, Complaint> {
    let q: p::PreciseProducer = read(spec)?;
    let processors = [&q.token_processor_config, &q.indexer_config.token_processor_config];
    let block_tokens = processors.iter().find_map(|t| t.block_size.or(t.block_size_tokens));
    if block_tokens == Some(0) {
        return Err(bad(spec, "the block size must be at least one token"));
    }
    let mut weights = TierWeights::default();
    for backend in &q.indexer_config.kv_cache_backend_configs {
        *match backend.name.to_ascii_lowercase().as_str() {
            "gpu" => &mut weights.gpu,
            "cpu" => &mut weights.cpu,
            "disk" | "storage" => &mut weights.disk,
            _ => &mut weights.other,
        } = backend.weight;
    }
    let ttl = time(spec, "speculativeTTL", q.speculative_ttl.as_deref(), Dur::from_secs(2))?;
    Ok(super::ProducerConfig::Precise(PreciseConfig {
        block_tokens,
        speculative: q.speculative_indexing.then_some(ttl),
        weights,
        max_entries: super::policy::MAX_ENTRIES,
        silence: Dur::from_secs(30),
    }))
}

fn burst(spec: &PluginSpec) -> Result<super::ProducerConfig, Complaint> {
    let q: p::BurstProducer = read(spec)?;
    if !(1..=10_000).contains(&q.window_duration_ms) {
        return Err(bad(spec, "`windowDurationMs` must be from 1 to 10000"));
    }
    let block = q.block_size_tokens.max(1);
    let most = if q.max_prefix_tokens_to_match == 0 { 2048 } else { q.max_prefix_tokens_to_match / block as usize };
    Ok(super::ProducerConfig::Burst(BurstConfig {
        window: Dur::from_ms(q.window_duration_ms),
        per_replica: u32::try_from(q.max_per_replica).ok(),
        block_tokens: block,
        most_blocks: most,
        colocate: q.min_colocate_blocks,
        most_groups: usize::try_from(q.max_batch_size).unwrap_or(100_000),
    }))
}
