//! What each figure is: formula, start point, and where it differs from namesakes.

/// A printed figure and its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Keys it goes by in flags and JSON.
    pub keys: &'static [&'static str],
    /// How its printed line begins, without statistic (Mean, Median, P99) and unit.
    pub label: &'static str,
    /// The definition.
    pub text: &'static str,
}

/// The definition of a figure by its key (`ttft`, `tpot_vllm`, `duration` …) or by its printed label.
pub fn explain(name: &str) -> Option<&'static str> {
    let wanted = name.trim().trim_end_matches(':');
    let same = |e: &&Entry| e.keys.contains(&wanted) || e.label.eq_ignore_ascii_case(wanted);
    let bare = strip_statistic(wanted);
    ENTRIES.iter().find(same).or_else(|| ENTRIES.iter().find(|e| e.label == bare)).map(|e| e.text)
}

/// Every definition.
pub fn all() -> &'static [Entry] {
    ENTRIES
}

/// The definition behind a printed line; `None` for rules, titles, and lines that are sentences.
pub fn of_line(line: &str) -> Option<&'static Entry> {
    let line = line.trim_start();
    // The longest label wins: `Mean TTFT` is not `Mean in flight`.
    let named = |text: &str| ENTRIES.iter().filter(|e| begins(text, e.label)).max_by_key(|e| e.label.len());
    named(line).or_else(|| named(strip_statistic(line)))
}

/// The definitions of the figures that a printed report shows, each once, in order.
pub(crate) fn of_report(report: &str) -> Vec<&'static Entry> {
    let mut shown: Vec<&'static Entry> = Vec::new();
    for entry in report.lines().filter_map(of_line) {
        if !shown.contains(&entry) {
            shown.push(entry);
        }
    }
    shown
}

fn begins(line: &str, label: &str) -> bool {
    line.strip_prefix(label).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

/// Without `Mean `, `Median `, `P99.9 ` in front.
fn strip_statistic(text: &str) -> &str {
    let Some((first, rest)) = text.split_once(' ') else { return text };
    let percentile = first.strip_prefix('P').is_some_and(|p| p.parse::<f64>().is_ok());
    if percentile || first == "Mean" || first == "Median" { rest } else { text }
}

const fn entry(keys: &'static [&'static str], label: &'static str, text: &'static str) -> Entry {
    Entry { keys, label, text }
}

const ENTRIES: &[Entry] = &[
    // The block in vLLM's layout.
    entry(
        &["completed"],
        "Successful requests",
        "requests whose whole answer came: a 2xx status, at least one token, no error object, and a stated end",
    ),
    entry(
        &["failed"],
        "Failed requests",
        "requests that went wrong, a truncated stream included; they enter no latency and no token count of this block",
    ),
    entry(&["max_concurrency"], "Maximum request concurrency", "the cap asked for on requests in flight"),
    entry(
        &["request_rate"],
        "Request rate configured (RPS)",
        "arrivals per second asked for; what was delivered stands under Load",
    ),
    entry(
        &["duration"],
        "Benchmark duration (s)",
        "from just before the first arrival could leave to the end of the last request, drain included",
    ),
    entry(
        &["total_input_tokens"],
        "Total input tokens",
        "prompt tokens of successful requests, by the server's usage where it sends one, else as asked for",
    ),
    entry(
        &["total_output_tokens"],
        "Total generated tokens",
        "output tokens of successful requests, by the server's usage, else a tokenizer run here, else one per event",
    ),
    entry(&["request_throughput"], "Request throughput (req/s)", "successful requests / duration"),
    entry(
        &["request_goodput"],
        "Request goodput (req/s)",
        "successful requests that met every objective / duration, all counted from the write as vLLM does; one-token answers count as TPOT 0",
    ),
    entry(&["output_throughput"], "Output token throughput (tok/s)", "output tokens / duration"),
    entry(
        &["max_output_tokens_per_s"],
        "Peak output token throughput (tok/s)",
        "vLLM's figure: most token events (not tokens) in one of the seconds counted from the first successful request's start",
    ),
    entry(
        &["max_concurrent_requests"],
        "Peak concurrent requests",
        "vLLM's figure: most successful requests that touched one such second, even one after the other; the exact peak stands under Load",
    ),
    entry(&["rtfx"], "RTFx (Inverse Real-Time Factor)", "seconds of audio sent / duration"),
    entry(&["total_token_throughput"], "Total token throughput (tok/s)", "(input tokens + output tokens) / duration"),
    entry(&["probe_completed"], "Probe requests completed", "single-token probes beside the load that were answered"),
    entry(&["probe_failed"], "Probe requests failed", "probes that were not answered"),
    entry(
        &["probe_median_e2el_ms", "probe_p99_e2el_ms"],
        "probe E2EL",
        "a probe's last token - its first byte written",
    ),
    entry(&["probe_max_e2el_ms"], "Max probe E2EL", "the slowest probe: last token - first byte written"),
    entry(
        &["ttft"],
        "TTFT",
        "first token - first byte of the request written; connecting is not part of it. The first token is the first event with output of any kind: content, reasoning, tool arguments, or a token without text; never a role, usage or finish event",
    ),
    entry(
        &["tpot_vllm"],
        "TPOT (ms)",
        "vLLM's figure: (last token - first token) / (n - 1) per request, n output tokens; requests of one token are left out",
    ),
    entry(
        &["icl", "itl_vllm"],
        "ITL",
        "vLLM's figure: gaps between token events of a request, all requests pooled; an event may carry several tokens",
    ),
    entry(
        &["e2el", "e2e"],
        "E2EL",
        "last token - first byte of the request written; a usage chunk or [DONE] after the last token does not lengthen it",
    ),
    entry(
        &["client_queue_time"],
        "Client Queue Time",
        "release - scheduled arrival: the wait in this client for a place under the cap",
    ),
    entry(&["e2el_including_client_queue"], "E2EL incl. Client Queue", "E2EL + Client Queue Time"),
    entry(
        &["diffusion_committed_throughput"],
        "Committed throughput (tok/s)",
        "tokens committed by the server's counter / duration",
    ),
    entry(
        &["diffusion_steps_per_canvas"],
        "Denoising steps per canvas",
        "denoising steps / canvases, commit steps left out, by the server's counters",
    ),
    entry(&["diffusion_committed_per_step"], "Committed per denoising step", "tokens committed / denoising steps"),
    entry(&["diffusion_committed_tokens"], "Committed tokens", "tokens committed, difference of the server's counter"),
    entry(
        &["diffusion_denoising_steps"],
        "Denoising steps",
        "denoising steps without commit steps, by the server's counters",
    ),
    entry(
        &["diffusion_canvas_positions"],
        "Canvas positions evaluated",
        "canvas positions, difference of the server's counter",
    ),
    entry(
        &["spec_decode_acceptance_rate"],
        "Acceptance rate (%)",
        "100 x accepted draft tokens / draft tokens, differences of the server's counters (all its traffic)",
    ),
    entry(&["spec_decode_acceptance_length"], "Acceptance length", "1 + accepted draft tokens / drafts"),
    entry(&["spec_decode_num_drafts"], "Drafts", "drafts made, difference of the server's counter"),
    entry(&["spec_decode_draft_tokens"], "Draft tokens", "tokens drafted, difference of the server's counter"),
    entry(
        &["spec_decode_accepted_tokens"],
        "Accepted tokens",
        "draft tokens accepted, difference of the server's counter",
    ),
    entry(
        &["spec_decode_per_position_acceptance_rates"],
        "Per-position acceptance (%)",
        "drafts whose token at that position was accepted / drafts",
    ),
    entry(&[], "Position", "drafts whose token at that position was accepted / drafts"),
    // Tailbound's block.
    entry(
        &["verdict"],
        "Verdict",
        "VALID if the load asked for was delivered and the client did not shape the numbers; otherwise INVALID, with every reason",
    ),
    entry(
        &["objectives"],
        "Objectives",
        "MET if the share of judged requests that met all their objectives reaches the share needed; failed requests, and those never sent though they were due, are misses; not judged are requests that we cancelled, that somebody's stop kept from being sent, or whose turn never came",
    ),
    entry(&["attainment"], "Attainment", "good requests / judged requests, with Wilson's 95 % interval"),
    entry(
        &[],
        "TTFT from arrival <=",
        "share of judged requests whose first token came within the limit after the scheduled arrival; over by: how much the value at the needed share exceeds the limit",
    ),
    entry(
        &[],
        "TTFT <=",
        "share of judged requests whose first token came within the limit after the write; over by: how much the value at the needed share exceeds the limit",
    ),
    entry(
        &[],
        "TPOT <=",
        "share of judged requests whose TPOT, over n - k1, is within the limit; answers with nothing after their first event meet it and are shown apart",
    ),
    entry(
        &[],
        "E2E from arrival <=",
        "share of judged requests whose last token came within the limit after the scheduled arrival",
    ),
    entry(&[], "E2E <=", "share of judged requests whose last token came within the limit after the write"),
    entry(&[], "class", "good of judged requests in that request class, by its own objectives"),
    entry(
        &["goodput_requests_per_s"],
        "Good requests (req/s)",
        "requests that met all objectives, from the headline start / duration",
    ),
    entry(&["goodput_tokens_per_s"], "Good tokens (tok/s)", "output tokens of those requests / duration"),
    entry(
        &["deadline_miss_rate"],
        "Token deadlines missed",
        "etalon: a token is due --ttft-deadline after the start or --tbt-deadline after the one before it, early tokens leave slack; a stall misses every deadline within it",
    ),
    entry(
        &["fluidity_index_code"],
        "Fluidity-index (code)",
        "1 - missed / all deadlines of a request, as etalon's code counts them; mean over requests",
    ),
    entry(
        &["fluidity_index_docs"],
        "Fluidity-index (docs)",
        "tokens in time / tokens of a request, as etalon's documents say; mean over requests",
    ),
    entry(
        &["fluid_token_rate"],
        "Fluid token rate (tok/s)",
        "1 / p99 over requests of the least --tbt-deadline with at most 10 % missed, first tokens apart",
    ),
    entry(
        &["planned"],
        "Requests planned",
        "requests in the plan; cancelled: given up by us; never sent: the run ended first",
    ),
    entry(&[], "Replayed from", "the file (or the run's folder) and the format it was read as"),
    entry(
        &["speed"],
        "Times the trace's own speed",
        "recorded time / replayed time; waits inside sessions are not shortened",
    ),
    entry(
        &["sessions"],
        "Sessions",
        "requests that follow no other; each of their later turns is scheduled for the end of the one before it and the wait",
    ),
    entry(
        &["rows_read"],
        "Rows read",
        "requests in the trace = dropped, by reason, with the first such row + left out by flags + planned - repeated",
    ),
    entry(&["rows_planned"], "Rows planned", "requests of the plan, sent or not"),
    entry(
        &["groups"],
        "planned    done",
        "the same figures for a part of the requests; TTFT from the headline start, by nearest rank; good: of those judged, the share \
         that met all objectives of their class",
    ),
    entry(
        &["scheduled_per_s"],
        "Arrivals scheduled (req/s)",
        "(scheduled arrivals - 1) / (last - first scheduled arrival)",
    ),
    entry(
        &["sent_per_s"],
        "Requests sent (req/s)",
        "(requests sent - 1) / (last - first departure); a departure is the start of connecting, or of writing on an open connection",
    ),
    entry(
        &["lateness"],
        "Sends late, p99 / max (ms)",
        "departure - release, by nearest rank: how late this client was itself",
    ),
    entry(
        &["concurrency"],
        "In flight, peak / mean",
        "requests between departure and end of stream, counted exactly at every change; mean weighted by time over the run",
    ),
    entry(&["at_cap_share"], "Time at the cap", "share of the run with as many requests in flight as the cap allows"),
    entry(
        &["retries"],
        "Sent again on stale connections",
        "requests repeated because a kept-alive connection was closed before any byte went either way",
    ),
    entry(&["input_tokens_per_s"], "Input token throughput (tok/s)", "input tokens of successful requests / duration"),
    entry(
        &["peak_output_tokens_per_s"],
        "Peak output, any second (tok/s)",
        "most output tokens within any one second, wherever it begins; events count with their tokens",
    ),
    entry(
        &["tokens_per_event"],
        "Tokens per event",
        "output tokens / token events: above 1 the server bundles, and ITL as vLLM takes it is a gap between bundles",
    ),
    entry(
        &["cached_share"],
        "Input from the prefix cache",
        "cached prompt tokens by the server's usage / input tokens",
    ),
    entry(&["reasoning_share"], "Output that is reasoning", "reasoning tokens by the server's usage / output tokens"),
    entry(
        &["output_source"],
        "Output tokens counted by",
        "the least trustworthy counter of any request: the server's usage, a tokenizer run here over the whole text, or one per event",
    ),
    entry(
        &["ttft_scheduled"],
        "TTFT from arrival",
        "first token - scheduled arrival: every wait in this client included. Percentiles by nearest rank; p99+miss counts failed requests, and those never sent though due, as infinite",
    ),
    entry(
        &["ttft_write"],
        "TTFT from write",
        "first token - first byte of the request written. Percentiles by nearest rank; p99+miss counts failed requests, and those never sent though due, as infinite",
    ),
    entry(&["ttfo"], "First visible token", "first event a user would see (not reasoning) - first byte written"),
    entry(
        &["tpot"],
        "TPOT",
        "(last token - first token) / (n - k1) per request: n output tokens, k1 of them in the first event (1 if unknown); none where nothing followed the first event",
    ),
    entry(&["itl"], "Inter-token (ITL)", "gap between events / tokens of the later event, once per token, pooled"),
    entry(&["itl_events"], "Inter-event (ICL)", "gaps between token events, pooled; the same sample as vLLM's ITL"),
    entry(
        &["clean_gaps"],
        "ICL, own read only",
        "gaps that end in an event which shared its read with no other: the only ones known exactly where many are shared",
    ),
    entry(&["e2e_scheduled"], "E2E from arrival", "last token - scheduled arrival"),
    entry(&["e2e_write"], "E2E from write", "last token - first byte of the request written"),
    entry(&["stream_end"], "Stream end", "end of the response body - first byte written"),
    entry(
        &["connect"],
        "Connect",
        "connecting, TLS included, for requests that opened a connection; never part of TTFT from write",
    ),
    entry(&["client_queue"], "Client queue", "release - scheduled arrival, of every request released"),
    entry(
        &["interval"],
        "TTFT from arrival, 95 % interval",
        "two measured values that enclose the true percentile with 95 % confidence (order statistics, binomial)",
    ),
    entry(
        &["interval_write"],
        "TTFT from write, 95 % interval",
        "two measured values that enclose the true percentile with 95 % confidence (order statistics, binomial)",
    ),
    entry(
        &["steady"],
        "Window (s)",
        "the steady part of the run, from its start: with a cap, the longest stretch between reaching and leaving 95 % of it whose mean is at least that; in an open loop, from the first departure plus a median latency to the last arrival. Short: under 10 s or a tenth of the run",
    ),
    entry(&["steady_concurrency"], "Mean in flight", "requests in flight within the window, weighted by time"),
    entry(
        &["steady_requests_per_s"],
        "Requests (req/s)",
        "successful requests, each by the share of its life inside the window / its length",
    ),
    entry(
        &["steady_output_tokens_per_s"],
        "Output tokens (tok/s)",
        "output tokens that came within the window / its length; 95 % interval by 20 batch means",
    ),
    entry(
        &["steady_ttft"],
        "TTFT from write, p50 / p99 (ms)",
        "first token - first byte written, for requests written within the window",
    ),
    entry(
        &["steady_tpot"],
        "TPOT, p50 / p99 (ms)",
        "(last token - first token) / (n - k1), for requests written within the window",
    ),
    // What servers say of themselves.
    entry(&["server_metrics"], "Metrics of", "whose figures follow, by the names they go by, and where they were read"),
    entry(
        &["server_scrapes"],
        "Looked at, times",
        "how often it stated its figures, about once a second from before the first request until after the last",
    ),
    entry(
        &["server_restarts"],
        "Began to count anew, times",
        "how often its counters fell or its start moved; what was counted before is never subtracted",
    ),
    entry(
        &["server_running"],
        "Requests running, mean / max",
        "requests its engine works on, at the looks within the run; all engines and models of the page together",
    ),
    entry(
        &["server_waiting"],
        "Requests waiting, mean / max",
        "requests that its engine has not begun or has put back, at the looks within the run",
    ),
    entry(
        &["server_kv_use"],
        "KV cache in use, mean / max",
        "share of the KV cache's blocks in use, at the looks within the run; the mean of several engines",
    ),
    entry(
        &["server_gpu_use"],
        "GPUs busy, mean / max",
        "share of time in which a kernel ran, as the driver states it; the mean of several",
    ),
    entry(&["server_gpu_power"], "GPU power, mean / max (W)", "power drawn by all GPUs of the page"),
    entry(&["server_gpu_temperature"], "Hottest GPU, mean / max (°C)", "temperature of the hottest GPU of the page"),
    entry(&["server_gpu_memory"], "GPU memory, mean / max (GiB)", "memory of all GPUs of the page in use"),
    entry(&["server_cpu_use"], "CPUs busy, mean / max", "1 - idle / all CPU time, from one look to the next"),
    entry(&["server_memory_use"], "Memory in use, at most", "1 - least memory available / all memory"),
    entry(
        &["server_prefix_hit_share"],
        "Prompt tokens in its prefix cache",
        "tokens found / tokens looked up, differences of its counters from the first look to the last (all its traffic)",
    ),
    entry(
        &["server_acceptance_share"],
        "Drafted tokens it accepted",
        "accepted / drafted tokens, differences of its counters (all its traffic)",
    ),
    entry(
        &["server_preemptions"],
        "Preemptions",
        "times a request lost its memory and had to begin again, difference of its counter",
    ),
    entry(
        &["server_prompt_tokens_per_s"],
        "Prompt tokens it took in (tok/s)",
        "difference of its counter / time from the first look to the last, cached tokens included",
    ),
    entry(
        &["server_generated_tokens_per_s"],
        "Tokens it generated (tok/s)",
        "difference of its counter / time from the first look to the last",
    ),
    entry(
        &["server_process_cpu"],
        "CPU of its process (cores)",
        "CPU time of the process that states the metrics / time; near 1 in a server of one thread, it is the bottleneck",
    ),
    entry(
        &["server_gpu_energy"],
        "Energy of its GPUs (kJ)",
        "difference of their counters from the first look to the last",
    ),
    entry(
        &["server_ttft_mean"],
        "TTFT mean, by it / here (ms)",
        "mean of the server's own histogram over the run; and here, from the write, over every request with a first token, warm-ups and probes too",
    ),
    entry(
        &["server_ttft_p50"],
        "TTFT p50, by it / here (ms)",
        "the bounds of the bucket in which the server's percentile lies (a histogram knows no more); and here by nearest rank",
    ),
    entry(
        &["server_ttft_p99"],
        "TTFT p99, by it / here (ms)",
        "the bounds of the bucket in which the server's percentile lies (a histogram knows no more); and here by nearest rank",
    ),
    entry(
        &["protocol"],
        "Protocol",
        "the version of HTTP that was spoken; with either, one request in flight on each connection",
    ),
    entry(
        &["stamps"],
        "Receive times taken by",
        "kernel: stamped when the segment arrived; user space: when this process read it; virtual: simulated",
    ),
    entry(
        &["coalesced_share"],
        "Events sharing a read",
        "token events read together with the one before / token events after the first; above 1 % their gaps are set apart",
    ),
    entry(
        &["headline_start"],
        "Headline latencies start at",
        "open-loop runs count from the scheduled arrival, so that a late send or a queue here is not hidden; closed loops from the write",
    ),
    entry(&["tpot_over_n"], "TPOT over n", "(last token - first token) / n"),
    entry(
        &["tpot_incl_ttft", "ntpot"],
        "TPOT incl. TTFT",
        "(last token - first byte written) / n; others call it NTPOT or normalised latency",
    ),
    entry(&["interactivity"], "Tokens/s per user", "1 / TPOT per request"),
];
