//! The page of a run.

use super::args::ServeArgs;
use super::judge::Judged;
use super::live::Ran;
use super::target::Endpoint;
use tailbound_report::page::Page;
use tailbound_report::{About, run_page};

/// The page of a run that was asked for with `argv`.
pub fn page(args: &ServeArgs, ran: &Ran, judged: &Judged<'_>, argv: &[String]) -> Page {
    let about = About {
        command: &command(argv),
        target: &Endpoint::from_args(&args.target).map_or_else(|_| "unknown".to_owned(), |e| e.url()),
        plan: &ran.plan,
        seed: Some(args.load.seed),
        health: &ran.health,
        notes: &ran.notes,
    };
    run_page(&judged.run(), &about)
}

/// A command line to be shown and copied: words quoted where a shell needs it, and the values of headers, which may be keys, left out.
fn command(argv: &[String]) -> String {
    let mut words = vec!["tailbound".to_owned()];
    let mut header = false;
    for word in argv.iter().skip(1) {
        let flag = word.starts_with("--");
        header = if flag { word == "--header" } else { header };
        let shown = match word.strip_prefix("--header=") {
            Some(pair) => format!("--header={}", hidden(pair)),
            None if header && !flag => hidden(word),
            None => word.clone(),
        };
        words.push(quoted(&shown));
    }
    words.join(" ")
}

/// `KEY=…` of a header.
fn hidden(pair: &str) -> String {
    format!("{}=…", pair.split('=').next().unwrap_or_default())
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_can_be_pasted_and_holds_no_key() {
        let argv = [
            "/usr/bin/tailbound",
            "bench",
            "serve",
            "--model",
            "it's <b>",
            "--header",
            "Authorization=Bearer sk-1",
            "x=y",
            "--header=a=sk-2",
            "--seed",
            "3",
        ];
        let shown = command(&argv.map(String::from));
        assert_eq!(
            shown,
            "tailbound bench serve --model 'it'\\''s <b>' --header 'Authorization=…' 'x=…' '--header=a=…' --seed 3"
        );
    }
}
