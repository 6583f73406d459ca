//! Requests as flat records.

use crate::make;
use serde_json::Value;
use tailbound_report::rows::{COLUMNS, Kind, csv, jsonl};

#[test]
fn a_line_of_json_for_each_request_has_every_column_and_null_for_what_is_missing() {
    let owned = make::full();
    let mut out = Vec::new();
    jsonl(&owned.run(), &mut out).unwrap();
    let rows: Vec<Value> = String::from_utf8(out).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(rows.len(), 40);
    for row in &rows {
        let names: Vec<&String> = row.as_object().unwrap().keys().collect();
        assert_eq!(names, COLUMNS.map(|c| c.name));
        for column in &COLUMNS {
            let value = &row[column.name];
            let fits = match column.kind {
                Kind::Int => value.is_i64(),
                Kind::Count => value.is_u64(),
                Kind::Flag => value.is_boolean(),
                Kind::Text => value.is_string(),
            };
            assert!(fits || value.is_null(), "{}: {value}", column.name);
        }
    }
    let first = &rows[0];
    assert_eq!((&first["ttft_ns"], &first["write_start_ns"]), (&150_000_000.into(), &1_000_000.into()));
    assert_eq!((&first["ttft_scheduled_ns"], &first["good"]), (&151_000_000.into(), &true.into()));
    assert_eq!((&first["output_tokens"], &first["cached_tokens"]), (&24.into(), &32.into()));
    assert_eq!((&rows[3]["outcome"], &rows[3]["ttft_ns"]), (&"failed: status".into(), &Value::Null));
    assert_eq!((&rows[3]["blame"], &rows[39]["outcome"]), (&"server".into(), &"never sent".into()));
}

#[test]
fn csv_has_a_record_for_each_request_whatever_a_server_says() {
    let owned = make::full();
    let mut out = Vec::new();
    csv(&owned.run(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let records = parsed(&text);
    assert_eq!(records.len(), 41);
    assert!(records.iter().all(|r| r.len() == COLUMNS.len()));
    assert_eq!(records[0], COLUMNS.map(|c| c.name));
    let error = COLUMNS.iter().position(|c| c.name == "error").unwrap();
    assert_eq!(records[4][error], "{\"error\": \"overloaded\"}\nplease wait");
}

/// RFC 4180, by hand.
fn parsed(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut chars) = (false, text.chars().peekable());
    while let Some(c) = chars.next() {
        match (c, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => cell.extend(chars.next()),
            ('"', _) => quoted = !quoted,
            (',', false) => record.push(std::mem::take(&mut cell)),
            ('\n', false) => {
                record.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut record));
            }
            (c, _) => cell.push(c),
        }
    }
    records
}
