//! `tailbound workload …`: traces described, learned from, generated and converted.

pub mod convert;
mod describe;
mod fit;
mod generate;
mod page;
#[cfg(feature = "parquet")]
mod parquet;
pub mod place;

use crate::failure::{Failure, Outcome};
use clap::{Args, Subcommand, ValueEnum};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tailbound_trace::{
    Accounting, Columns, Error, Failures, Format, Options, Output, Reader, Refusal, Trace, open, write,
};

/// What to do with a trace.
#[derive(Args, Debug)]
pub struct WorkloadArgs {
    #[command(subcommand)]
    command: WorkloadCommand,
}

#[derive(Subcommand, Debug)]
enum WorkloadCommand {
    /// What a trace is like: arrivals, lengths, sessions, prefix sharing, and what became of every row
    Describe(describe::DescribeArgs),
    /// Learn a model of a trace's clients: when they send, what, and how their conversations go on
    Fit(fit::FitArgs),
    /// Draw a workload: from a model, from a ServeGen pool, or from laws
    Generate(Box<generate::GenerateArgs>),
    /// Write a trace in another format; faster, shorter or thinner if asked
    Convert(convert::ConvertArgs),
}

/// Where a trace comes from, and how to read it.
#[derive(Args, Debug)]
struct SourceArgs {
    /// The trace; .gz and .zst are read as they are
    file: PathBuf,
    /// The trace's format, where its content should not decide
    #[arg(long, value_name = "NAME", value_parser = trace_format)]
    trace_format: Option<Format>,
    /// Where a custom trace has what: time=T,unit=s|ms|us|ns|date,input=I,output=O,session=S,client=C,model=M,class=K,text=X
    #[arg(long, value_name = "MAP", value_parser = columns)]
    columns: Option<Columns>,
    /// Drop (and count) the requests that failed when the trace was recorded, instead of keeping them
    #[arg(long)]
    drop_failures: bool,
    /// Replace bytes that are not UTF-8 instead of refusing the file
    #[arg(long)]
    lossy: bool,
}

/// The formats written; JSON lines but for Parquet.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum OutputFormat {
    /// Our own rows: everything a trace tells
    Canonical,
    /// Mooncake with sessions, prompts and tools
    Mooncake,
    /// AIPerf's mooncake_trace: Mooncake, with a row's prompt or its length, not both
    Aiperf,
    /// GuideLLM's mooncake or trace_synthetic: times in seconds, lengths, block ids, durations
    Guidellm,
    /// vLLM's timed trace: times, lengths and block ids
    #[value(name = "timed_trace", alias = "timed-trace")]
    TimedTrace,
    /// Our own rows as a Parquet file
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Runs the command.
pub fn run(args: &WorkloadArgs) -> Outcome<u8> {
    match &args.command {
        WorkloadCommand::Describe(args) => describe::run(args),
        WorkloadCommand::Fit(args) => fit::run(args),
        WorkloadCommand::Generate(args) => generate::run(args),
        WorkloadCommand::Convert(args) => convert::run(args),
    }?;
    Ok(0)
}

impl SourceArgs {
    fn options(&self) -> Options {
        Options {
            format: self.trace_format,
            failures: if self.drop_failures { Failures::Drop } else { Failures::Keep },
            columns: self.columns.clone(),
            lossy: self.lossy,
            ..Options::default()
        }
    }

    fn open(&self) -> Outcome<Reader> {
        open_trace(&self.file, &self.options())
    }
}

impl OutputFormat {
    /// Whether a result of this format can go there: checked before there is one.
    #[cfg_attr(not(feature = "parquet"), allow(unused_variables, reason = "every other format can go anywhere"))]
    fn fits(self, path: &Path) -> Outcome<()> {
        match self {
            #[cfg(feature = "parquet")]
            OutputFormat::Parquet if path == Path::new("-") => {
                Err(Failure::usage("--output-format parquet needs a file, not stdout"))
            }
            _ => Ok(()),
        }
    }
}

/// Opens a trace of any kind, Parquet files too.
pub fn open_trace(path: &Path, options: &Options) -> Outcome<Reader> {
    #[cfg(feature = "parquet")]
    if let Some(rows) = parquet::open(path)? {
        return tailbound_trace::read(&path.display().to_string(), rows, options).map_err(unreadable);
    }
    open(path, options).map_err(unreadable)
}

/// Writes every row of a trace to `path`, whole or not at all.
fn write_trace(trace: &Trace, format: OutputFormat, path: &Path) -> Outcome<()> {
    let output = match format {
        OutputFormat::Canonical => Output::Canonical,
        OutputFormat::Mooncake => Output::Mooncake,
        OutputFormat::Aiperf => Output::AiPerf,
        OutputFormat::Guidellm => Output::GuideLlm,
        OutputFormat::TimedTrace => Output::TimedTrace,
        #[cfg(feature = "parquet")]
        OutputFormat::Parquet => return place::write(path, |sink| parquet::write_rows(trace, path, sink)),
    };
    place::write(path, |sink| write(trace, output, sink).map_err(unwritable(path)))
}

/// A trace that can't be read, with what to do about it.
pub fn unreadable(error: Error) -> Failure {
    let hint = match &error {
        Error::File { what, .. } => match what {
            Refusal::Unknown { .. } | Refusal::Ambiguous(_) => {
                Some("--trace-format NAME names the format, --columns MAP says which column holds what")
            }
            Refusal::Lacks { .. } => Some("leave --trace-format out to have the content decide, or use --columns MAP"),
            Refusal::NotUtf8 { .. } => Some("--lossy replaces such bytes"),
            _ => None,
        },
        _ => None,
    };
    hint.into_iter().fold(Failure::new(&error), Failure::hint)
}

/// A trace that can't be written to `path`.
fn unwritable(path: &Path) -> impl Fn(Error) -> Failure {
    move |error| match error {
        Error::Io { source, .. } => Failure::new(format!("failed to write {}: {source}", path.display())),
        Error::Asked(what) => Failure::new(what)
            .during(format_args!("writing {}", path.display()))
            .hint("--output-format canonical writes any row"),
        other => Failure::new(other),
    }
}

/// What became of every row, in lines.
fn account(a: &Accounting) -> String {
    let (read, emitted, dropped) = (a.rows_read, a.rows_emitted, a.rows_dropped());
    let mut text = format!("rows: {read} read = {emitted} emitted + {dropped} dropped\n");
    for (why, seen) in &a.dropped {
        let _ = writeln!(text, "  dropped: {} {}, first at row {}", seen.count, why.word(), seen.first_row);
    }
    for (what, seen) in &a.notices {
        let _ = writeln!(text, "  note: {} {}, first at row {}", seen.count, what.word(), seen.first_row);
    }
    text
}

pub fn trace_format(text: &str) -> Result<Format, String> {
    let word = text.to_ascii_lowercase().replace('_', "-");
    Format::from_word(&word).ok_or_else(|| {
        let known: Vec<&str> = Format::ALL.into_iter().map(Format::word).collect();
        format!("no such format; known are {}", known.join(", "))
    })
}

pub fn columns(text: &str) -> Result<Columns, String> {
    let mut map = serde_json::Map::new();
    for pair in text.split(',') {
        let (key, name) = pair.split_once('=').ok_or_else(|| format!("`{pair}` should read KEY=COLUMN"))?;
        if map.insert(key.trim().into(), name.trim().into()).is_some() {
            return Err(format!("`{key}` is given twice"));
        }
    }
    serde_json::from_value(map.into()).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_columns_are_named_as_people_write_them() {
        assert_eq!(trace_format("Azure_LLM"), Ok(Format::AzureLlm));
        assert!(trace_format("excel").unwrap_err().contains("mooncake"));
        let map = columns("time=ts, unit=ms,input=n_in").unwrap();
        assert_eq!((map.time.as_deref(), map.input.as_deref()), (Some("ts"), Some("n_in")));
        assert!(columns("when=ts").unwrap_err().contains("when"));
        assert!(columns("time=a,time=b").unwrap_err().contains("twice"));
        assert!(columns("time").unwrap_err().contains("KEY=COLUMN"));
    }
}
