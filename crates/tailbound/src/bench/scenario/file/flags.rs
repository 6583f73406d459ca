//! The file's settings as flags of `bench serve`.

use super::{Amount, File, Wrong, wrong};
use std::collections::BTreeMap;

/// The file's settings as flags of `bench serve`.
pub(super) fn flags(file: &File, classes: &[String]) -> Result<Vec<String>, Wrong> {
    let mut flags = Vec::new();
    for (key, value) in &file.serve {
        let flag = format!("--{}", key.replace('_', "-"));
        if flag == "--scenario" {
            return Err(wrong("serve: a scenario names no scenario"));
        }
        match value {
            toml::Value::Boolean(true) => flags.push(flag),
            toml::Value::Boolean(false) => {}
            toml::Value::Array(items) => {
                flags.push(flag);
                flags.extend(items.iter().map(plain));
            }
            other => flags.push(format!("{flag}={}", plain(other))),
        }
    }
    let limits = |all: &BTreeMap<String, Amount>| -> Vec<String> {
        all.iter()
            .filter(|(key, _)| *key != "attainment")
            .map(|(key, limit)| format!("{key}:{}", limit.text()))
            .collect()
    };
    if let Some(share) = file.objectives.get("attainment") {
        flags.push(format!("--attainment={}", share.text()));
    }
    let all = limits(&file.objectives);
    if !all.is_empty() {
        flags.push("--goodput".into());
        flags.extend(all);
    }
    for (class, own) in &file.class {
        if !classes.contains(class) {
            return Err((
                format!("class `{class}`: no phase sends it"),
                format!("the classes are {}", classes.join(", ")),
            ));
        }
        flags.push(format!("--class-goodput={class}={}", limits(own).join(",")));
    }
    Ok(flags)
}

fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(n) => n.to_string(),
        toml::Value::Float(n) => n.to_string(),
        toml::Value::Boolean(on) => on.to_string(),
        toml::Value::Datetime(at) => at.to_string(),
        // No flag takes either; what it says of this names the flag.
        toml::Value::Array(_) | toml::Value::Table(_) => "(several values)".into(),
    }
}
