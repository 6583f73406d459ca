//! `tailbound bench loadgen audit …`: the compliance tests that apply to LLMs, over the logs of a run.

use super::folder;
use crate::failure::{Failure, Outcome, exit};
use crate::output;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use tailbound_stats::loadgen::accuracy::{self, Answer};
use tailbound_stats::loadgen::score::Score;
use tailbound_stats::loadgen::{Scenario, audit, verdict};

/// Judge an audit run.
#[derive(Args, Debug)]
pub struct AuditArgs {
    #[command(subcommand)]
    test: AuditTest,
}

#[derive(Subcommand, Debug)]
enum AuditTest {
    /// Nothing is answered from memory: a run that repeats one sample (--audit-conf test04) is at most 10 % faster than one that doesn't
    Test04 {
        /// Folder of the run with different samples
        reference: PathBuf,
        /// Folder of the run that repeats one
        dir: PathBuf,
    },
    /// Outputs are consistent: first token, one end of sequence at most, stated length (--audit-conf test06)
    Test06 {
        /// Folder of the run
        dir: PathBuf,
        /// The model's end-of-sequence token
        #[arg(long, value_name = "ID", default_value_t = audit::EOS)]
        eos: u32,
    },
    /// Answers of a performance run are accurate (--audit-conf test07): 990 of them, and the accuracy that the benchmark's own scorer gave them
    Test07 {
        /// Folder of the run
        dir: PathBuf,
        /// Accuracy of the log, in percent, by the benchmark's scorer
        #[arg(long, value_name = "PERCENT")]
        accuracy: f64,
        /// The least it may be
        #[arg(long, value_name = "PERCENT", default_value_t = audit::TEST07_ACCURACY)]
        at_least: f64,
    },
    /// Answers of a performance run are as long as the reference's, within 10 % (--audit-conf test09)
    Test09 {
        /// Folder of the run
        dir: PathBuf,
        /// Mean output tokens of the reference
        #[arg(long, value_name = "TOKENS", default_value_t = 1278.20)]
        reference_tokens: f64,
    },
}

/// Runs one; exit code 0 if it passes, 3 if not. The last line is the one the submission checker looks for.
pub fn run(args: &AuditArgs) -> Outcome<u8> {
    let (passes, mut text) = match &args.test {
        AuditTest::Test04 { reference, dir } => test04(reference, dir)?,
        AuditTest::Test06 { dir, eos } => test06(dir, *eos)?,
        AuditTest::Test07 { dir, accuracy, at_least } => test07(dir, *accuracy, *at_least)?,
        AuditTest::Test09 { dir, reference_tokens } => test09(dir, *reference_tokens)?,
    };
    text += if passes { "TEST PASS\n" } else { "TEST FAIL\n" };
    output::print(&text)?;
    Ok(if passes { 0 } else { exit::INVALID })
}

fn test04(reference: &Path, dir: &Path) -> Outcome<(bool, String)> {
    let (a, b) = (score(reference)?, score(dir)?);
    if a.effective.requested.scenario != b.effective.requested.scenario {
        return Err(Failure::usage("TEST04: the two runs are of different scenarios, which can't be compared"));
    }
    if !b.effective.requested.performance_issue_same {
        return Err(Failure::usage(format!("TEST04: {} does not repeat one sample", dir.display()))
            .hint("run it with --audit-conf test04; the reference comes first"));
    }
    let found = audit::Test04::of(&a, &b).ok_or_else(|| {
        Failure::usage("TEST04: in Server the schedule fixes the rate, so that a cache doesn't show")
            .hint("run both in Offline or SingleStream")
    })?;
    let mut text = format!(
        "reference      {:.3}/s\none sample     {:.3}/s\nfaster by      {:.2} % (at most {:.0} %)\n",
        found.reference,
        found.repeated,
        100.0 * found.faster_by(),
        100.0 * audit::TEST04_MARGIN
    );
    for (name, score) in [("reference", &a), ("one sample", &b)] {
        if !score.decision.valid() {
            text += &format!("the run with {name} is INVALID, and so no evidence\n");
        }
    }
    Ok((found.passes() && a.decision.valid() && b.decision.valid(), text))
}

fn test06(dir: &Path, eos: u32) -> Outcome<(bool, String)> {
    let log = folder::detail(dir)?;
    let e = verdict::effective_of(&log).map_err(|e| folder::garbled(dir, "mlperf_log_detail.txt", &e))?;
    let offline = e.requested.scenario == Scenario::Offline;
    let found = audit::test06(&answers(dir)?, offline, eos);
    let line = |what: &str, bad: &[u64]| match bad {
        [] => format!("{what:<20} True\n"),
        [first, ..] => format!("{what:<20} False: {} of {} samples, the first is {first}\n", bad.len(), found.samples),
    };
    let mut text = format!("{:<20} {}\n", "samples", found.samples);
    text += &match offline {
        true => format!("{:<20} skipped in Offline\n", "first token check"),
        false => line("first token check", &found.first_token),
    };
    text += &line("EOS check", &found.eos);
    text += &line("sample length check", &found.length);
    Ok((found.passes(), text))
}

fn test07(dir: &Path, accuracy: f64, at_least: f64) -> Outcome<(bool, String)> {
    let answered = audit::test07_answered(&answers(dir)?);
    let text = format!(
        "samples answered     {answered} (at least {})\naccuracy             {accuracy} % (at least {at_least} %)\n",
        audit::TEST07_ANSWERS
    );
    Ok((answered >= audit::TEST07_ANSWERS && accuracy >= at_least, text))
}

fn test09(dir: &Path, reference: f64) -> Outcome<(bool, String)> {
    let Some((mean, passes)) = audit::test09(&answers(dir)?, reference) else {
        return Err(Failure::new(format!("{}: the accuracy log has no token counts", dir.display()))
            .hint("run it with --set use_token_latencies=1"));
    };
    let (low, high) = (0.9 * reference, 1.1 * reference);
    Ok((passes, format!("mean output tokens   {mean:.2} ({low:.2} to {high:.2})\n")))
}

fn score(dir: &Path) -> Outcome<Score> {
    let log = folder::detail(dir)?;
    let garbled = |e| folder::garbled(dir, "mlperf_log_detail.txt", &e);
    let judged = verdict::of_detail(&log).map_err(garbled)?;
    judged.score.ok_or_else(|| Failure::new(format!("{}: an accuracy run, which has no speed", dir.display())))
}

fn answers(dir: &Path) -> Outcome<Vec<Answer>> {
    const NAME: &str = "mlperf_log_accuracy.json";
    let path = dir.join(NAME);
    let text =
        std::fs::read_to_string(&path).map_err(|e| Failure::new(format!("failed to read {}: {e}", path.display())))?;
    let list = accuracy::parse(&text).map_err(|e| folder::garbled(dir, NAME, &e))?;
    if list.is_empty() {
        return Err(Failure::new(format!("{}: it holds no answers", path.display()))
            .hint("an audit run logs some in performance mode: --audit-conf test06"));
    }
    Ok(list)
}
