//! The result lines of a detail log.

use super::detail::Journal;
use super::number::fixed;
use super::score::Score;
use super::settings::Scenario;
use super::spread::{GRID, Spread};
use super::summary::duration_advice;

impl Journal {
    /// The result of a performance run, and the error count that ends the log.
    pub fn result(&mut self, score: &Score) {
        self.decision(score);
        self.int("result_query_count", score.queries);
        let scenario = score.effective.requested.scenario;
        let r = &score.rates;
        match scenario {
            Scenario::SingleStream => {
                self.real("result_qps_with_loadgen_overhead", r.with_overhead);
                self.real("result_qps_without_loadgen_overhead", r.without_overhead);
                self.int("early_stopping_latency_ss", score.decision.estimate_ss);
                self.int("early_stopping_latency_ms", score.decision.estimate_ms);
            }
            Scenario::MultiStream => {
                if let Some(query) = &score.query_latency {
                    self.spread(
                        query,
                        ["result_min_query_latency_ns", "result_max_query_latency_ns", "result_mean_query_latency_ns"],
                    );
                    self.grid(query, "", "percentile_per_query_latency_ns");
                }
                self.int("early_stopping_latency_ms", score.decision.estimate_ms);
            }
            Scenario::Server => {
                self.int("result_overlatency_query_count", score.over_latency);
                self.real("result_scheduled_samples_per_sec", r.scheduled);
                self.real("result_completed_samples_per_sec", r.completed);
            }
            Scenario::Offline => self.real("result_samples_per_second", r.offline),
        }
        self.spread(&score.latency, ["result_min_latency_ns", "result_max_latency_ns", "result_mean_latency_ns"]);
        self.grid(&score.latency, "", "percentile_latency_ns");
        self.token_result(score);
        let errors = self.errors();
        self.int("num_errors", errors);
    }

    fn decision(&mut self, score: &Score) {
        let d = &score.decision;
        self.text("result_validity", if d.valid() { "VALID" } else { "INVALID" });
        if let Some(met) = d.constraints {
            self.int("result_perf_constraints_met", met);
        }
        self.int("result_min_duration_met", d.duration);
        self.int("result_min_queries_met", d.queries);
        self.int("early_stopping_met", d.stopping);
        if !d.valid() {
            let mut why = String::new();
            if d.constraints == Some(false) {
                why += &format!("{} ", d.constraints_text);
            }
            if !d.duration {
                why += &format!("{} ", duration_advice(score.effective.requested.scenario));
            }
            if !d.queries {
                why += "The test exited early, before enough queries were issued.";
            }
            self.text("result_invalid_reason", &one_line(&why));
        }
        if score.tokens.is_none() {
            self.text("early_stopping_result", &one_line(&d.stopping_text));
            return;
        }
        self.text("early_stopping_ttft_result", &one_line(&d.stopping_ttft_text));
        self.text("early_stopping_tpot_result", &one_line(&d.stopping_text));
    }

    fn token_result(&mut self, score: &Score) {
        let Some(tokens) = &score.tokens else { return };
        let r = &score.rates;
        if score.effective.requested.scenario == Scenario::Offline {
            self.real("result_tokens_per_second", r.tokens_offline);
            return;
        }
        let (Some(ttft), Some(tpot)) = (&tokens.ttft, &tokens.tpot) else { return };
        self.spread(
            ttft,
            [
                "result_first_token_min_latency_ns",
                "result_first_token_max_latency_ns",
                "result_first_token_mean_latency_ns",
            ],
        );
        self.grid(ttft, "first_token_", "percentile_latency_ns");
        self.real("result_token_throughput_with_loadgen_overhead", r.tokens_with_overhead);
        self.real("result_token_throughput", r.tokens_per_latency_ns);
        self.grid(tpot, "time_per_output_token_", "percentile_ns");
        self.spread(
            tpot,
            ["result_time_to_output_token_min", "result_time_to_output_token_max", "result_time_to_output_token_mean"],
        );
        self.real("result_completed_tokens_per_second", r.tokens_completed);
    }

    fn spread(&mut self, spread: &Spread, [min, max, mean]: [&str; 3]) {
        self.int(min, spread.min);
        self.int(max, spread.max);
        self.int(mean, spread.mean);
    }

    fn grid(&mut self, spread: &Spread, before: &str, after: &str) {
        for (q, value) in GRID.into_iter().zip(spread.grid) {
            self.int(&format!("result_{before}{}_{after}", fixed(q * 100.0, 2)), value);
        }
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}
