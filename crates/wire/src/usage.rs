use crate::json::{Bad, Scan};

/// Token counts as the server stated them. Missing is `None`, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Prompt tokens, those from a cache included.
    pub prompt: Option<u32>,
    /// Output tokens, those of reasoning included: the last or largest cumulative count; for several choices, all of them together.
    pub output: Option<u32>,
    /// Of the prompt tokens, those from the prefix cache.
    pub cached: Option<u32>,
    /// Of the output tokens, those of reasoning.
    pub reasoning: Option<u32>,
    /// vLLM's own queue time, from its final usage chunk, in milliseconds.
    pub queue_ms: Option<f64>,
    /// vLLM's own time to first token, from its final usage chunk, in milliseconds.
    pub ttft_ms: Option<f64>,
}

impl Usage {
    /// Reads a usage object of any of the APIs; passes over null and the like.
    pub(crate) fn read(scan: &mut Scan<'_>) -> Result<Usage, Bad> {
        let mut usage = Usage::default();
        let mut anthropic_cached = None;
        let mut anthropic_created = None;
        scan.object_or_skip(|key, scan| {
            match key {
                b"prompt_tokens" | b"input_tokens" => usage.prompt = scan.count()?,
                b"completion_tokens" | b"output_tokens" => usage.output = scan.count()?,
                b"cache_read_input_tokens" => anthropic_cached = scan.count()?,
                b"cache_creation_input_tokens" => anthropic_created = scan.count()?,
                b"reasoning_tokens" => usage.reasoning = scan.count()?.or(usage.reasoning),
                b"prompt_tokens_details" | b"input_tokens_details" => scan.object_or_skip(|key, scan| {
                    match key {
                        b"cached_tokens" => usage.cached = scan.count()?,
                        _ => scan.skip()?,
                    }
                    Ok(())
                })?,
                b"completion_tokens_details" | b"output_tokens_details" => scan.object_or_skip(|key, scan| {
                    match key {
                        b"reasoning_tokens" => usage.reasoning = scan.count()?.or(usage.reasoning),
                        _ => scan.skip()?,
                    }
                    Ok(())
                })?,
                b"metrics" => scan.object_or_skip(|key, scan| usage.read_metric(key, scan))?,
                b"queue_time_ms" | b"time_to_first_token_ms" => usage.read_metric(key, scan)?,
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        // Anthropic's input_tokens leaves out what came from or went into the cache.
        for extra in [anthropic_cached, anthropic_created].into_iter().flatten() {
            usage.prompt = Some(usage.prompt.unwrap_or(0).saturating_add(extra));
        }
        usage.cached = usage.cached.or(anthropic_cached);
        Ok(usage)
    }

    /// Reads vLLM's own latencies, which stand beside or inside the usage.
    pub(crate) fn read_metrics(&mut self, scan: &mut Scan<'_>) -> Result<(), Bad> {
        scan.object_or_skip(|key, scan| self.read_metric(key, scan))
    }

    fn read_metric(&mut self, key: &[u8], scan: &mut Scan<'_>) -> Result<(), Bad> {
        match key {
            b"queue_time_ms" => self.queue_ms = scan.float()?,
            b"time_to_first_token_ms" => self.ttft_ms = scan.float()?,
            _ => scan.skip()?,
        }
        Ok(())
    }

    /// Reads llama.cpp's `timings`, which count tokens even where no usage was asked for.
    pub(crate) fn read_timings(scan: &mut Scan<'_>) -> Result<Usage, Bad> {
        let mut usage = Usage::default();
        let mut processed = None;
        scan.object_or_skip(|key, scan| {
            match key {
                b"cache_n" => usage.cached = scan.count()?,
                b"prompt_n" => processed = scan.count()?,
                b"predicted_n" => usage.output = scan.count()?,
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        usage.prompt = processed.map(|n| n.saturating_add(usage.cached.unwrap_or(0)));
        Ok(usage)
    }

    pub(crate) fn is_stated(&self) -> bool {
        *self != Usage::default()
    }

    /// Counts grow, so of two statements the larger is the later.
    pub(crate) fn grow(&mut self, other: &Usage) {
        self.prompt = self.prompt.max(other.prompt);
        self.output = self.output.max(other.output);
        self.cached = self.cached.max(other.cached);
        self.reasoning = self.reasoning.max(other.reasoning);
        self.queue_ms = other.queue_ms.or(self.queue_ms);
        self.ttft_ms = other.ttft_ms.or(self.ttft_ms);
    }
}
