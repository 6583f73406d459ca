use super::{Detail, Num, own, rust_client};
use crate::run::percentile_word;
use crate::{Run, Selected, ordered};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::json;
use tailbound_record::{End, Moment, Row};
use tailbound_stats::output_tokens;

/// vLLM's result object, with ours at its end.
pub(super) struct VllmResult<'a> {
    pub run: &'a Run<'a>,
    pub detail: Detail,
}

impl Serialize for VllmResult<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        self.description(&mut map)?;
        self.load(&mut map)?;
        self.totals(&mut map)?;
        self.requests(&mut map)?;
        self.extras(&mut map)?;
        self.latencies(&mut map)?;
        rust_client::entries(self.run, &mut map)?;
        map.serialize_entry("tailbound", &own::value(self.run, self.detail))?;
        map.end()
    }
}

impl VllmResult<'_> {
    fn description<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let d = self.run.description;
        map.serialize_entry("date", &d.date)?;
        map.serialize_entry("endpoint_type", &d.backend)?;
        map.serialize_entry("backend", &d.backend)?;
        map.serialize_entry("label", &d.label)?;
        map.serialize_entry("model_id", &d.model_id)?;
        map.serialize_entry("tokenizer_id", &d.tokenizer_id)?;
        map.serialize_entry("num_prompts", &d.num_prompts)?;
        let mut given: Vec<&str> = Vec::new();
        for (key, value) in &d.metadata {
            if !reserved(key) && !given.contains(&key.as_str()) {
                given.push(key);
                map.serialize_entry(key, value)?;
            }
        }
        Ok(())
    }

    fn load<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let facts = self.run.facts;
        map.serialize_entry("request_rate", &Num(Some(facts.request_rate.unwrap_or(f64::INFINITY))))?;
        map.serialize_entry("burstiness", &Num(Some(facts.burstiness)))?;
        map.serialize_entry("max_concurrency", &facts.max_concurrency)?;
        if let Some(ramp) = facts.ramp {
            map.serialize_entry("ramp_up_strategy", ramp.law.name())?;
            map.serialize_entry("ramp_up_start_rps", &whole(ramp.start_rps))?;
            map.serialize_entry("ramp_up_end_rps", &whole(ramp.end_rps))?;
        }
        Ok(())
    }

    fn totals<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let (requests, v) = (&self.run.summary.requests, &self.run.summary.vllm);
        map.serialize_entry("duration", &(self.run.summary.duration.ns() as f64 / 1e9))?;
        map.serialize_entry("completed", &requests.completed)?;
        map.serialize_entry("failed", &requests.failed)?;
        map.serialize_entry("total_input_tokens", &v.total_input_tokens)?;
        map.serialize_entry("total_output_tokens", &v.total_output_tokens)?;
        map.serialize_entry("request_throughput", &v.request_throughput)?;
        map.serialize_entry("request_goodput", &v.request_goodput)?;
        map.serialize_entry("output_throughput", &v.output_throughput)?;
        map.serialize_entry("total_token_throughput", &v.total_token_throughput)
    }

    /// Arrays with one entry per request, in the order of the plan; what failed has zeros.
    fn requests<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let rows = ordered(self.run.rows);
        let each = |f: fn(&Row) -> f64| Each(&rows, f);
        let detailed = self.detail == Detail::PerRequest;
        if detailed {
            map.serialize_entry("input_lens", &Each(&rows, |r: &Row| r.prompt_tokens().unwrap_or(0)))?;
            map.serialize_entry("output_lens", &Each(&rows, |r: &Row| if r.ok() { output_tokens(r).0 } else { 0 }))?;
            map.serialize_entry("ttfts", &each(|r| if r.ok() { seconds(r.ttft()) } else { 0.0 }))?;
            map.serialize_entry("itls", &Each(&rows, gaps))?;
        }
        map.serialize_entry("latencies", &each(|r| if r.ok() { seconds(r.e2e()) } else { 0.0 }))?;
        if detailed {
            map.serialize_entry(
                "start_times",
                &each(|r| r.at.get(Moment::WriteStart).map_or(0.0, |t| t.ns() as f64 / 1e9)),
            )?;
        }
        map.serialize_entry("queue_times", &each(|r| seconds(r.at.between(Moment::Scheduled, Moment::Released))))?;
        if detailed {
            let texts: Vec<&str> = rows.iter().map(|r| r.text.as_deref().unwrap_or("")).collect();
            map.serialize_entry("generated_texts", &texts)?;
            map.serialize_entry("errors", &Each(&rows, error))?;
        }
        map.serialize_entry("max_output_tokens_per_s", &self.run.summary.vllm.max_output_tokens_per_s)?;
        map.serialize_entry("max_concurrent_requests", &self.run.summary.vllm.max_concurrent_requests)?;
        map.serialize_entry("rtfx", &self.run.rtfx())?;
        let stated = &self.run.extras.server_times;
        if detailed && stated.iter().any(|t| t.queue_s.is_some() || t.ttft_s.is_some()) {
            let queue: Vec<Num> = stated.iter().map(|t| Num(t.queue_s)).collect();
            let ttft: Vec<Num> = stated.iter().map(|t| Num(t.ttft_s)).collect();
            map.serialize_entry("server_queue_times", &queue)?;
            map.serialize_entry("server_ttfts", &ttft)?;
        }
        Ok(())
    }

    fn extras<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let extras = self.run.extras;
        if let Some(p) = &extras.probes {
            map.serialize_entry("probe_completed", &p.completed)?;
            map.serialize_entry("probe_failed", &p.failed)?;
            map.serialize_entry("probe_median_e2el_ms", &p.median_e2e_ms)?;
            map.serialize_entry("probe_p99_e2el_ms", &p.p99_e2e_ms)?;
            map.serialize_entry("probe_max_e2el_ms", &p.max_e2e_ms)?;
        }
        if !extras.rate_changes.is_empty() {
            let changes: Vec<_> =
                extras.rate_changes.iter().map(|c| json!({ "rps": c.rps, "timestamp": c.timestamp })).collect();
            map.serialize_entry("rps_change_events", &changes)?;
        }
        if let Some(s) = &extras.spec_decode {
            map.serialize_entry("spec_decode_acceptance_rate", &s.acceptance_rate())?;
            map.serialize_entry("spec_decode_acceptance_length", &s.acceptance_length())?;
            map.serialize_entry("spec_decode_num_drafts", &s.drafts)?;
            map.serialize_entry("spec_decode_draft_tokens", &s.draft_tokens)?;
            map.serialize_entry("spec_decode_accepted_tokens", &s.accepted_tokens)?;
            map.serialize_entry("spec_decode_per_position_acceptance_rates", &s.per_position())?;
        }
        if let Some(d) = &extras.diffusion {
            map.serialize_entry("diffusion_committed_throughput", &d.committed_throughput)?;
            map.serialize_entry("diffusion_steps_per_canvas", &d.steps_per_canvas)?;
            map.serialize_entry("diffusion_committed_per_step", &d.committed_per_step)?;
            map.serialize_entry("diffusion_committed_tokens", &d.committed_tokens)?;
            map.serialize_entry("diffusion_denoising_steps", &d.denoising_steps)?;
            map.serialize_entry("diffusion_canvas_positions", &d.canvas_positions)?;
        }
        Ok(())
    }

    fn latencies<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        for metric in Selected::ALL.into_iter().filter(|m| self.run.shows(*m)) {
            let (name, sample) = (metric.name(), self.run.sample(metric));
            // vLLM gives 0.0 for what has no value.
            let ms = |ns: Option<f64>| ns.unwrap_or(0.0) * 1e-6;
            map.serialize_entry(&format!("mean_{name}_ms"), &ms(sample.mean()))?;
            map.serialize_entry(&format!("median_{name}_ms"), &ms(sample.median()))?;
            map.serialize_entry(&format!("std_{name}_ms"), &ms(sample.std()))?;
            for p in &self.run.selection.percentiles {
                map.serialize_entry(&format!("p{}_{name}_ms", percentile_word(*p)), &ms(sample.percentile(*p)))?;
            }
        }
        Ok(())
    }
}

/// One value per row, made while writing.
struct Each<'a, F>(&'a [&'a Row], F);

impl<T: Serialize, F: Fn(&Row) -> T> Serialize for Each<'_, F> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.0.iter().map(|row| (self.1)(row)))
    }
}

fn seconds(d: Option<tailbound_clock::Dur>) -> f64 {
    d.map_or(0.0, |d| d.ns() as f64 / 1e9)
}

fn gaps(row: &Row) -> Vec<f64> {
    if row.ok() { row.chunks.gaps().map(|g| g.ns() as f64 / 1e9).collect() } else { Vec::new() }
}

fn error(row: &Row) -> String {
    match &row.end {
        End::Done(_) => String::new(),
        End::Failed { cause, detail, .. } if detail.is_empty() => cause.to_string(),
        End::Failed { detail, .. } => detail.to_string(),
        End::Cancelled(_) => "cancelled by the client".to_owned(),
        End::NeverSent(_) => "never sent".to_owned(),
    }
}

/// vLLM's ramp rates are integers; ours may not be.
fn whole(rps: f64) -> serde_json::Value {
    if rps.fract() == 0.0 { json!(rps as i64) } else { json!(rps) }
}

/// Keys that the user's metadata may not take: JSON with a key twice is read differently by different readers. All metadata also
/// stands under `tailbound`.
fn reserved(key: &str) -> bool {
    const KEYS: &[&str] = &[
        "date",
        "endpoint_type",
        "backend",
        "label",
        "model_id",
        "tokenizer_id",
        "num_prompts",
        "request_rate",
        "burstiness",
        "max_concurrency",
        "ramp_up_strategy",
        "ramp_up_start_rps",
        "ramp_up_end_rps",
        "duration",
        "completed",
        "failed",
        "total_input_tokens",
        "total_output_tokens",
        "request_throughput",
        "request_goodput",
        "output_throughput",
        "total_token_throughput",
        "input_lens",
        "output_lens",
        "ttfts",
        "itls",
        "latencies",
        "start_times",
        "queue_times",
        "generated_texts",
        "errors",
        "max_output_tokens_per_s",
        "max_concurrent_requests",
        "rtfx",
        "server_queue_times",
        "server_ttfts",
        "probe_completed",
        "probe_failed",
        "rps_change_events",
        "tailbound",
    ];
    KEYS.contains(&key)
        || rust_client::KEYS.contains(&key)
        || key.ends_with("_ms")
        || key.starts_with("spec_decode_")
        || key.starts_with("diffusion_")
}
