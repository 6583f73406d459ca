//! Tables: columns by name, never by position. CSV, or JSON objects.

use crate::account::{Drop, Notice};
use crate::context::Context;
use crate::detect::Format;
use crate::error::Refusal;
use crate::formats::functions;
use crate::formats::hashed::word;
use crate::num;
use crate::options::{Failures, Unit};
use crate::row::{Clock, Media, MediaKind, Row};
use crate::source::{Bytes, Source};
use csv::ByteRecord;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tailbound_clock::Dur;

/// A table being read.
pub(crate) struct Table {
    csv: csv::Reader<Bytes>,
    record: ByteRecord,
    layout: Layout,
}

enum Layout {
    Requests(Requests),
    PerMinute(functions::Columns),
}

/// Which column holds what.
#[derive(Default)]
struct Requests {
    time: Option<(usize, Unit)>,
    input: Option<usize>,
    output: Option<usize>,
    total: Option<usize>,
    model: Option<usize>,
    class: Option<usize>,
    session: Option<usize>,
    client: Option<usize>,
    /// Seconds from submission to the last token.
    took: Option<usize>,
    images: Option<usize>,
    text: Option<usize>,
    /// The time is the end; the arrival is that minus `took`.
    times_are_ends: bool,
    /// A request without output tokens failed.
    zero_is_failure: bool,
    /// A row with fewer cells is short.
    cells: usize,
}

impl Table {
    pub(crate) fn new(format: Format, source: Source, context: &mut Context) -> Result<Table, Refusal> {
        let mut csv = csv::ReaderBuilder::new().flexible(true).buffer_capacity(256 * 1024).from_reader(source.bytes);
        let header = csv.byte_headers().map_err(|e| Refusal::Unknown { seen: e.to_string() })?.clone();
        let names = header.iter().map(|c| String::from_utf8_lossy(c).trim().to_owned()).collect();
        let layout = Layout::new(&Header { format, names }, context)?;
        Ok(Table { csv, record: ByteRecord::new(), layout })
    }

    /// Reads one row. False at the end.
    pub(crate) fn advance(&mut self, context: &mut Context) -> Result<bool, csv::Error> {
        if !self.csv.read_byte_record(&mut self.record)? {
            return Ok(false);
        }
        context.record();
        self.layout.read(&self.record, context);
        Ok(true)
    }
}

/// A table whose rows are JSON objects: the fields of the first are its columns. Missing and null are empty cells.
pub(crate) struct JsonTable {
    names: Vec<String>,
    layout: Layout,
}

impl JsonTable {
    pub(crate) fn new(format: Format, keys: &[String], context: &mut Context) -> Result<JsonTable, Refusal> {
        let header = Header { format, names: keys.to_vec() };
        Ok(JsonTable { layout: Layout::new(&header, context)?, names: header.names })
    }

    pub(crate) fn record(&self, text: &str, context: &mut Context) {
        let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) else {
            return context.account.drop(Drop::NotJson);
        };
        let cell = |name: &String| match fields.get(name) {
            Some(raw) if raw.get() != "null" => word(raw),
            _ => "".into(),
        };
        let record: ByteRecord = self.names.iter().map(|name| cell(name).into_owned()).collect();
        self.layout.read(&record, context);
    }
}

impl Layout {
    fn new(header: &Header, context: &mut Context) -> Result<Layout, Refusal> {
        if header.format != Format::AzureFunctions2019 {
            return Ok(Layout::Requests(requests(header, context)?));
        }
        context.per_minute = Some(functions::PerMinute::default());
        context.clock = Clock::Day;
        Ok(Layout::PerMinute(functions::Columns::new(&header.names)?))
    }

    fn read(&self, record: &ByteRecord, context: &mut Context) {
        match self {
            Layout::PerMinute(columns) => functions::minutes(record, columns, context),
            Layout::Requests(columns) => match request(record, columns, context) {
                Ok(row) => context.push(row),
                Err(why) => context.account.drop(why),
            },
        }
    }
}

struct Header {
    format: Format,
    names: Vec<String>,
}

impl Header {
    fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n.eq_ignore_ascii_case(name))
    }

    fn need(&self, name: &str) -> Result<usize, Refusal> {
        self.find(name).ok_or_else(|| Refusal::Lacks {
            format: self.format.word(),
            missing: format!("column {name:?}"),
            seen: self.names.iter().take(12).map(|n| format!("{n:?}")).collect::<Vec<_>>().join(", "),
        })
    }
}

fn requests(header: &Header, context: &mut Context) -> Result<Requests, Refusal> {
    let mut columns = Requests { cells: header.names.len(), ..Requests::default() };
    match header.format {
        Format::BurstGpt => {
            context.clock = Clock::Day;
            columns.time = Some((header.need("Timestamp")?, Unit::Seconds));
            columns.input = Some(header.need("Request tokens")?);
            columns.output = Some(header.need("Response tokens")?);
            columns.total = header.find("Total tokens");
            columns.model = header.find("Model");
            columns.class = header.find("Log Type");
            columns.session = header.find("Session ID");
            columns.took = header.find("Elapsed time");
            columns.zero_is_failure = true;
        }
        Format::AzureLlm => {
            context.clock = Clock::Wall;
            columns.time = Some((header.need("TIMESTAMP")?, Unit::Date));
            columns.input = Some(header.need("ContextTokens")?);
            columns.output = Some(header.need("GeneratedTokens")?);
            columns.images = header.find("NumImages");
        }
        Format::AzureFunctions2021 => {
            context.clock = Clock::Day;
            columns.time = Some((header.need("end_timestamp")?, Unit::Seconds));
            columns.took = Some(header.need("duration")?);
            columns.client = Some(header.need("app")?);
            columns.model = Some(header.need("func")?);
            columns.times_are_ends = true;
        }
        Format::Lengths => {
            columns.time = header.find("arrived_at").map(|c| (c, Unit::Seconds));
            context.clock = if columns.time.is_some() { Clock::Offset } else { Clock::None };
            columns.input = Some(header.need("num_prefill_tokens")?);
            columns.output = Some(header.need("num_decode_tokens")?);
        }
        Format::Custom => custom(header, &mut columns, context)?,
        other => {
            return Err(Refusal::Lacks {
                format: other.word(),
                missing: "JSON".into(),
                seen: format!("a table with columns {}", header.names.join(", ")),
            });
        }
    }
    Ok(columns)
}

fn custom(header: &Header, columns: &mut Requests, context: &mut Context) -> Result<(), Refusal> {
    let Some(map) = context.options.columns.clone() else {
        return Err(Refusal::Lacks {
            format: "custom",
            missing: "map of columns".into(),
            seen: header.names.join(", "),
        });
    };
    let find = |name: &Option<String>| name.as_ref().map(|n| header.need(n)).transpose();
    columns.time = find(&map.time)?.map(|c| (c, map.unit));
    columns.input = find(&map.input)?;
    columns.output = find(&map.output)?;
    columns.session = find(&map.session)?;
    columns.client = find(&map.client)?;
    columns.model = find(&map.model)?;
    columns.class = find(&map.class)?;
    columns.text = find(&map.text)?;
    context.clock = match (&columns.time, map.unit) {
        (None, _) => Clock::None,
        (_, Unit::Date) => Clock::Wall,
        _ => Clock::Offset,
    };
    Ok(())
}

fn request(record: &ByteRecord, columns: &Requests, context: &mut Context) -> Result<Row, Drop> {
    let cell = |column: usize| record.get(column).map(<[u8]>::trim_ascii);
    let mut row = Row::default();
    let end = match columns.time {
        None => None,
        Some((column, unit)) => Some(unit.read(cell(column).ok_or(Drop::ShortRow)?)?),
    };
    if !columns.times_are_ends
        && let Some(at) = end
    {
        context.saw_time(at);
    }
    if record.len() < columns.cells {
        return Err(Drop::ShortRow);
    }
    row.took = match columns.took.and_then(cell) {
        None | Some(b"") => None,
        Some(text) => Some(Dur(u64::try_from(Unit::Seconds.read(text)?).map_err(|_| Drop::Negative)?)),
    };
    row.at = end;
    if columns.times_are_ends
        && let (Some(end), Some(took)) = (end, row.took)
    {
        let start = end - i64::try_from(took.ns()).map_err(|_| Drop::OutOfRange)?;
        context.saw_time(start);
        if start < 0 {
            context.account.notice(Notice::NegativeStart);
        }
        row.at = Some(start);
    }
    let count = |column: Option<usize>| column.and_then(cell).map(num::count).transpose();
    row.input = count(columns.input)?;
    row.output = count(columns.output)?;
    if let (Ok(Some(total)), Some(i), Some(o)) = (count(columns.total), row.input, row.output)
        && u64::from(total) != u64::from(i) + u64::from(o)
    {
        context.account.notice(Notice::TotalMismatch);
    }
    if columns.zero_is_failure {
        let failed = row.input == Some(0) || row.output == Some(0);
        if failed && context.options.failures == Failures::Drop {
            return Err(if row.input == Some(0) { Drop::ZeroInputTokens } else { Drop::FailedZeroOutput });
        }
        row.ok = Some(row.output != Some(0));
    }
    let mut name = |column: Option<usize>| {
        let text = column.and_then(|c| record.get(c))?;
        context.names.intern_some(&String::from_utf8_lossy(text))
    };
    row.model = name(columns.model);
    row.class = name(columns.class);
    row.session = name(columns.session);
    row.client = name(columns.client);
    if let Some(images) = count(columns.images)?
        && images > 0
    {
        row.more_mut().media = vec![Media { kind: MediaKind::Image, tokens: None }; images as usize];
    }
    if let Some(text) = columns.text.and_then(|c| record.get(c)) {
        row.more_mut().body = crate::row::Body::Text(String::from_utf8_lossy(text).into());
    }
    Ok(row)
}
