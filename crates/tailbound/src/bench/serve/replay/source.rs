use super::by_law;
use crate::bench::serve::args::ServeArgs;
use crate::bench::serve::data_args::SeedCompat;
use crate::bench::serve::journal;
use crate::failure::{Failure, Outcome};
use crate::workload::{open_trace, unreadable};
use std::path::{Path, PathBuf};
use tailbound_trace::{Failures, Format, Options, Trace};

/// Where a replayed load comes from.
pub enum Source {
    /// A trace file; `None`: its content tells the format.
    File(PathBuf, Option<Format>),
    /// The folder of one of our own runs.
    Record(PathBuf),
}

impl Source {
    /// By the data set's name. Data sets of `vllm bench serve` keep its meaning where no trace is asked for.
    pub fn of(args: &ServeArgs) -> Outcome<Option<Source>> {
        let name = args.data.dataset_name.replace('_', "-").to_ascii_lowercase();
        let format = match name.as_str() {
            "trace" => args.trace.trace_format,
            "record" => return path(args).map(|path| Some(Source::Record(path))),
            "azure" => Some(Format::AzureLlm),
            "sharegpt" if !args.trace.multi_turn => return Ok(None),
            "burstgpt" if by_law(args) || args.data.seed_compat == SeedCompat::Vllm => return Ok(None),
            "custom" if args.trace.columns.is_none() => return Ok(None),
            _ => match Format::from_word(&name) {
                Some(format) => Some(format),
                None => return Ok(None),
            },
        };
        path(args).map(|path| Some(Source::File(path, format)))
    }

    /// What it was named.
    pub fn path(&self) -> &Path {
        match self {
            Source::File(path, _) | Source::Record(path) => path,
        }
    }

    /// What it is.
    pub fn format(&self, trace: &Trace) -> String {
        match self {
            Source::File(..) => trace.format.map_or("trace", Format::word).to_owned(),
            Source::Record(_) => "record".to_owned(),
        }
    }

    /// Whether vLLM gives the same name another meaning: then it is said that times are honoured here.
    pub fn tells_timing(&self) -> bool {
        matches!(self, Source::File(_, Some(Format::BurstGpt)))
    }

    /// Reads all of it.
    pub fn collect(&self, args: &ServeArgs) -> Outcome<Trace> {
        match self {
            Source::File(path, format) => {
                let options = Options {
                    format: *format,
                    failures: Failures::Drop,
                    block_tokens: args.trace.block_tokens,
                    columns: args.trace.columns.clone(),
                    models: args.trace.trace_model.clone(),
                    classes: args.trace.trace_class.clone(),
                    lossy: false,
                };
                Trace::collect(open_trace(path, &options)?).map_err(unreadable)
            }
            Source::Record(folder) => journal::as_trace(folder),
        }
    }
}

fn path(args: &ServeArgs) -> Outcome<PathBuf> {
    let name = &args.data.dataset_name;
    args.data.dataset_path.clone().ok_or_else(|| {
        let what = if name == "record" { "DIR (what --run-dir named)" } else { "FILE" };
        Failure::usage(format!("--dataset-name {name} needs --dataset-path {what}"))
    })
}
