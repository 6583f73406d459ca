//! Azure Functions 2019: one row per function, its invocations in each of 1440 minutes.

use crate::account::{Drop, Notice};
use crate::context::Context;
use crate::error::Refusal;
use crate::num;
use crate::row::Row;
use csv::ByteRecord;
use serde::Serialize;
use std::collections::BTreeMap;

/// Figures of a file of counts per minute.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PerMinute {
    /// Functions (rows).
    pub functions: u64,
    /// Minutes (columns).
    pub minutes: u64,
    /// Invocations in all.
    pub total_invocations: u64,
    /// Invocations of each function, in file order.
    pub per_function: Vec<u64>,
    /// Invocations of all functions in the busiest minute.
    pub peak_minute_total: u64,
    /// Invocations of all functions per minute, on average.
    pub mean_per_minute: f64,
    /// Functions by trigger.
    pub triggers: BTreeMap<String, u64>,
    #[serde(skip)]
    totals: Vec<u64>,
}

pub(crate) struct Columns {
    function: usize,
    app: Option<usize>,
    trigger: Option<usize>,
    /// (minute from 0, column)
    minutes: Vec<(u32, usize)>,
}

impl Columns {
    pub(crate) fn new(names: &[String]) -> Result<Columns, Refusal> {
        let find = |name: &str| names.iter().position(|n| n.eq_ignore_ascii_case(name));
        let minute = |(column, name): (usize, &String)| Some((name.parse::<u32>().ok()?.checked_sub(1)?, column));
        let minutes: Vec<_> = names.iter().enumerate().filter_map(minute).collect();
        let lacks = |what: &str| Refusal::Lacks {
            format: "azure-functions-2019",
            missing: what.into(),
            seen: names.iter().take(6).cloned().collect::<Vec<_>>().join(", "),
        };
        if minutes.is_empty() {
            return Err(lacks("columns 1, 2, … of counts per minute"));
        }
        let function = find("HashFunction").ok_or_else(|| lacks("column \"HashFunction\""))?;
        Ok(Columns { function, app: find("HashApp"), trigger: find("Trigger"), minutes })
    }
}

/// The invocations of one function. The file doesn't say when within its minute each came: they are spread evenly,
/// the k-th of n in the middle of the k-th n-th of the minute.
pub(crate) fn minutes(record: &ByteRecord, columns: &Columns, context: &mut Context) {
    let text = |column: usize| String::from_utf8_lossy(record.get(column).unwrap_or_default()).into_owned();
    let function = context.names.intern_some(&text(columns.function));
    let client = columns.app.and_then(|c| context.names.intern_some(&text(c)));
    let trigger = columns.trigger.map(text).unwrap_or_default();
    let class = context.names.intern_some(&trigger);
    let mut figures = context.per_minute.take().unwrap_or_default();
    figures.functions += 1;
    figures.minutes = columns.minutes.len() as u64;
    figures.totals.resize(columns.minutes.len(), 0);
    *figures.triggers.entry(trigger).or_default() += 1;
    let mut sum = 0;
    for (i, &(minute, column)) in columns.minutes.iter().enumerate() {
        let n = match record.get(column).ok_or(Drop::ShortRow).and_then(num::count) {
            Ok(n) => n,
            Err(why) => {
                context.account.drop(why);
                continue;
            }
        };
        sum += u64::from(n);
        figures.totals[i] += u64::from(n);
        for k in 0..i64::from(n) {
            let within = (2 * k + 1) * 30_000_000_000 / i64::from(n);
            let at = Some(i64::from(minute) * 60_000_000_000 + within);
            context.account.notice(Notice::SpreadOverMinute);
            context.push(Row { at, client, class, model: function, ..Row::default() });
        }
    }
    figures.per_function.push(sum);
    figures.total_invocations += sum;
    figures.peak_minute_total = figures.totals.iter().copied().max().unwrap_or(0);
    figures.mean_per_minute = figures.total_invocations as f64 / figures.minutes as f64;
    context.per_minute = Some(figures);
}
