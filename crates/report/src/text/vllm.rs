use super::figures::{RULE, line, line2, title};
use crate::run::percentile_word;
use crate::{Run, Selected};
use tailbound_stats::Dist;

/// Every line of vLLM 0.33's report, in its order.
pub(super) fn block(run: &Run<'_>) -> String {
    let mut out = String::new();
    title(&mut out, " Serving Benchmark Result ", '=');
    totals(&mut out, run);
    probes(&mut out, run);
    for metric in Selected::ALL {
        if run.shows(metric) {
            latency(&mut out, run, metric);
        }
    }
    diffusion(&mut out, run);
    spec_decode(&mut out, run);
    out.push_str(&"=".repeat(RULE));
    out.push('\n');
    out
}

fn totals(out: &mut String, run: &Run<'_>) {
    let (requests, vllm) = (&run.summary.requests, &run.summary.vllm);
    let tokens = run.selection.token_lines;
    line(out, "Successful requests:", requests.completed);
    line(out, "Failed requests:", requests.failed);
    if let Some(cap) = run.facts.max_concurrency {
        line(out, "Maximum request concurrency:", cap);
    }
    if let Some(rate) = run.facts.request_rate {
        line2(out, "Request rate configured (RPS):", rate);
    }
    line2(out, "Benchmark duration (s):", run.summary.duration.ns() as f64 / 1e9);
    line(out, "Total input tokens:", vllm.total_input_tokens);
    if tokens {
        line(out, "Total generated tokens:", vllm.total_output_tokens);
    }
    line2(out, "Request throughput (req/s):", vllm.request_throughput);
    if let Some(goodput) = vllm.request_goodput {
        line2(out, "Request goodput (req/s):", goodput);
    }
    if tokens {
        line2(out, "Output token throughput (tok/s):", vllm.output_throughput);
        line2(out, "Peak output token throughput (tok/s):", vllm.max_output_tokens_per_s);
    }
    line2(out, "Peak concurrent requests:", vllm.max_concurrent_requests as f64);
    if run.rtfx() > 0.0 {
        line2(out, "RTFx (Inverse Real-Time Factor):", run.rtfx());
    }
    if tokens {
        line2(out, "Total token throughput (tok/s):", vllm.total_token_throughput);
    }
}

fn probes(out: &mut String, run: &Run<'_>) {
    let Some(probes) = &run.extras.probes else { return };
    title(out, "Probe Requests", '-');
    line(out, "Probe requests completed:", probes.completed);
    line(out, "Probe requests failed:", probes.failed);
    line2(out, "Median probe E2EL (ms):", probes.median_e2e_ms);
    line2(out, "P99 probe E2EL (ms):", probes.p99_e2e_ms);
    line2(out, "Max probe E2EL (ms):", probes.max_e2e_ms);
}

fn latency(out: &mut String, run: &Run<'_>, metric: Selected) {
    let (name, header) = match metric {
        Selected::Ttft => ("TTFT", "Time to First Token"),
        Selected::Tpot => ("TPOT", "Time per Output Token (excl. 1st token)"),
        Selected::Itl => ("ITL", "Inter-token Latency"),
        Selected::E2el => ("E2EL", "End-to-end Latency"),
        Selected::ClientQueueTime => ("Client Queue Time", "Client-side Queueing"),
        Selected::E2elIncludingClientQueue => ("E2EL incl. Client Queue", "Queue-inclusive End-to-end Latency"),
    };
    let sample: &Dist = run.sample(metric);
    // vLLM prints 0.00 where there is nothing.
    let ms = |ns: Option<f64>| ns.unwrap_or(0.0) * 1e-6;
    title(out, header, '-');
    line2(out, &format!("Mean {name} (ms):"), ms(sample.mean()));
    line2(out, &format!("Median {name} (ms):"), ms(sample.median()));
    for p in &run.selection.percentiles {
        line2(out, &format!("P{} {name} (ms):", percentile_word(*p)), ms(sample.percentile(*p)));
    }
}

fn diffusion(out: &mut String, run: &Run<'_>) {
    let Some(d) = &run.extras.diffusion else { return };
    title(out, "Diffusion Decoding", '-');
    line2(out, "Committed throughput (tok/s):", d.committed_throughput);
    line2(out, "Denoising steps per canvas:", d.steps_per_canvas);
    line2(out, "Committed per denoising step:", d.committed_per_step);
    line(out, "Committed tokens:", d.committed_tokens);
    line(out, "Denoising steps:", d.denoising_steps);
    line(out, "Canvas positions evaluated:", d.canvas_positions);
}

fn spec_decode(out: &mut String, run: &Run<'_>) {
    let Some(s) = run.extras.spec_decode.as_ref().filter(|_| run.extras.diffusion.is_none()) else { return };
    title(out, "Speculative Decoding", '-');
    line2(out, "Acceptance rate (%):", s.acceptance_rate());
    line2(out, "Acceptance length:", s.acceptance_length());
    line(out, "Drafts:", s.drafts);
    line(out, "Draft tokens:", s.draft_tokens);
    line(out, "Accepted tokens:", s.accepted_tokens);
    let positions = s.per_position();
    if positions.is_empty() {
        return;
    }
    out.push_str("Per-position acceptance (%):\n");
    for (i, share) in positions.iter().enumerate() {
        line2(out, &format!("  Position {i}:"), share * 100.0);
    }
}
