//! Integration tests of `tailbound-parquet`: one binary.

#![allow(clippy::unwrap_used, reason = "tests: helpers are not seen as such by the lint")]

use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use tailbound_parquet::{Column, Kind, Sink, lines};

fn rows(file: File) -> Vec<Value> {
    BufReader::new(lines(file).unwrap()).lines().map(|l| serde_json::from_str(&l.unwrap()).unwrap()).collect()
}

/// Made with pyarrow 25, zstd: times of two units, a list, nested records, nulls everywhere.
#[test]
fn a_file_of_another_writer_is_read_exactly() {
    let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/pyarrow.parquet")).unwrap();
    assert_eq!(
        rows(file),
        [
            json!({"at": "2023-11-16T18:15:46.680590000", "us": "1970-01-01T00:00:00.000001000", "n": 374, "x": 0.1,
            "ids": [1, u64::MAX], "ok": true, "who": "a\"b", "said": [{"role": "user", "content": "hi"}]}),
            json!({"us": "1970-01-01T00:00:00.000002000", "x": 2.5, "ids": []}),
            json!({"at": "1970-01-01T00:00:00.000000001", "n": 0, "ids": null, "ok": false, "who": "ü", "said": []}),
        ]
        .map(without_nulls)
    );
}

fn without_nulls(mut value: Value) -> Value {
    if let Some(map) = value.as_object_mut() {
        map.retain(|_, v| !v.is_null());
    }
    value
}

const COLUMNS: [Column; 6] = [
    Column { name: "at", kind: Kind::Int },
    Column { name: "n", kind: Kind::Count },
    Column { name: "ok", kind: Kind::Flag },
    Column { name: "who", kind: Kind::Text },
    Column { name: "any", kind: Kind::Json },
    Column { name: "ids", kind: Kind::Counts },
];

fn write(rows: &[Value]) -> Result<File, tailbound_parquet::Error> {
    let mut sink = Sink::new(tempfile::tempfile().unwrap(), &COLUMNS)?;
    for row in rows {
        writeln!(sink, "{row}")?;
    }
    let mut file = sink.finish()?;
    std::io::Seek::rewind(&mut file)?;
    Ok(file)
}

fn row() -> impl Strategy<Value = Value> {
    let any_json = prop_oneof![Just(json!({"a": [1, {"b": null}]})), Just(json!("text")), Just(json!([]))];
    (
        any::<Option<i64>>(),
        any::<Option<u64>>(),
        any::<Option<bool>>(),
        prop::option::of("\\PC{0,12}"),
        prop::option::of(any_json),
        prop::option::of(prop::collection::vec(any::<u64>(), 0..4)),
    )
        .prop_map(|(at, n, ok, who, any, ids)| json!({"at": at, "n": n, "ok": ok, "who": who, "any": any, "ids": ids}))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_again(written in prop::collection::vec(row(), 1..20)) {
        let read: Vec<Value> = rows(write(&written).unwrap()).into_iter().map(without_nulls).collect();
        let written: Vec<Value> = written.into_iter().map(without_nulls).collect();
        prop_assert_eq!(read, written);
    }
}

#[test]
fn the_first_line_names_every_column() {
    let first = rows(write(&[json!({"n": 1}), json!({"at": 2})]).unwrap());
    let names: Vec<&String> = first[0].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), COLUMNS.len());
    assert_eq!(first[1], json!({"at": 2}));
}

#[test]
fn many_rows_are_written_group_by_group() {
    let written: Vec<Value> = (0..70_000).map(|i| json!({"at": i, "ids": [i, i + 1]})).collect();
    let read = rows(write(&written).unwrap());
    assert_eq!((read.len(), &read[69_999]), (70_000, &written[69_999]));
}

#[test]
fn what_has_no_column_or_does_not_fit_is_named_with_its_row() {
    for (bad, why) in [
        (json!({"other": 1}), "row 2: no column holds \"other\""),
        (json!({"n": -1}), "row 2: n: "),
        (json!({"ids": [1.5]}), "row 2: ids: "),
        (json!([1]), "row 2: not an object"),
    ] {
        let error = write(&[json!({"n": 1}), bad]).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn what_is_no_parquet_is_refused() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"PAR1 and then something else").unwrap();
    assert!(lines(file).is_err());
}
