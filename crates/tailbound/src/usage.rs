//! What is wrong with a command line, in this program's own shape: `error:` in one line, then `hint:`.

use crate::failure::Failure;
use clap::error::ErrorKind;
use std::process::ExitCode;

/// Prints help and version as they are, and errors in one line; the exit code is 2 for errors.
pub fn refuse(error: &clap::Error) -> ExitCode {
    let asked_for = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if asked_for {
        // A reader that went away (`| head`) is no error.
        let _ = error.print();
        return ExitCode::from(error.exit_code() as u8);
    }
    let failure = failure(&error.to_string());
    eprintln!("{failure}");
    ExitCode::from(failure.exit)
}

/// What is wrong with flags that came from elsewhere than the command line.
pub fn explained(error: &clap::Error) -> Failure {
    failure(&error.to_string())
}

/// The parser writes `error: CAUSE`, where the cause may go on in indented lines, then `tip: …` lines, the usage and a pointer to
/// `--help`. Usage and pointer go: the first would hide the cause, which names the flag.
fn failure(text: &str) -> Failure {
    let mut cause = String::new();
    let mut hint = None;
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        if line.starts_with("Usage:") {
            break;
        }
        if let Some(tip) = line.strip_prefix("tip: ") {
            hint.get_or_insert(tip.to_owned());
        } else if let Some(values) = line.strip_prefix("[possible values: ") {
            hint.get_or_insert(format!("one of {}", values.trim_end_matches(']')));
        } else if !line.starts_with("For more information") {
            cause += if cause.is_empty() { "" } else { " " };
            cause += line.strip_prefix("error: ").unwrap_or(line);
        }
    }
    Failure::usage(cause).hint(hint.unwrap_or_else(|| "see --help".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn shown(args: &str) -> String {
        failure(&Cli::try_parse_from(args.split(' ')).unwrap_err().to_string()).to_string()
    }

    #[test]
    fn an_error_is_one_line_and_a_hint() {
        let text = shown("tailbound bench serve --max-concurency 3");
        assert_eq!(
            text,
            "error: unexpected argument '--max-concurency' found\n  hint: a similar argument exists: '--max-concurrency'"
        );
        let text = shown("tailbound bench serve --ramp-up-strategy square");
        assert_eq!(
            text,
            "error: invalid value 'square' for '--ramp-up-strategy <RAMP_UP_STRATEGY>'\n  hint: one of linear, exponential"
        );
        let text = shown("tailbound bench serve --num-prompts -1");
        assert!(text.starts_with("error: invalid value '-1' for '--num-prompts <N>': "), "{text}");
        let text = shown("tailbound report");
        assert_eq!(text, "error: the following required arguments were not provided: <DIR>\n  hint: see --help");
    }
}
