/// A figure and how it is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its name in the JSON output.
    pub figure: &'static str,
    /// What it is.
    pub meaning: &'static str,
}

/// The definitions behind [`crate::describe::Description`], in the order of its fields.
pub fn explain() -> &'static [Definition] {
    &DEFINITIONS
}

const fn is(figure: &'static str, meaning: &'static str) -> Definition {
    Definition { figure, meaning }
}

const DEFINITIONS: [Definition; 34] = [
    is("rows", "requests described; rows_read = rows_emitted + dropped, each reason with its first row"),
    is("percentiles", "linear between order statistics (type 7, numpy's default)"),
    is("std_pop, std_sample", "standard deviation with divisor n, and with n - 1"),
    is("arrivals.first, last", "seconds on the file's clock; for wall clocks seconds after first_unix_ns"),
    is("mean_rate_nminus1_over_span", "(n - 1) / (last - first)"),
    is("mean_rate_n_over_span", "n / (last - first)"),
    is(
        "last_row_minus_first_row_s",
        "last row's time minus first row's, in the order of the file; negative for some completion-ordered files",
    ),
    is("order_inversions_in_file", "rows earlier than the row before them in the file"),
    is("iat", "differences of the sorted arrival times, zero gaps included, in seconds"),
    is("cv_pop, cv_sample", "std_pop / mean and std_sample / mean of the gaps"),
    is(
        "burstiness_vllm_equiv_1_over_cv2",
        "1 / cv_pop^2: the shape of the Gamma renewal process with the same gap CV (vLLM's --burstiness)",
    ),
    is("goh_barabasi_B", "(std_pop - mean) / (std_pop + mean) of the gaps: -1 regular, 0 Poisson, 1 bursty"),
    is("gamma_mle_on_positive_gaps", "maximum likelihood on gaps above zero, where their CV is above 0.2"),
    is("weibull_mle_on_positive_gaps", "maximum likelihood on gaps above zero, where their CV is above 0.2"),
    is(
        "counts_Ws",
        "arrivals in the whole windows [first + i W, first + (i + 1) W); index_of_dispersion = var_pop / mean",
    ),
    is(
        "gap_cv_in_Ws_windows",
        "cv_pop of the gaps inside each window of W seconds (the last, partial one included) with ten arrivals or more",
    ),
    is("artefacts", "what the recording itself did to the figures: clock resolution, batching"),
    is("hour_of_day_counts", "requests by hour: UTC for wall clocks, else of the file's own day"),
    is("day_of_week_counts", "requests by weekday, Monday 0 (wall clocks)"),
    is(
        "periodicity",
        "daily and weekly cycles in the hourly counts: power at the period over ln 2 times the median of its neighbours, above 15; needs three whole cycles",
    ),
    is("input_length, output_length", "tokens of all rows that tell, failed ones included"),
    is("spearman_in_out", "rank correlation of input and output tokens, average ranks"),
    is("failures", "the same without the rows that failed at the source"),
    is(
        "models, classes, clients",
        "per group: requests, share, mean tokens, share failed, cv_pop of the gaps between its own arrivals",
    ),
    is("duration_s", "submission to last token, as the source measured it"),
    is("sessions.turns", "requests per session"),
    is(
        "sessions.think_time_s",
        "next arrival - (arrival + duration) within a session, or the wait the file states; overlaps are counted in negative_think",
    ),
    is("sessions.turn_gap_s", "next arrival - arrival within a session"),
    is(
        "prefix_cache",
        "in file order: a request hits its longest leading run of resident blocks, then all its blocks are inserted or refreshed first to last; LRU by block; token hits = min(hits * block, input)",
    ),
    is("curve", "block hit ratio at cache sizes of powers of two"),
    is("block_reuse_any_position_infinite", "1 - distinct / total: references to any block seen before"),
    is("top_block_request_share", "the share of requests that hold the most common block"),
    is("blocks_used_once_share", "blocks referenced once, of all blocks"),
    is(
        "mean_char_prefix_share_with_previous",
        "characters a prompt shares with the beginning of its session's previous prompt in the file, over its length; mean",
    ),
];
