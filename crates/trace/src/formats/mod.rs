//! One file per family of formats: what its records mean.

mod agents;
mod canonical;
mod chat;
mod functions;
mod hashed;
mod otel;
mod table;
mod texts;
mod weka;

pub(crate) use canonical::{Line, Part};
pub use functions::PerMinute;
pub(crate) use hashed::{block_size, check_unit};
pub(crate) use table::{JsonTable, Table};
pub(crate) use texts::text_line;

use crate::context::Context;
use crate::detect::Format;
use crate::error::Refusal;
use crate::options::{Options, Unit};
use crate::row::Clock;

/// Whether a named format can be read from records with these keys.
pub(crate) fn check_json(format: Format, keys: &[String], options: &Options) -> Result<(), Refusal> {
    let needs: &[&str] = match format {
        Format::TimedTrace => &["timestamp", "input_length"],
        Format::Bailian => &["chat_id", "input_length"],
        Format::LmcacheAgent => &["input", "output"],
        Format::Weka => &["requests"],
        Format::Questions => &["turns"],
        Format::Canonical => &["arrival_ns"],
        _ => &[],
    };
    let custom = options.columns.iter().flat_map(|c| [&c.time, &c.input, &c.output]).flatten();
    let wanted = needs.iter().copied().chain(custom.map(String::as_str).filter(|_| format == Format::Custom));
    let missing: Vec<&str> = wanted.filter(|n| !keys.iter().any(|k| k == n)).collect();
    if missing.is_empty() || (format == Format::Canonical && !keys.is_empty()) {
        return Ok(());
    }
    Err(Refusal::Lacks { format: format.word(), missing: missing.join(", "), seen: keys.join(", ") })
}

/// What the times of a JSON format count from.
pub(crate) fn json_clock(format: Format, options: &Options) -> Clock {
    match format {
        Format::LmcacheAgent | Format::Otel => Clock::Wall,
        Format::Mooncake | Format::TimedTrace | Format::Bailian | Format::Weka | Format::Canonical => Clock::Offset,
        Format::Custom => match &options.columns {
            Some(c) if c.time.is_none() => Clock::None,
            Some(c) if c.unit == Unit::Date => Clock::Wall,
            _ => Clock::Offset,
        },
        _ => Clock::None,
    }
}

/// Reads one record. `Err` is what makes the rest of the file unreadable.
pub(crate) fn json_record(format: Format, text: &str, context: &mut Context) -> Result<(), String> {
    match format {
        Format::Mooncake | Format::TimedTrace => hashed::mooncake(text, format, context),
        Format::Bailian => hashed::bailian(text, context),
        Format::Weka => return weka::record(text, context),
        Format::LmcacheAgent => agents::lmcache(text, context),
        Format::SglangAgentic => agents::sglang(text, context),
        Format::ShareGpt => chat::sharegpt(text, context),
        Format::OpenAiMessages => chat::openai(text, context),
        Format::Otel => otel::record(text, context),
        Format::Questions => texts::question(text, context),
        Format::Prompts => texts::prompt(text, context),
        Format::Canonical => canonical::row(text, context),
        Format::Custom => texts::custom(text, context),
        Format::BurstGpt
        | Format::AzureLlm
        | Format::AzureFunctions2019
        | Format::AzureFunctions2021
        | Format::Lengths
        | Format::Text => return Err(format!("not {}", format.word())),
    }
    Ok(())
}

/// Whether a format's records are rows of a table.
pub(crate) fn is_table(format: Format) -> bool {
    matches!(
        format,
        Format::BurstGpt | Format::AzureLlm | Format::AzureFunctions2019 | Format::AzureFunctions2021 | Format::Lengths
    )
}
