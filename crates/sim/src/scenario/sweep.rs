//! `[sweep]`: parameters with lists of values, and a scenario for every combination.
//!
//! ```toml
//! [sweep]
//! policy = ["round-robin", "precise"]
//! "engines.count" = [4, 8]
//! "traffic.chat.arrivals.law" = ["poisson:10/s", "poisson:20/s"]
//! load = [{ name = "even", "traffic.chat.priority" = 0 }, { name = "first", "traffic.chat.priority" = 1 }]
//! ```
//!
//! A key is the path of a value; a table in a list is chosen by its `name`, or by its number. A value that is a table sets several
//! paths at once, and its `name` stands in the result.

use super::{Scenario, ScenarioError};
use std::path::Path;
use toml::{Table, Value};

/// One combination.
#[derive(Clone, Debug)]
pub struct Point {
    /// Each parameter's value, as the result shows it.
    pub values: Vec<String>,
    /// The scenario with these values.
    pub scenario: Scenario,
}

/// All combinations of a scenario's `[sweep]`, the last parameter changing fastest.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The parameters, in the order of the file.
    pub parameters: Vec<String>,
    /// The combinations; one without values if nothing is swept.
    pub points: Vec<Point>,
}

/// More are a typing error.
const MOST_POINTS: usize = 10_000;

impl Sweep {
    /// Reads a scenario's TOML; files are looked for in `folder`.
    pub fn from_toml(text: &str, folder: &Path) -> Result<Sweep, ScenarioError> {
        let base = Scenario { folder: folder.to_owned(), ..Scenario::from_toml(text)? };
        let Some(sweep) = base.sweep.clone() else {
            return Ok(Sweep { parameters: Vec::new(), points: vec![Point { values: Vec::new(), scenario: base }] });
        };
        let mut table: Table = text.parse().map_err(|e| ScenarioError::form(text, &e))?;
        table.remove("sweep");
        let mut axes = Vec::new();
        for (parameter, values) in &sweep {
            match values {
                Value::Array(values) if !values.is_empty() => axes.push((parameter, values)),
                _ => return Err(ScenarioError::value(format!("sweep.{parameter} must be a list of values"))),
            }
        }
        let count = axes.iter().try_fold(1usize, |n, (_, values)| n.checked_mul(values.len()));
        let count = count.filter(|n| *n <= MOST_POINTS);
        let count = count.ok_or_else(|| ScenarioError::value("sweep: more than 10000 combinations"))?;
        let points = (0..count).map(|i| point(&table, &axes, i, folder)).collect::<Result<_, _>>()?;
        Ok(Sweep { parameters: sweep.keys().cloned().collect(), points })
    }

    /// Reads a file; other files are looked for beside it.
    pub fn open(path: &Path) -> Result<Sweep, ScenarioError> {
        Sweep::from_toml(&super::read(path)?, path.parent().unwrap_or(Path::new("")))
    }
}

fn point(
    table: &Table,
    axes: &[(&String, &Vec<Value>)],
    mut index: usize,
    folder: &Path,
) -> Result<Point, ScenarioError> {
    let mut whole = Value::Table(table.clone());
    let mut chosen: Vec<(&str, &Value)> = Vec::with_capacity(axes.len());
    for (parameter, values) in axes.iter().rev() {
        chosen.push((parameter, &values[index % values.len()]));
        index /= values.len();
    }
    chosen.reverse();
    for (parameter, value) in &chosen {
        match value {
            Value::Table(several) => {
                for (path, value) in several.iter().filter(|(path, _)| *path != "name") {
                    set(&mut whole, path, value)?;
                }
            }
            value => set(&mut whole, parameter, value)?,
        }
    }
    let values: Vec<String> = chosen.iter().map(|(_, value)| shown(value)).collect();
    let scenario: Scenario = whole.try_into().map_err(|e: toml::de::Error| {
        ScenarioError::value(format!("sweep ({}): {}", values.join(", "), e.message()))
    })?;
    Ok(Point { values, scenario: Scenario { folder: folder.to_owned(), ..scenario } })
}

/// Puts a value where a path leads.
fn set(whole: &mut Value, path: &str, value: &Value) -> Result<(), ScenarioError> {
    let mut at = whole;
    let mut steps = path.split('.').peekable();
    while let Some(step) = steps.next() {
        let last = steps.peek().is_none();
        let nowhere = || ScenarioError::value(format!("sweep: `{path}` leads nowhere: there is no `{step}`"));
        at = match at {
            Value::Table(table) if last => {
                table.insert(step.to_owned(), value.clone());
                return Ok(());
            }
            Value::Table(table) => table.entry(step.to_owned()).or_insert_with(|| Value::Table(Table::new())),
            Value::Array(list) => {
                let named = list.iter().position(|v| v.get("name").and_then(Value::as_str) == Some(step));
                let place = named.or_else(|| step.parse().ok()).ok_or_else(nowhere)?;
                let place = list.get_mut(place).ok_or_else(nowhere)?;
                if last {
                    *place = value.clone();
                    return Ok(());
                }
                place
            }
            _ => return Err(nowhere()),
        };
    }
    Ok(())
}

/// A value in a table's cell.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Table(several) => match several.get("name").and_then(Value::as_str) {
            Some(name) => name.to_owned(),
            None => several.values().map(shown).collect::<Vec<_>>().join(" "),
        },
        Value::String(text) => text.lines().find(|l| !l.trim().is_empty()).unwrap_or("").trim().to_owned(),
        Value::Integer(n) => n.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Boolean(b) => b.to_string(),
        Value::Array(list) => list.iter().map(shown).collect::<Vec<_>>().join(" "),
        Value::Datetime(_) => String::new(),
    };
    text.chars().take(32).collect()
}
