//! What `tailbound report` writes to files: the page, its plots, the requests.

use crate::bundle;
use crate::failure::{Failure, Outcome};
use crate::page_file;
use crate::workload::place;
use clap::Args;
use std::path::{Path, PathBuf};
use tailbound_report::page::Page;
use tailbound_report::{Run, rows};

/// Where to.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Files")]
pub struct FileArgs {
    /// Write a page: one file that opens offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write every plot of the page as an SVG file into this folder
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Write the requests as CSV (`-`: stdout, beside the report)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the requests as lines of JSON
    #[arg(long, value_name = "FILE")]
    pub jsonl: Option<PathBuf>,
    /// Write the requests as Parquet
    #[cfg(feature = "parquet")]
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
}

impl FileArgs {
    fn named(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let named = [("--html", &self.html), ("--csv", &self.csv), ("--jsonl", &self.jsonl)].into_iter();
        #[cfg(feature = "parquet")]
        let named = named.chain([("--parquet", &self.parquet)]);
        named.filter_map(|(flag, file)| Some((flag, file.as_deref()?)))
    }

    /// Whether anything is to be written.
    pub fn any(&self) -> bool {
        self.svg.is_some() || self.named().next().is_some()
    }

    /// The first flag that asks for requests.
    pub fn rows(&self) -> Option<&'static str> {
        self.named().map(|(flag, _)| flag).find(|flag| *flag != "--html")
    }

    /// Refuses what can't be written before anything is read.
    pub fn check(&self) -> Outcome<()> {
        self.named().try_for_each(|(_, file)| page_file::check(Some(file)))?;
        match &self.svg {
            Some(dir) if dir.exists() && !dir.is_dir() => {
                Err(Failure::usage(format!("--svg {}: it is no folder", dir.display())))
            }
            _ => Ok(()),
        }
    }

    /// The page, and its plots.
    pub fn write_page(&self, page: &Page) -> Outcome<()> {
        if let Some(file) = &self.html {
            page_file::write(file, page)?;
        }
        let Some(dir) = &self.svg else { return Ok(()) };
        std::fs::create_dir_all(dir)
            .map_err(|e| Failure::new(format!("failed to make the folder {}: {e}", dir.display())))?;
        page.svgs().iter().try_for_each(|(name, svg)| bundle::write(&dir.join(format!("{name}.svg")), svg.as_bytes()))
    }

    /// The requests.
    pub fn write_rows(&self, run: &Run<'_>) -> Outcome<()> {
        let failed = |file: &Path| {
            let name = place::name(file);
            move |e: std::io::Error| Failure::new(format!("failed to write {name}: {e}"))
        };
        if let Some(file) = &self.csv {
            place::write(file, |sink| rows::csv(run, sink).map_err(failed(file)))?;
        }
        if let Some(file) = &self.jsonl {
            place::write(file, |sink| rows::jsonl(run, sink).map_err(failed(file)))?;
        }
        #[cfg(feature = "parquet")]
        if let Some(file) = &self.parquet {
            place::write(file, |sink| parquet(run, sink).map_err(failed(file)))?;
        }
        Ok(())
    }
}

/// The lines of JSON, as a table.
#[cfg(feature = "parquet")]
fn parquet(run: &Run<'_>, to: impl std::io::Write + Send) -> std::io::Result<()> {
    use tailbound_parquet::{Column, Kind, Sink};
    let kind = |kind| match kind {
        rows::Kind::Int => Kind::Int,
        rows::Kind::Count => Kind::Count,
        rows::Kind::Flag => Kind::Flag,
        rows::Kind::Text => Kind::Text,
    };
    let columns = rows::COLUMNS.map(|c| Column { name: c.name, kind: kind(c.kind) });
    let mut sink = Sink::new(to, &columns).map_err(std::io::Error::other)?;
    rows::jsonl(run, &mut sink)?;
    sink.finish().map(drop).map_err(std::io::Error::other)
}
