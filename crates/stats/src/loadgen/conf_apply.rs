//! A configuration file laid over settings, with LoadGen's precedence.

use super::conf::{Conf, MLPERF_CONF, Remark, integer_prefix, parse, real};
use super::settings::{Mode, Scenario, Settings};

/// Which file it is. The seeds can be set by the defaults alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `mlperf.conf`, inside LoadGen.
    Defaults,
    /// `user.conf`.
    User,
    /// `audit.config`, whose model is always `*`.
    Audit,
}

/// Keys read from any file; the scenario column is the one that must stand in the key, `*` for the running one.
const KEYS: [(&str, &str); 29] = [
    ("mode", "*"),
    ("use_token_latencies", "*"),
    ("ttft_latency", "Server"),
    ("tpot_latency", "Server"),
    ("infer_token_latencies", "*"),
    ("token_latency_scaling_factor", "*"),
    ("target_latency_percentile", "SingleStream"),
    ("target_latency_percentile", "MultiStream"),
    ("target_latency_percentile", "Server"),
    ("samples_per_query", "MultiStream"),
    ("target_latency", "SingleStream"),
    ("target_latency", "MultiStream"),
    ("target_latency", "Server"),
    ("target_qps", "Server"),
    ("target_qps", "Offline"),
    ("coalesce_queries", "Server"),
    ("max_async_queries", "Server"),
    ("performance_issue_unique", "*"),
    ("performance_issue_same", "*"),
    ("performance_issue_same_index", "*"),
    ("sample_concatenate_permutation", "*"),
    ("min_duration", "*"),
    ("max_duration", "*"),
    ("min_query_count", "*"),
    ("max_query_count", "*"),
    ("performance_sample_count_override", "*"),
    ("accuracy_sample_count_override", "*"),
    ("print_timestamps", "*"),
    ("accuracy_log_rng_seed", "*"),
];
const MORE_KEYS: [(&str, &str); 1] = [("accuracy_log_sampling_target", "*")];
const DEFAULTS_ONLY: [&str; 8] = [
    "qsl_rng_seed",
    "sample_index_rng_seed",
    "schedule_rng_seed",
    "accuracy_log_probability",
    "test05",
    "test05_qsl_rng_seed",
    "test05_sample_index_rng_seed",
    "test05_schedule_rng_seed",
];

impl Settings {
    /// LoadGen's settings for a model before any `user.conf`: its own defaults with `mlperf.conf` over them.
    pub fn official(model: &str, scenario: Scenario) -> Settings {
        let mut settings = Settings { scenario, ..Settings::default() };
        settings.apply(&parse(MLPERF_CONF), model, Source::Defaults);
        settings
    }

    /// Lays a file over these settings and says what of it LoadGen would silently leave out. A file with errors changes
    /// nothing (see [`Conf::errors`]).
    pub fn apply(&mut self, conf: &Conf, model: &str, source: Source) -> Vec<Remark> {
        if !conf.errors.is_empty() {
            return Vec::new();
        }
        let model = if source == Source::Audit { "*" } else { model };
        let mut lookup = Lookup { conf, model, scenario: self.scenario.name(), remarks: conf.ignored.clone() };
        if source == Source::Defaults {
            self.apply_seeds(&mut lookup);
        }
        self.apply_any(&mut lookup);
        self.apply_streams(&mut lookup);
        self.apply_server(&mut lookup);
        let mut remarks = lookup.remarks;
        if source != Source::Defaults {
            remarks.extend(unread(conf, source, model));
        }
        remarks.sort_by_key(|r| r.line);
        remarks
    }

    fn apply_seeds(&mut self, l: &mut Lookup<'_>) {
        l.int("qsl_rng_seed", &mut self.qsl_rng_seed, 1);
        l.int("sample_index_rng_seed", &mut self.sample_index_rng_seed, 1);
        l.int("schedule_rng_seed", &mut self.schedule_rng_seed, 1);
        l.real("accuracy_log_probability", &mut self.accuracy_log_probability, 0.01);
        l.flag("test05", &mut self.test05, |v| v != 0);
        l.int("test05_qsl_rng_seed", &mut self.test05_qsl_rng_seed, 1);
        l.int("test05_sample_index_rng_seed", &mut self.test05_sample_index_rng_seed, 1);
        l.int("test05_schedule_rng_seed", &mut self.test05_schedule_rng_seed, 1);
    }

    fn apply_any(&mut self, l: &mut Lookup<'_>) {
        let mut mode = None;
        l.with("mode", l.scenario, |v| mode = Some(v));
        match mode {
            Some(0) => self.mode = Mode::SubmissionRun,
            Some(1) => self.mode = Mode::AccuracyOnly,
            Some(2) => self.mode = Mode::PerformanceOnly,
            Some(3) => self.mode = Mode::FindPeakPerformance,
            _ => {}
        }
        l.flag("performance_issue_unique", &mut self.performance_issue_unique, |v| v != 0);
        l.flag("performance_issue_same", &mut self.performance_issue_same, |v| v != 0);
        l.int("performance_issue_same_index", &mut self.performance_issue_same_index, 1);
        l.flag("sample_concatenate_permutation", &mut self.sample_concatenate_permutation, |v| v == 1);
        l.int("min_duration", &mut self.min_duration_ms, 1);
        l.int("max_duration", &mut self.max_duration_ms, 1);
        l.int("min_query_count", &mut self.min_query_count, 1);
        l.int("max_query_count", &mut self.max_query_count, 1);
        l.int("performance_sample_count_override", &mut self.performance_sample_count_override, 1);
        l.int("accuracy_sample_count_override", &mut self.accuracy_sample_count_override, 1);
        l.flag("print_timestamps", &mut self.print_timestamps, |v| v != 0);
        l.int("accuracy_log_rng_seed", &mut self.accuracy_log_rng_seed, 1);
        l.int("accuracy_log_sampling_target", &mut self.accuracy_log_sampling_target, 1);
        l.flag("use_token_latencies", &mut self.use_token_latencies, |v| v == 1);
        l.flag("infer_token_latencies", &mut self.infer_token_latencies, |v| v == 1);
        l.int("token_latency_scaling_factor", &mut self.token_latency_scaling_factor, 1);
    }

    fn apply_streams(&mut self, l: &mut Lookup<'_>) {
        l.scenario = "SingleStream";
        l.real("target_latency_percentile", &mut self.single_stream_target_latency_percentile, 0.01);
        l.real("target_latency", &mut self.single_stream_expected_latency_ns, 1e6);
        l.scenario = "MultiStream";
        l.real("target_latency_percentile", &mut self.multi_stream_target_latency_percentile, 0.01);
        l.real("target_latency", &mut self.multi_stream_expected_latency_ns, 1e6);
        l.int("samples_per_query", &mut self.multi_stream_samples_per_query, 1);
    }

    fn apply_server(&mut self, l: &mut Lookup<'_>) {
        l.scenario = "Server";
        l.real("target_latency_percentile", &mut self.server_target_latency_percentile, 0.01);
        l.int("target_latency", &mut self.server_target_latency_ns, 1_000_000);
        l.real("target_qps", &mut self.server_target_qps, 1.0);
        l.flag("coalesce_queries", &mut self.server_coalesce_queries, |v| v != 0);
        l.int("max_async_queries", &mut self.server_max_async_queries, 1);
        if self.use_token_latencies {
            l.int("ttft_latency", &mut self.ttft_latency, 1_000_000);
            l.int("tpot_latency", &mut self.tpot_latency, 1_000_000);
        }
        l.scenario = "Offline";
        l.real("target_qps", &mut self.offline_expected_qps, 1.0);
    }
}

struct Lookup<'a> {
    conf: &'a Conf,
    model: &'a str,
    scenario: &'static str,
    remarks: Vec<Remark>,
}

impl Lookup<'_> {
    /// The most telling of the four spellings of a key that the file has: model and scenario, scenario, model, neither.
    fn find(&self, key: &str, scenario: &str) -> Option<&super::conf::Setting> {
        [(self.model, scenario), ("*", scenario), (self.model, "*"), ("*", "*")]
            .into_iter()
            .find_map(|(m, s)| self.conf.settings.get(&format!("{m}.{s}.{key}")))
    }

    fn with(&mut self, key: &str, scenario: &str, mut set: impl FnMut(u64)) {
        let Some(found) = self.find(key, scenario).cloned() else { return };
        let (value, read) = integer_prefix(&found.value);
        if read != found.value.len() {
            let what = format!("LoadGen reads an integer here and takes {:?} for {value}", found.value);
            self.remarks.push(Remark { line: found.line, text: found.text, what });
        }
        set(value);
    }

    fn int(&mut self, key: &str, field: &mut u64, scale: u64) {
        self.with(key, self.scenario, |v| *field = v.wrapping_mul(scale));
    }

    fn flag(&mut self, key: &str, field: &mut bool, truth: impl Fn(u64) -> bool) {
        self.with(key, self.scenario, |v| *field = truth(v));
    }

    fn real(&mut self, key: &str, field: &mut f64, scale: f64) {
        let value = self.find(key, self.scenario).and_then(|s| real(&s.value));
        if let Some(value) = value {
            *field = value * scale;
        }
    }
}

/// Lines whose key nothing ever asks for.
fn unread(conf: &Conf, source: Source, running: &str) -> Vec<Remark> {
    let remarks = conf.settings.iter().filter_map(|(key, setting)| {
        let what = unread_key(key, source, running)?;
        Some(Remark { line: setting.line, text: setting.text.clone(), what })
    });
    remarks.collect()
}

fn unread_key(key: &str, source: Source, running: &str) -> Option<String> {
    let Some((head, name)) = key.rsplit_once('.') else {
        return Some("a key is model.scenario.key; LoadGen ignores this one".into());
    };
    let Some((model, scenario)) = head.rsplit_once('.') else {
        return Some("a key is model.scenario.key; LoadGen ignores this one".into());
    };
    if source == Source::Audit && model != "*" {
        return Some("an audit configuration is read with the model `*` alone, so LoadGen ignores this line".into());
    }
    if model != "*" && running == "*" {
        return Some(format!("it is for the model {model:?} and this run names none, so this line is ignored"));
    }
    if DEFAULTS_ONLY.contains(&name) {
        return Some(format!("LoadGen takes {name} from its built-in mlperf.conf alone and ignores it here"));
    }
    if scenario != "*" && Scenario::named(scenario).is_none() {
        let hint = if scenario == "Interactive" {
            " (an Interactive benchmark is a model, `X-interactive`, under Server)"
        } else {
            ""
        };
        return Some(format!("there is no scenario {scenario:?}; LoadGen ignores this line{hint}"));
    }
    let known: Vec<&str> = KEYS.iter().chain(&MORE_KEYS).filter(|(k, _)| *k == name).map(|&(_, s)| s).collect();
    if known.is_empty() {
        return Some(format!("LoadGen knows no key {name:?} and ignores this line"));
    }
    let read = scenario == "*" || known.iter().any(|&s| s == "*" || s == scenario);
    (!read).then(|| format!("LoadGen reads {name} only for {}, so this line is ignored", known.join(", ")))
}
