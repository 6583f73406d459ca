//! What a sweep's pages say before their figures: which runs don't count, and whether throughput rose while goodput fell.

use super::results::{RunData, figure, invalid};
use tailbound_report::page::{Strip, Tone, brief, count};

/// Runs named in the strip; the tables have all.
const NAMED: usize = 8;

/// The strip of a page about these runs, each with its combination's name.
pub fn strip(runs: &[(&str, &RunData)]) -> Strip {
    let why = |(name, run): &(&str, &RunData)| {
        let number = figure(run, "run_number").unwrap_or(0.0);
        Some((format!("{name}, run {number}, is INVALID and does not count: {}.", invalid(run)?), String::new()))
    };
    let mut cautions: Vec<(String, String)> = runs.iter().filter_map(why).collect();
    let bad = cautions.len();
    if bad > NAMED {
        cautions.truncate(NAMED);
        cautions.push((format!("So are {} more; the tables mark each.", bad - NAMED), String::new()));
    }
    cautions.extend(apart(runs).map(|words| (words, String::new())));
    let n = count(runs.len() as u64);
    let (tone, word, sentence) = match bad {
        0 => (Tone::Good, "VALID", format!("All {n} runs count.")),
        bad if bad == runs.len() => (Tone::Void, "INVALID", format!("None of the {n} runs counts.")),
        bad => (
            Tone::Missed,
            "PARTLY INVALID",
            format!("{bad} of the {n} runs do not count; they are hollow and struck out."),
        ),
    };
    Strip { tone, word: word.into(), sentence, reasons: Vec::new(), cautions }
}

/// What the valid runs of a combination came to.
struct Come<'a> {
    name: &'a str,
    throughput: Vec<f64>,
    goodput: Vec<f64>,
}

/// That some combination has more throughput (a twentieth or more) and less goodput (a tenth or more) than another, in each of its runs; the
/// pair that is farthest apart.
pub fn apart(runs: &[(&str, &RunData)]) -> Option<String> {
    let mut all: Vec<Come<'_>> = Vec::new();
    for (name, run) in runs.iter().filter(|(_, run)| invalid(run).is_none()) {
        let (Some(throughput), Some(goodput)) = (figure(run, "output_throughput"), figure(run, "request_goodput"))
        else {
            continue;
        };
        match all.iter_mut().find(|c| c.name == *name) {
            Some(come) => {
                come.throughput.push(throughput);
                come.goodput.push(goodput);
            }
            None => all.push(Come { name, throughput: vec![throughput], goodput: vec![goodput] }),
        }
    }
    let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (a, b)));
    let parted = pairs.filter(|(a, b)| {
        let rose = least(&b.throughput) >= 1.05 * most(&a.throughput);
        rose && most(&b.goodput) <= 0.9 * least(&a.goodput)
    });
    let fall = |(a, b): &(&Come<'_>, &Come<'_>)| mean(&a.goodput) - mean(&b.goodput);
    let (a, b) = parted.max_by(|x, y| fall(x).total_cmp(&fall(y)))?;
    Some(format!(
        "Throughput rises while goodput falls: from {} to {} output goes from {} to {} tokens/s, but good requests from {}/s to {}/s.",
        a.name,
        b.name,
        brief(mean(&a.throughput)),
        brief(mean(&b.throughput)),
        brief(mean(&a.goodput)),
        brief(mean(&b.goodput))
    ))
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn run(throughput: f64, goodput: f64, valid: bool) -> RunData {
        let run = json!({
            "run_number": 1, "output_throughput": throughput, "request_goodput": goodput,
            "tailbound": { "verdict": { "valid": valid, "reasons": [{ "code": "sends_late" }] } },
        });
        match run {
            Value::Object(map) => map,
            _ => unreachable!("an object"),
        }
    }

    #[test]
    fn throughput_that_rises_while_goodput_falls_is_said_only_if_every_run_shows_it() {
        let (slow, fast, faster) = (run(100.0, 9.0, true), run(200.0, 8.8, true), run(210.0, 3.0, true));
        let said = apart(&[("1", &slow), ("8", &fast), ("16", &faster)]).unwrap();
        assert!(said.contains("from 1 to 16 output goes from 100 to 210 tokens/s, but good requests from 9/s to 3/s"));
        assert_eq!(apart(&[("1", &slow), ("8", &fast)]), None);
        let lucky = run(205.0, 9.5, true);
        assert_eq!(apart(&[("1", &slow), ("16", &faster), ("16", &lucky)]), None);
        assert_eq!(apart(&[("1", &slow), ("16", &run(210.0, 3.0, false))]), None);
    }

    #[test]
    fn runs_that_do_not_count_are_named_with_their_reasons() {
        let (good, bad) = (run(1.0, 1.0, true), run(1.0, 1.0, false));
        let told = strip(&[("a", &good), ("b", &bad)]);
        assert_eq!((told.word.as_str(), told.tone), ("PARTLY INVALID", Tone::Missed));
        assert!(told.cautions[0].0.contains("b, run 1, is INVALID and does not count: sends_late."));
        assert_eq!((strip(&[("a", &good)]).word.as_str(), strip(&[("a", &bad)]).tone), ("VALID", Tone::Void));
        let many = vec![("b", &bad); 20];
        assert_eq!((strip(&many).cautions.len(), strip(&many).cautions[8].0.starts_with("So are 12 more")), (9, true));
    }
}
