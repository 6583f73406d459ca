//! What a side is, from its word on the command line.

use crate::failure::{Failure, Outcome};
use std::path::PathBuf;

/// One side.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    pub name: String,
    /// As it was written, without the name.
    pub source: String,
    pub what: What,
}

/// Where its runs come from.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A server that runs.
    Url(String),
    /// A server to be started.
    Command(Vec<String>),
    /// The engine model.
    Profile(String),
    /// Folders of runs, or result files of vLLM's.
    Saved(Vec<PathBuf>),
}

/// All sides; they are either all saved, or all in virtual time, or all in real time.
pub fn parse(words: &[String]) -> Outcome<Vec<Named>> {
    let mut sides = words.iter().map(|word| one(word)).collect::<Outcome<Vec<Named>>>()?;
    let kind = |what: &What| match what {
        What::Url(_) | What::Command(_) => "in real time",
        What::Profile(_) => "in virtual time",
        What::Saved(_) => "saved",
    };
    let first = kind(&sides[0].what);
    if let Some(other) = sides.iter().find(|side| kind(&side.what) != first) {
        return Err(Failure::usage(format!(
            "sides must be of one kind: {} is {first}, {} is {}",
            words[0],
            other.source,
            kind(&other.what)
        )));
    }
    // Names that were not given are letters where sources are too long to read in a sentence.
    let letters = ('A'..='Z').map(String::from);
    for (side, letter) in sides.iter_mut().zip(letters) {
        if side.name.is_empty() {
            side.name = if side.source.chars().count() <= 16 { side.source.clone() } else { letter };
        }
    }
    for (i, side) in sides.iter().enumerate() {
        if sides[..i].iter().any(|s| s.name == side.name) {
            let (first, second) = (&words[0], &words[i]);
            return Err(Failure::usage(format!("two sides are called {}: {first}, {second}", side.name))
                .hint("give each a name of its own: old=… new=…"));
        }
    }
    Ok(sides)
}

fn one(word: &str) -> Outcome<Named> {
    let (name, source) = match word.split_once('=') {
        Some((name, source)) if is_name(name) => (name, source),
        _ => ("", word),
    };
    let wrong = |problem: &str| Failure::usage(format!("side {word}: {problem}"));
    let what = if source.starts_with("http://") || source.starts_with("https://") {
        What::Url(source.trim_end_matches('/').to_owned())
    } else if let Some(command) = source.strip_prefix("cmd:") {
        let argv = words(command).map_err(|problem| wrong(&problem))?;
        if argv.is_empty() {
            return Err(wrong("the command is empty"));
        }
        What::Command(argv)
    } else if let Some(profile) = source.strip_prefix("profile:") {
        What::Profile(profile.to_owned())
    } else {
        let paths: Vec<PathBuf> = source.split(',').map(PathBuf::from).collect();
        if let Some(absent) = paths.iter().find(|path| !path.exists()) {
            return Err(wrong(&format!("{} is not there", absent.display()))
                .hint("a side is a URL (http://…), cmd:COMMAND, profile:NAME, a run's folder or a result file"));
        }
        What::Saved(paths)
    };
    let source = source.strip_prefix("profile:").unwrap_or(source).to_owned();
    Ok(Named { name: name.to_owned(), source, what })
}

/// A name is a plain word, so that no URL's or path's `=` is taken for the end of one.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_.+ ".contains(c))
}

/// A command's words as a shell would split them, without anything else a shell does: blanks, '…', "…" and \.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    match quote {
        Some(q) => Err(format!("a {q} in the command has no end")),
        None => Ok(words.into_iter().chain(word).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Outcome<Vec<Named>> {
        parse(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn sides_have_names_and_kinds() {
        let sides = of(&["old=http://a:1/?x=y/", "http://a-host-with-a-long-name:8000"]).unwrap();
        assert_eq!((sides[0].name.as_str(), sides[1].name.as_str()), ("old", "B"));
        assert_eq!(sides[0].what, What::Url("http://a:1/?x=y".into()));
        let sides = of(&["cmd:srv --port 1 --name 'a b' \"c\\\"d\"", "x=cmd:srv"]).unwrap();
        assert_eq!(
            sides[0].what,
            What::Command(["srv", "--port", "1", "--name", "a b", "c\"d"].map(String::from).into())
        );
        let sides = of(&["profile:fast", "profile:slow"]).unwrap();
        assert_eq!((sides[0].name.as_str(), &sides[1].what), ("fast", &What::Profile("slow".into())));
    }

    #[test]
    fn what_no_side_can_be_is_named() {
        for (words, told) in [
            (&["http://a", "profile:x"][..], "of one kind"),
            (&["profile:x", "profile:x"], "two sides are called x"),
            (&["nowhere/at/all", "http://a"], "nowhere/at/all is not there"),
            (&["cmd:'a", "cmd:b"], "has no end"),
            (&["cmd: ", "cmd:b"], "empty"),
        ] {
            let message = of(words).unwrap_err().to_string();
            assert!(message.contains(told), "{message}");
        }
    }
}
