use crate::error::Error;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

/// A column of the file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name: a key of the lines.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
}

/// What a column's values are; any may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number, signed.
    Int,
    /// A whole number, not negative.
    Count,
    /// True or false.
    Flag,
    /// Text.
    Text,
    /// Any JSON; written as text that is marked as JSON.
    Json,
    /// A list of whole numbers, not negative.
    Counts,
}

/// Rows per row group.
const GROUP: u64 = 65_536;

/// Takes lines of JSON, and writes them as the rows of a Parquet file. [`Sink::finish`] completes it.
pub struct Sink<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<(Column, Cells)>,
    partial: Vec<u8>,
    rows: u64,
    in_group: u64,
}

/// A row group's values of one column, and which of them are there.
#[derive(Default)]
struct Cells {
    ints: Vec<i64>,
    flags: Vec<bool>,
    texts: Vec<ByteArray>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

impl<W: Write + Send> Sink<W> {
    /// A file of these columns.
    pub fn new(to: W, columns: &[Column]) -> Result<Sink<W>, Error> {
        let fields = columns.iter().map(|c| field(c).map(Arc::new)).collect::<Result<Vec<_>, ParquetError>>()?;
        let schema = Type::group_type_builder("requests").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties))?;
        let columns = columns.iter().map(|c| (c.clone(), Cells::default())).collect();
        Ok(Sink { file, columns, partial: Vec::new(), rows: 0, in_group: 0 })
    }

    /// Writes what is left and the file's end; gives back what was written to.
    pub fn finish(mut self) -> Result<W, Error> {
        if !self.partial.is_empty() {
            let line = std::mem::take(&mut self.partial);
            self.row(&line)?;
        }
        self.group()?;
        Ok(self.file.into_inner()?)
    }

    fn row(&mut self, line: &[u8]) -> Result<(), Error> {
        self.rows += 1;
        self.in_group += 1;
        let row = self.rows;
        let wrong = |what: String| Error::Row { row, what };
        let mut fields: BTreeMap<String, &RawValue> =
            serde_json::from_slice(line).map_err(|e| wrong(format!("not an object of JSON: {e}")))?;
        for (column, cells) in &mut self.columns {
            let raw = fields.remove(column.name).filter(|raw| raw.get() != "null");
            cells.push(column.kind, raw).map_err(|e| wrong(format!("{}: {e}", column.name)))?;
        }
        if let Some(name) = fields.keys().next() {
            return Err(wrong(format!("no column holds {name:?}")));
        }
        if self.in_group == GROUP {
            self.group()?;
        }
        Ok(())
    }

    fn group(&mut self) -> Result<(), Error> {
        if self.in_group == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for (column, cells) in &mut self.columns {
            let cells = std::mem::take(cells);
            let Some(writer) = group.next_column()? else { break };
            cells.write(column.kind, writer)?;
        }
        group.close()?;
        self.in_group = 0;
        Ok(())
    }
}

impl<W: Write + Send> Write for Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
            self.partial.extend_from_slice(bytes);
            return Ok(bytes.len());
        };
        self.partial.extend_from_slice(&bytes[..end]);
        let line = std::mem::take(&mut self.partial);
        if !line.trim_ascii().is_empty() {
            self.row(&line)?;
        }
        self.partial = line;
        self.partial.clear();
        Ok(end + 1)
    }

    /// Rows are written group by group; there is nothing to hurry.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Cells {
    fn push(&mut self, kind: Kind, raw: Option<&RawValue>) -> Result<(), serde_json::Error> {
        let Some(raw) = raw else {
            self.definition.push(0);
            self.repetition.push(0);
            return Ok(());
        };
        if kind == Kind::Counts {
            let list: Vec<u64> = serde_json::from_str(raw.get())?;
            for (i, n) in list.iter().enumerate() {
                self.ints.push(*n as i64);
                self.definition.push(2);
                self.repetition.push(i16::from(i > 0));
            }
            if list.is_empty() {
                self.definition.push(1);
                self.repetition.push(0);
            }
            return Ok(());
        }
        self.definition.push(1);
        match kind {
            Kind::Int => self.ints.push(serde_json::from_str(raw.get())?),
            // The same 64 bits, read as unsigned.
            Kind::Count => self.ints.push(serde_json::from_str::<u64>(raw.get())? as i64),
            Kind::Flag => self.flags.push(serde_json::from_str(raw.get())?),
            Kind::Text => self.texts.push(serde_json::from_str::<String>(raw.get())?.into_bytes().into()),
            Kind::Json | Kind::Counts => self.texts.push(raw.get().as_bytes().to_vec().into()),
        }
        Ok(())
    }

    fn write(self, kind: Kind, mut writer: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let definition = Some(self.definition.as_slice());
        match kind {
            Kind::Int | Kind::Count => writer.typed::<Int64Type>().write_batch(&self.ints, definition, None)?,
            Kind::Counts => writer.typed::<Int64Type>().write_batch(&self.ints, definition, Some(&self.repetition))?,
            Kind::Flag => writer.typed::<BoolType>().write_batch(&self.flags, definition, None)?,
            Kind::Text | Kind::Json => writer.typed::<ByteArrayType>().write_batch(&self.texts, definition, None)?,
        };
        writer.close()
    }
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let unsigned = || Some(LogicalType::integer(64, false));
    let one = |physical, logical: Option<LogicalType>| {
        Type::primitive_type_builder(column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    };
    match column.kind {
        Kind::Int => one(Physical::INT64, None),
        Kind::Count => one(Physical::INT64, unsigned()),
        Kind::Flag => one(Physical::BOOLEAN, None),
        Kind::Text => one(Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Json => one(Physical::BYTE_ARRAY, Some(LogicalType::Json)),
        Kind::Counts => {
            let element: TypePtr = Arc::new(
                Type::primitive_type_builder("element", Physical::INT64)
                    .with_repetition(Repetition::REQUIRED)
                    .with_logical_type(unsigned())
                    .build()?,
            );
            let list =
                Type::group_type_builder("list").with_repetition(Repetition::REPEATED).with_fields(vec![element]);
            Type::group_type_builder(column.name)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(Some(LogicalType::List))
                .with_fields(vec![Arc::new(list.build()?)])
                .build()
        }
    }
}
