/// A command line as words, by the rules of a POSIX shell without expansion: what Python's `shlex.split` does, which vLLM's sweep uses.
///
/// # Errors
/// A quotation or an escape that doesn't end.
pub fn split(line: &str) -> Result<Vec<String>, SplitError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or(SplitError::Quote('\''))? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next().ok_or(SplitError::Escape)?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Inside double quotes a backslash escapes only itself and the quote.
fn quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), SplitError> {
    loop {
        match chars.next().ok_or(SplitError::Quote('"'))? {
            '"' => return Ok(()),
            '\\' => match chars.next().ok_or(SplitError::Escape)? {
                c @ ('"' | '\\') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

/// Words as one line that [`split`] takes apart again.
pub fn join(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%_+=:,./-".contains(c);
    let quoted = |word: &String| match word {
        word if !word.is_empty() && word.chars().all(plain) => word.clone(),
        word => format!("'{}'", word.replace('\'', "'\"'\"'")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Why a line has no words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// It ends within a quotation.
    #[error("find the end of the quotation that begins with {0}")]
    Quote(char),
    /// It ends with a backslash.
    #[error("find what the backslash at the end escapes")]
    Escape,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Expected values: `shlex.split` of Python 3.11.
    #[test]
    fn lines_are_split_as_python_splits_them() {
        for (line, expected) in [
            ("vllm serve  m --port 8000\n", vec!["vllm", "serve", "m", "--port", "8000"]),
            (r#"a 'b c' "d \" \e" \' '' x""y"#, vec!["a", "b c", r#"d " \e"#, "'", "", "xy"]),
            (r#"--json '{"a": [1, 2]}' # no comment"#, vec!["--json", r#"{"a": [1, 2]}"#, "#", "no", "comment"]),
            ("", vec![]),
            ("  ", vec![]),
        ] {
            assert_eq!(split(line).unwrap(), expected, "{line}");
        }
        assert_eq!(split("a 'b"), Err(SplitError::Quote('\'')));
        assert_eq!(split("a \"b"), Err(SplitError::Quote('"')));
        assert_eq!(split("a \\"), Err(SplitError::Escape));
    }

    proptest! {
        #[test]
        fn what_is_joined_is_split_again(words in prop::collection::vec(".*", 0..5)) {
            prop_assert_eq!(split(&join(&words)).unwrap(), words);
        }
    }
}
