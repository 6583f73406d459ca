//! ServeGen's client pools: what each client sends, window by window, and workloads composed from them.
//!
//! Formats after `alibaba/ServeGen`. The composition is ours: fields are drawn independently (or with a given rank
//! correlation), counts are not rescaled, and renewal is carried over window edges.

mod compose;
mod figures;
mod literal;

pub use compose::{Analytic, Compose, analytic, compose};
pub use figures::PoolFigures;

use crate::error::{Error, Refusal};
use crate::generate::Pdf;
use crate::num;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// The clients of one pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// By ascending id.
    pub clients: Vec<Client>,
    /// Length of a window in seconds.
    pub window_s: u32,
}

/// One client.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// The number in its files' names.
    pub id: u32,
    /// Its arrivals, window by window.
    pub windows: Vec<Window>,
    /// Its lengths, by time.
    pub lengths: Dataset,
}

/// A client's arrivals during one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Its start in seconds.
    pub t: u32,
    /// Requests per second.
    pub rate: f64,
    /// Coefficient of variation of the gaps, as recorded.
    pub cv: f64,
    /// The fitted law; `None` for an idle window.
    pub pattern: Option<Pattern>,
}

/// A law of gaps. The recorded scale is not used: the mean gap is 1/rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Gamma of this shape.
    Gamma(f64),
    /// Weibull of this shape.
    Weibull(f64),
}

/// Distributions of a client's fields: `input_tokens`, `output_tokens`, `reason_ratio`, `image_count` …
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dataset {
    /// Start in seconds, and each field's distribution; fields without observations are left out.
    pub windows: Vec<(u32, BTreeMap<String, Pdf>)>,
    /// Names of every field, those without observations too.
    pub fields: Vec<String>,
    /// Distributions without observations.
    pub empty_pdfs: u64,
}

impl Pool {
    /// Reads a pool's directory: `chunk-<id>-trace.csv` with `chunk-<id>-dataset.json` beside it.
    pub fn open(directory: impl AsRef<Path>) -> Result<Pool, Error> {
        let directory = directory.as_ref();
        let shown = directory.display().to_string();
        let io = |source| Error::Io { file: shown.clone(), source };
        let mut clients = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(io)? {
            let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
            let Some(id) = name.strip_prefix("chunk-").and_then(|n| n.strip_suffix("-trace.csv")) else { continue };
            let Ok(id) = id.parse::<u32>() else { continue };
            let windows = read_file(&directory.join(&name), Window::read)?;
            let lengths = read_file(&directory.join(format!("chunk-{id}-dataset.json")), Dataset::read)?;
            clients.push(Client { id, windows, lengths });
        }
        clients.sort_by_key(|c| c.id);
        Pool::of_clients(clients).map_err(|what| Error::File { file: shown, what })
    }

    fn of_clients(clients: Vec<Client>) -> Result<Pool, Refusal> {
        let Some(first) = clients.first() else {
            return Err(Refusal::Unknown { seen: "no chunk-<id>-trace.csv".into() });
        };
        let times = |c: &Client| c.windows.iter().map(|w| w.t).collect::<Vec<_>>();
        let starts = times(first);
        if let Some(other) = clients.iter().find(|c| times(c) != starts) {
            let what = format!("clients {} and {} have different windows", first.id, other.id);
            return Err(Refusal::Ambiguous(what));
        }
        let window_s = match starts.as_slice() {
            [a, b, ..] if b > a => b - a,
            _ => 600,
        };
        Ok(Pool { clients, window_s })
    }
}

fn read_file<T>(path: &Path, read: impl FnOnce(&str, std::fs::File) -> Result<T, Error>) -> Result<T, Error> {
    let file = path.display().to_string();
    let opened = std::fs::File::open(path).map_err(|source| Error::Io { file: file.clone(), source })?;
    read(&file, opened)
}

impl Window {
    /// Reads a client's windows: `t,rate,cv,pattern,p1,p2` without a header; an idle window has no pattern.
    pub fn read(file: &str, source: impl Read) -> Result<Vec<Window>, Error> {
        let mut table = csv::ReaderBuilder::new().has_headers(false).from_reader(source);
        let mut windows: Vec<Window> = Vec::new();
        for (i, record) in table.records().enumerate() {
            let row = i as u64 + 1;
            let wrong = |what: String| Error::Row { file: file.to_owned(), row, what };
            let record = record.map_err(|e| wrong(e.to_string()))?;
            let cells: Vec<String> = record.iter().map(|c| c.trim().to_owned()).collect();
            if !is_trace_line(&cells) {
                return Err(wrong(format!("not t,rate,cv,pattern,p1,p2: {}", cells.join(","))));
            }
            let number = |i: usize| cells[i].parse::<f64>().map_err(|_| wrong(format!("not a number: {:?}", cells[i])));
            let t = num::count(cells[0].as_bytes()).map_err(|e| wrong(e.word()))?;
            if windows.last().is_some_and(|w| w.t >= t) {
                return Err(wrong(format!("window {t} does not come after the one before")));
            }
            let pattern = match cells[3].as_str() {
                "Gamma" => Some(Pattern::Gamma(number(4)?)),
                "Weibull" => Some(Pattern::Weibull(number(4)?)),
                _ => None,
            };
            if let Some(Pattern::Gamma(shape) | Pattern::Weibull(shape)) = pattern
                && (shape <= 0.0 || !shape.is_finite())
            {
                return Err(wrong(format!("a shape must be above zero, not {shape}")));
            }
            windows.push(Window { t, rate: number(1)?, cv: number(2)?, pattern });
        }
        Ok(windows)
    }

    /// Requests per second if the window has a law, else zero.
    pub fn active_rate(&self) -> f64 {
        if self.pattern.is_some() { self.rate } else { 0.0 }
    }
}

impl Dataset {
    /// Reads a client's distributions: `{"0": {"input_tokens": "{224: 0.0003, …}"}, "21600": …}`.
    pub fn read(file: &str, mut source: impl Read) -> Result<Dataset, Error> {
        let mut text = String::new();
        source.read_to_string(&mut text).map_err(|source| Error::Io { file: file.to_owned(), source })?;
        let whole: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(&text)
            .map_err(|e| Error::Row { file: file.to_owned(), row: e.line() as u64, what: e.to_string() })?;
        let mut out = Dataset::default();
        for (key, fields) in whole {
            let wrong = |what: String| Error::File { file: file.to_owned(), what: Refusal::Unknown { seen: what } };
            let t = key.parse::<u32>().map_err(|_| wrong(format!("window {key:?}")))?;
            let mut window = BTreeMap::new();
            for (field, literal) in fields {
                let pairs =
                    literal::dict(&literal).map_err(|at| wrong(format!("window {t}, {field}, at byte {at}")))?;
                if !out.fields.contains(&field) {
                    out.fields.push(field.clone());
                }
                match Pdf::new(pairs) {
                    Some(pdf) => drop(window.insert(field, pdf)),
                    None => out.empty_pdfs += 1,
                }
            }
            out.windows.push((t, window));
        }
        out.fields.sort();
        out.windows.sort_by_key(|(t, _)| *t);
        Ok(out)
    }

    /// Starts of the windows in which every field has a distribution.
    pub fn usable_windows(&self) -> Vec<u32> {
        self.windows.iter().filter(|(_, f)| f.len() == self.fields.len()).map(|(t, _)| *t).collect()
    }

    /// The distributions that hold at `t` seconds: of the latest window not after it in which every field has one.
    pub fn at(&self, t: u32) -> Option<&BTreeMap<String, Pdf>> {
        let whole = |(_, fields): &&(u32, BTreeMap<String, Pdf>)| fields.len() == self.fields.len();
        self.windows.iter().rev().filter(whole).find(|(start, _)| *start <= t).map(|(_, fields)| fields)
    }
}

/// Whether the first line of a table is a ServeGen client's window: `t,rate,cv,pattern,p1,p2`.
pub(crate) fn is_trace_line(cells: &[String]) -> bool {
    let [t, rate, cv, pattern, _, _] = cells else { return false };
    [t, rate, cv].iter().all(|c| c.parse::<f64>().is_ok()) && matches!(pattern.as_str(), "" | "Gamma" | "Weibull")
}
