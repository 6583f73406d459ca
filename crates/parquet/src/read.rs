use crate::error::Error;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use parquet::schema::types::Type;
use serde_json::{Map, Number, Value};
use std::fs::File;
use std::io::{self, Read};

/// A Parquet file's rows as lines of JSON. Times are dates in UTC, text columns marked as JSON are JSON. Missing values are null in
/// the first line, so that it names every column, and left out of the others.
pub struct Lines {
    rows: RowIter<'static>,
    columns: Vec<Meaning>,
    is_first: bool,
    line: Vec<u8>,
    taken: usize,
}

/// What a top-level column's values are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Plain,
    /// Text that is JSON itself.
    Json,
    /// Nanoseconds since the epoch.
    Nanos,
}

/// Opens a Parquet file.
pub fn lines(file: File) -> Result<Lines, Error> {
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema();
    let columns = schema.get_fields().iter().map(|field| meaning(field)).collect::<Result<_, Error>>()?;
    let rows = RowIter::from_file_into(Box::new(reader));
    Ok(Lines { rows, columns, is_first: true, line: Vec::new(), taken: 0 })
}

fn meaning(field: &Type) -> Result<Meaning, Error> {
    let info = field.get_basic_info();
    if field.is_primitive() && field.get_physical_type() == Physical::INT96 {
        let what = "INT96 times would lose their nanoseconds; write them as TIMESTAMP (INT64) instead".to_owned();
        return Err(Error::Column { column: field.name().to_owned(), what });
    }
    Ok(match info.logical_type_ref() {
        Some(LogicalType::Json) => Meaning::Json,
        Some(LogicalType::Timestamp(time)) if time.unit == TimeUnit::NANOS => Meaning::Nanos,
        _ if info.converted_type() == ConvertedType::JSON => Meaning::Json,
        _ => Meaning::Plain,
    })
}

impl Read for Lines {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.line.len() {
            let Some(row) = self.rows.next() else { return Ok(0) };
            let row = row.map_err(Error::from)?;
            self.line = line(row, &self.columns, std::mem::take(&mut self.is_first))?;
            self.taken = 0;
        }
        let n = buf.len().min(self.line.len() - self.taken);
        buf[..n].copy_from_slice(&self.line[self.taken..self.taken + n]);
        self.taken += n;
        Ok(n)
    }
}

fn line(row: Row, columns: &[Meaning], with_nulls: bool) -> Result<Vec<u8>, Error> {
    let mut object = Map::new();
    for ((name, field), meaning) in row.into_columns().into_iter().zip(columns) {
        let value = match (meaning, &field) {
            (_, Field::Null) if !with_nulls => continue,
            (_, Field::Null) => Value::Null,
            (Meaning::Nanos, Field::Long(ns)) => Value::String(date(*ns)),
            (Meaning::Json, Field::Str(text)) => serde_json::from_str(text)
                .map_err(|e| Error::Column { column: name.clone(), what: format!("marked as JSON, but {e}") })?,
            (_, field) => value(field),
        };
        object.insert(name, value);
    }
    let mut line = Value::Object(object).to_string().into_bytes();
    line.push(b'\n');
    Ok(line)
}

fn value(field: &Field) -> Value {
    let real = |x: f64| Number::from_f64(x).map_or(Value::Null, Value::Number);
    match field {
        Field::Null => Value::Null,
        Field::Bool(x) => Value::Bool(*x),
        Field::Byte(x) => (*x).into(),
        Field::Short(x) => (*x).into(),
        Field::Int(x) => (*x).into(),
        Field::Long(x) | Field::TimeMicros(x) => (*x).into(),
        Field::UByte(x) => (*x).into(),
        Field::UShort(x) => (*x).into(),
        Field::UInt(x) => (*x).into(),
        Field::ULong(x) => (*x).into(),
        Field::Float16(x) => real(f64::from(*x)),
        // As it would be written: 0.1, not 0.10000000149.
        Field::Float(x) => x.to_string().parse().map_or(Value::Null, real),
        Field::Double(x) => real(*x),
        Field::Str(x) => Value::String(x.clone()),
        Field::Bytes(x) => Value::String(String::from_utf8_lossy(x.data()).into_owned()),
        Field::Date(days) => Value::String(date(i64::from(*days) * 86_400_000_000_000)),
        Field::TimestampMillis(ms) => Value::String(date(ms.saturating_mul(1_000_000))),
        Field::TimestampMicros(us) => Value::String(date(us.saturating_mul(1000))),
        Field::Group(row) => row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect(),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        Field::MapInternal(map) => {
            let key = |field: &Field| match value(field) {
                Value::String(text) => text,
                other => other.to_string(),
            };
            map.entries().iter().map(|(k, v)| (key(k), value(v))).collect()
        }
        Field::Decimal(_) | Field::TimeMillis(_) => Value::String(field.to_string().trim_matches('"').to_owned()),
    }
}

/// `2023-11-16T18:15:46.680590000`, UTC. Civil date from days after Hinnant.
fn date(ns: i64) -> String {
    let (seconds, fraction) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z - era * 146_097;
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let month = (5 * doy + 2) / 153;
    let day = doy - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{fraction:09}")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_civil_ones() {
        assert_eq!(date(0), "1970-01-01T00:00:00.000000000");
        assert_eq!(date(1_700_158_546_680_590_000), "2023-11-16T18:15:46.680590000");
        assert_eq!(date(1_709_164_802_123_456_789), "2024-02-29T00:00:02.123456789");
        assert_eq!(date(-500_000_000), "1969-12-31T23:59:59.500000000");
    }
}
