//! Flags of `workload generate` that say what to draw, one law at a time.

use crate::failure::{Failure, Outcome};
use crate::units;
use clap::Args;
use std::path::{Path, PathBuf};
use tailbound_clock::Dur;
use tailbound_trace::MediaKind;
use tailbound_trace::generate::{
    Agents, Arrivals, Curve, Extent, Gaps, Law, Popularity, Prefixes, Sessions, Shape, Synthetic,
};

/// Laws are written like `lognormal:mean=500,cv=1.2,max=8192`, `16..512`, `zipf:s=1.1,max=4096`, `0.7*200 + 0.3*4k`, or
/// `file:LENGTHS` for a file with one number a line.
#[derive(Args, Debug)]
#[command(next_help_heading = "From laws")]
pub struct LawArgs {
    /// When requests (or conversations, or tasks) arrive: 5/s, gamma:5/s,cv=3, weibull:…, constant:…, ramp:1/s..9/s,over=10min,
    /// diurnal:5/s,swing=0.6,peak=15h, mmpp:2/s:60s,30/s:5s
    #[arg(long, value_name = "LAW", group = "what")]
    pub arrivals: Option<Arrivals>,
    /// A rate that changes: CSV of second,requests/s; each holds until the next
    #[arg(long, value_name = "FILE", group = "what")]
    rate_series: Option<PathBuf>,
    /// A rate that is led: CSV of seconds,requests/s; straight to each rate within its seconds
    #[arg(long, value_name = "FILE", group = "what")]
    stages: Option<PathBuf>,
    /// CV of the gaps under --rate-series and --stages; 1 is Poisson, 0 even
    #[arg(long, value_name = "CV", default_value = "1")]
    gap_cv: f64,
    /// How many requests, exactly (instead of --duration)
    #[arg(long, value_name = "N", value_parser = units::count32, conflicts_with = "duration")]
    num_prompts: Option<u32>,
    /// Tokens of a prompt, behind a shared prefix; of what a turn adds
    #[arg(long, value_name = "LAW", default_value = "512")]
    input_tokens: String,
    /// Tokens of an answer
    #[arg(long, value_name = "LAW", default_value = "128")]
    output_tokens: String,
    /// Spearman's correlation of both, where both are files or Zipf's
    #[arg(long, value_name = "R", default_value = "0", allow_negative_numbers = true)]
    rank_correlation: f64,
    /// So many prompt heads that requests share
    #[arg(long, value_name = "N")]
    prefix_groups: Option<u32>,
    /// Tokens of a head
    #[arg(long, value_name = "LAW", default_value = "1024", requires = "prefix_groups")]
    prefix_tokens: String,
    /// Popularity of the heads, Zipf's exponent; without it they come in turn
    #[arg(long, value_name = "S", requires = "prefix_groups")]
    prefix_zipf: Option<f64>,
    /// The share of requests that have a head
    #[arg(long, value_name = "SHARE", default_value = "1", requires = "prefix_groups")]
    prefix_share: f64,
    /// Conversations of so many turns
    #[arg(long, value_name = "LAW", conflicts_with = "agent_steps")]
    turns: Option<String>,
    /// Seconds between an answer and the next turn
    #[arg(long, value_name = "LAW", default_value = "exponential:mean=10", requires = "turns")]
    think: String,
    /// Tasks of agents that take so many steps
    #[arg(long, value_name = "LAW")]
    agent_steps: Option<String>,
    /// Seconds an agent's tools take
    #[arg(long, value_name = "LAW", default_value = "exponential:mean=2", requires = "agent_steps")]
    tool_time: String,
    /// Tokens a tool's result adds
    #[arg(long, value_name = "LAW", default_value = "lognormal:mean=400,cv=1.5", requires = "agent_steps")]
    tool_tokens: String,
    /// The share of steps that hand work to sub-agents
    #[arg(long, value_name = "SHARE", default_value = "0", requires = "agent_steps")]
    fork: f64,
    /// How many sub-agents such a step has
    #[arg(long, value_name = "LAW", default_value = "2..4", requires = "agent_steps")]
    fan_out: String,
    /// How deep sub-agents nest
    #[arg(long, value_name = "N", default_value = "1", requires = "agent_steps")]
    depth: u32,
    /// Images per request
    #[arg(long, value_name = "LAW")]
    images: Option<String>,
    /// Tokens per image
    #[arg(long, value_name = "LAW", default_value = "576", requires = "images")]
    image_tokens: String,
    /// Audio parts per request
    #[arg(long, value_name = "LAW")]
    audios: Option<String>,
    /// Tokens per audio part
    #[arg(long, value_name = "LAW", default_value = "250", requires = "audios")]
    audio_tokens: String,
    /// Videos per request
    #[arg(long, value_name = "LAW")]
    videos: Option<String>,
    /// Tokens per video
    #[arg(long, value_name = "LAW", default_value = "4k", requires = "videos")]
    video_tokens: String,
    /// The part of an answer that is reasoning, 0 to 1
    #[arg(long, value_name = "LAW")]
    reason_ratio: Option<String>,
    /// Write content hashes of the prompts' blocks of so many tokens
    #[arg(long, value_name = "N", value_parser = units::some32)]
    block_tokens: Option<u32>,
    /// What an answer token is assumed to take: later turns arrive after the answers before them
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = units::duration)]
    token_time: Dur,
}

impl LawArgs {
    /// Whether they say when requests arrive.
    pub fn are_given(&self) -> bool {
        self.arrivals.is_some() || self.rate_series.is_some() || self.stages.is_some()
    }

    /// What they say, checked.
    pub fn spec(&self, duration: Option<Dur>, rate_scale: f64) -> Outcome<Synthetic> {
        let extent = match (self.num_prompts, duration) {
            (Some(n), _) => Extent::Requests(n as usize),
            (None, Some(duration)) => Extent::Seconds(duration.secs()),
            (None, None) => {
                return Err(Failure::usage("--duration or --num-prompts must say how much to draw"));
            }
        };
        Ok(Synthetic {
            arrivals: scaled(self.arrivals()?, rate_scale),
            extent,
            input: law("--input-tokens", &self.input_tokens)?,
            output: law("--output-tokens", &self.output_tokens)?,
            rank_correlation: self.rank_correlation,
            prefixes: self.prefixes()?,
            shape: self.shape()?,
            media: self.media()?,
            reason_ratio: self.reason_ratio.as_deref().map(|text| law("--reason-ratio", text)).transpose()?,
            block_tokens: self.block_tokens,
            token_s: self.token_time.secs(),
        })
    }

    fn arrivals(&self) -> Outcome<Arrivals> {
        if let Some(arrivals) = &self.arrivals {
            return Ok(arrivals.clone());
        }
        let gaps = match self.gap_cv {
            0.0 => Gaps::Constant,
            cv if cv > 0.0 && cv.is_finite() => Gaps::Gamma(1.0 / (cv * cv)),
            cv => return Err(Failure::usage(format!("--gap-cv must not be below zero, but is {cv}"))),
        };
        let curve = match (&self.rate_series, &self.stages) {
            (Some(file), _) => Curve::steps(&pairs(file, true)?),
            (_, Some(file)) => Curve::stages(&pairs(file, false)?),
            (None, None) => return Err(Failure::usage("--arrivals, --rate-series or --stages must say when")),
        };
        Ok(Arrivals::Renewal { gaps, curve })
    }

    fn prefixes(&self) -> Outcome<Option<Prefixes>> {
        let Some(groups) = self.prefix_groups else { return Ok(None) };
        let popularity = self.prefix_zipf.map_or(Popularity::InTurn, Popularity::Zipf);
        let tokens = law("--prefix-tokens", &self.prefix_tokens)?;
        Ok(Some(Prefixes { groups, tokens, popularity, share: self.prefix_share }))
    }

    fn shape(&self) -> Outcome<Shape> {
        if let Some(turns) = &self.turns {
            let (turns, think_s) = (law("--turns", turns)?, law("--think", &self.think)?);
            return Ok(Shape::Sessions(Sessions { turns, think_s }));
        }
        let Some(steps) = &self.agent_steps else { return Ok(Shape::Single) };
        Ok(Shape::Agents(Agents {
            steps: law("--agent-steps", steps)?,
            tool_s: law("--tool-time", &self.tool_time)?,
            tool_tokens: law("--tool-tokens", &self.tool_tokens)?,
            fork: self.fork,
            fan_out: law("--fan-out", &self.fan_out)?,
            depth: self.depth,
        }))
    }

    fn media(&self) -> Outcome<Vec<(MediaKind, Law, Law)>> {
        let kinds = [
            (MediaKind::Image, "--images", &self.images, "--image-tokens", &self.image_tokens),
            (MediaKind::Audio, "--audios", &self.audios, "--audio-tokens", &self.audio_tokens),
            (MediaKind::Video, "--videos", &self.videos, "--video-tokens", &self.video_tokens),
        ];
        let mut media = Vec::new();
        for (kind, flag, parts, tokens_flag, tokens) in kinds {
            if let Some(parts) = parts {
                media.push((kind, law(flag, parts)?, law(tokens_flag, tokens)?));
            }
        }
        Ok(media)
    }
}

fn scaled(arrivals: Arrivals, by: f64) -> Arrivals {
    match arrivals {
        Arrivals::Renewal { gaps, curve } => Arrivals::Renewal { gaps, curve: curve.scaled(by) },
        Arrivals::Modulated(mut states) => {
            states.iter_mut().for_each(|s| s.rate *= by);
            Arrivals::Modulated(states)
        }
    }
}

/// A law as written, or the numbers of a file.
fn law(flag: &str, text: &str) -> Outcome<Law> {
    let Some(file) = text.strip_prefix("file:") else {
        return text.parse().map_err(|e: String| Failure::usage(format!("{flag} {text}: {e}")));
    };
    let values = read(Path::new(file))?;
    let mut numbers = Vec::new();
    for (row, line) in lines(&values) {
        match line.parse::<f64>() {
            Ok(x) if x >= 0.0 && x.is_finite() => numbers.push(x),
            // A first line of words is a heading.
            _ if row == 1 && line.parse::<f64>().is_err() => {}
            _ => return Err(bad(file, row, &format!("`{line}` is not a number of tokens"))),
        }
    }
    Law::empirical(numbers).map_err(|e| Failure::new(format!("failed to read {file}: {e}")))
}

/// `second,rate` lines; with `rising`, the first column must.
fn pairs(path: &Path, rising: bool) -> Outcome<Vec<(f64, f64)>> {
    let file = path.display().to_string();
    let text = read(path)?;
    let mut pairs: Vec<(f64, f64)> = Vec::new();
    for (row, line) in lines(&text) {
        let pair = line.split_once(',').and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
        match pair {
            Some((t, rate)) if t >= 0.0 && rate >= 0.0 && f64::is_finite(t) && f64::is_finite(rate) => {
                if rising && pairs.last().is_some_and(|(before, _)| *before >= t) {
                    return Err(bad(&file, row, "its second does not come after the one before"));
                }
                pairs.push((t, rate));
            }
            None if row == 1 => {}
            _ => return Err(bad(&file, row, &format!("`{line}` should read SECONDS,RATE, both zero or more"))),
        }
    }
    if pairs.iter().all(|(_, rate)| *rate == 0.0) {
        return Err(Failure::new(format!("failed to read {file}: no rate above zero")));
    }
    Ok(pairs)
}

fn read(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|e| Failure::new(format!("failed to read {}: {e}", path.display())))
}

/// Numbered from 1; blank ones and remarks left out.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn bad(file: &str, row: usize, what: &str) -> Failure {
    Failure::new(format!("failed to read {file}: row {row}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, text).unwrap();
        file
    }

    #[test]
    fn files_of_numbers_may_have_a_heading_and_name_their_bad_row() {
        let lengths = file("tokens\n# measured\n12\n\n12\n900\n");
        let read = law("--input-tokens", &format!("file:{}", lengths.path().display())).unwrap();
        assert_eq!(read, Law::empirical([12.0, 12.0, 900.0]).unwrap());
        let wrong = file("12\n-3\n");
        let error = law("--input-tokens", &format!("file:{}", wrong.path().display())).unwrap_err().to_string();
        assert!(error.contains("row 2") && error.contains("-3"), "{error}");
        assert!(law("--turns", "lots").unwrap_err().to_string().contains("--turns lots"));
    }

    #[test]
    fn series_and_stages_are_read_and_checked() {
        let series = file("second,rate\n0,2\n60,5.5\n");
        assert_eq!(pairs(series.path(), true).unwrap(), [(0.0, 2.0), (60.0, 5.5)]);
        let back = file("0,2\n0,3\n");
        assert!(pairs(back.path(), true).unwrap_err().to_string().contains("row 2"));
        assert_eq!(pairs(back.path(), false).unwrap().len(), 2);
        assert!(pairs(file("0,0\n").path(), false).unwrap_err().to_string().contains("above zero"));
        assert!(pairs(file("0,1\n5;2\n").path(), false).unwrap_err().to_string().contains("SECONDS,RATE"));
    }
}
