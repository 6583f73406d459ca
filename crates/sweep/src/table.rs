use crate::python;
use serde_json::{Map, Value};

/// Runs as the CSV that pandas writes of them: a column for every key in the order of first appearance, the row's number first, nothing
/// for what is missing, lists and objects as Python shows them. A column of whole numbers in which one is missing is one of floats.
pub fn csv(runs: &[Map<String, Value>]) -> String {
    let mut columns: Vec<&str> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for key in runs.iter().flat_map(Map::keys) {
        if seen.insert(key) {
            columns.push(key);
        }
    }
    let floats: Vec<bool> = columns.iter().map(|key| is_float(runs, key)).collect();
    let mut out = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = String>| {
        out.push_str(&cells.collect::<Vec<_>>().join(","));
        out.push('\n');
    };
    if columns.is_empty() {
        return "\"\"\n".into();
    }
    line(&mut std::iter::once(String::new()).chain(columns.iter().map(|c| quoted(c))));
    for (number, run) in runs.iter().enumerate() {
        let cell = |(key, float): (&&str, &bool)| match run.get(*key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::Number(n)) if *float => python::float(n.as_f64().unwrap_or(f64::NAN)),
            Some(value) => quoted(&python::text(value)),
        };
        line(&mut std::iter::once(number.to_string()).chain(columns.iter().zip(&floats).map(cell)));
    }
    out
}

/// Whether pandas would hold a column as floats: numbers only, and one of them no whole number or missing.
fn is_float(runs: &[Map<String, Value>], key: &str) -> bool {
    let values = || runs.iter().map(|run| run.get(key).unwrap_or(&Value::Null));
    let numbers = values().all(|v| v.is_number() || v.is_null()) && values().any(Value::is_number);
    numbers && values().any(|v| v.is_null() || v.is_f64())
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Expected text: `pandas.DataFrame.from_records(runs).to_csv()` of pandas 2.3.
    #[test]
    fn a_table_is_what_pandas_writes() {
        let runs = json!([
            {"label": null, "n": 1, "rate": "inf", "x": 0.5, "lat": [0.1, 2], "flag": true, "whole": 3},
            {"label": null, "n": 2, "rate": 4, "x": 1, "lat": [], "flag": false, "more": "a,\"b\""},
        ]);
        let runs: Vec<Map<String, Value>> =
            runs.as_array().unwrap().iter().map(|r| r.as_object().unwrap().clone()).collect();
        let expected = "\
,label,n,rate,x,lat,flag,whole,more
0,,1,inf,0.5,\"[0.1, 2]\",True,3.0,
1,,2,4,1.0,[],False,,\"a,\"\"b\"\"\"
";
        assert_eq!(csv(&runs), expected);
        assert_eq!(csv(&[]), "\"\"\n");
    }
}
