//! `--preset`: lengths and objectives with a name, and what they stand for.

use super::args::ServeArgs;
use crate::failure::{Failure, Outcome};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tailbound_prompt::{Drawn, LogNormal};

/// A kind of service.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// A conversation with a person who reads along
    Chat,
    /// A long text in, a short one out
    Summarize,
    /// Completion in an editor: the first token is everything
    Code,
    /// Long thinking before the answer
    Reasoning,
    /// Tens of thousands of tokens of context
    LongContext,
}

/// What a preset asks for.
pub struct Terms {
    /// Its name.
    pub name: &'static str,
    /// Its lengths.
    pub lengths: Drawn,
    /// Its objectives, as `--goodput` writes them.
    pub goodput: [&'static str; 2],
    /// The share of requests that must meet them.
    pub attainment: f64,
    /// Where the lengths come from.
    pub lengths_from: &'static str,
    /// Where the objectives come from.
    pub objectives_from: &'static str,
}

fn law(median: f64, sigma: f64, least: u32, most: u32) -> LogNormal {
    LogNormal { median, sigma, least, most }
}

impl Preset {
    /// Lengths are log-normal through the median and the 90th percentile of a public trace, cut at its extremes.
    pub fn terms(self) -> Terms {
        match self {
            Preset::Chat => Terms {
                name: "chat",
                lengths: Drawn { input: law(1722.0, 0.93, 4, 8192), output: law(430.0, 0.54, 4, 2048) },
                goodput: ["ttft:250", "tpot:100"],
                attainment: 0.9,
                lengths_from: "ShareGPT conversations up to 8k tokens, as in the etalon project's table",
                objectives_from: "DistServe's chat application at 13B parameters (TTFT 0.25 s, TPOT 0.1 s, 90 %)",
            },
            Preset::Summarize => Terms {
                name: "summarize",
                lengths: Drawn { input: law(2717.0, 0.24, 64, 4096), output: law(166.0, 0.64, 8, 3500) },
                goodput: ["ttft:15000", "tpot:150"],
                attainment: 0.9,
                lengths_from: "arXiv summarization, as in the etalon project's table",
                objectives_from: "DistServe's summarization application at 66B parameters (TTFT 15 s, TPOT 0.15 s, 90 %)",
            },
            Preset::Code => Terms {
                name: "code",
                lengths: Drawn { input: law(1446.0, 0.98, 4, 8192), output: law(13.0, 1.11, 1, 1024) },
                goodput: ["ttft:125", "tpot:200"],
                attainment: 0.9,
                lengths_from: "Azure's 2023 code trace",
                objectives_from: "DistServe's code completion at 66B parameters (TTFT 0.125 s, TPOT 0.2 s, 90 %)",
            },
            Preset::Reasoning => Terms {
                name: "reasoning",
                lengths: Drawn { input: law(214.0, 1.98, 4, 32_768), output: law(851.0, 1.18, 16, 32_768) },
                goodput: ["ttft:2000", "tpot:80"],
                attainment: 0.99,
                lengths_from: "ServeGen's DeepSeek-R1 clients, weighted by their rates",
                objectives_from: "MLPerf Inference, DeepSeek-R1 in the Server scenario (TTFT 2 s, TPOT 80 ms, 99 %)",
            },
            Preset::LongContext => Terms {
                name: "long-context",
                lengths: Drawn { input: law(7594.0, 1.03, 512, 131_072), output: law(356.0, 0.42, 1, 2048) },
                goodput: ["ttft:6000", "tpot:175"],
                attainment: 0.99,
                lengths_from: "Mooncake's conversation trace",
                objectives_from: "MLPerf Inference, Llama-3.1-405B in the Server scenario (TTFT 6 s, TPOT 175 ms, 99 %)",
            },
        }
    }
}

/// A preset stands for lengths and objectives, so it stands beside no data set; objectives given by hand win over its own.
pub fn check(args: &ServeArgs) -> Outcome<()> {
    match (args.preset, args.data.dataset_path.is_some() || args.data.dataset_name != "random") {
        (Some(preset), true) => {
            let name = preset.terms().name;
            Err(Failure::usage(format!("--preset {name}: it has lengths of its own, and a data set is named too"))
                .hint("drop --dataset-name and --dataset-path, or --preset"))
        }
        _ => Ok(()),
    }
}

/// What the preset stands for, line by line.
pub fn lines(preset: Preset, args: &ServeArgs) -> Vec<(&'static str, String)> {
    let terms = preset.terms();
    let length = |law: &LogNormal| {
        format!("log-normal, median {}, sigma {}, {} to {} tokens", law.median, law.sigma, law.least, law.most)
    };
    let mut lines = vec![
        ("preset", terms.name.to_owned()),
        ("  prompts", length(&terms.lengths.input)),
        ("  answers", length(&terms.lengths.output)),
        ("  lengths from", terms.lengths_from.to_owned()),
    ];
    if args.report.goodput.is_empty() {
        lines.push(("  objectives", format!("{}, {} of requests", terms.goodput.join(" "), terms.attainment)));
        lines.push(("  objectives from", terms.objectives_from.to_owned()));
    }
    lines
}
