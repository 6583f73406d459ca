//! `mlperf.conf`, `user.conf` and `audit.config`: how LoadGen reads them, and what it leaves out without a word.

use std::collections::BTreeMap;

/// The official defaults, which are inside LoadGen itself and come before every `user.conf`.
pub const MLPERF_CONF: &str = include_str!("mlperf.conf");

/// Something about a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Counted from 1.
    pub line: usize,
    /// The line as it stands.
    pub text: String,
    /// What is wrong and what to write instead.
    pub what: String,
}

impl std::fmt::Display for Remark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {:?}: {}", self.line, self.text, self.what)
    }
}

/// A value and where it was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub value: String,
    pub line: usize,
    pub text: String,
}

/// A file as LoadGen understands it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conf {
    pub(super) settings: BTreeMap<String, Setting>,
    /// Lines, or parts of them, that LoadGen silently ignores.
    pub ignored: Vec<Remark>,
    /// Lines that make LoadGen discard the whole file and run on with its defaults.
    pub errors: Vec<Remark>,
}

/// Reads a file. Words are separated by blanks; a line is `key = value`; `#` as a word of its own, but not in the place
/// of a value, ends it.
pub fn parse(text: &str) -> Conf {
    let mut conf = Conf::default();
    for (at, line) in text.lines().enumerate() {
        conf.line(at + 1, line);
    }
    conf
}

impl Conf {
    fn line(&mut self, line: usize, text: &str) {
        let remark = |what: String| Remark { line, text: text.trim().to_owned(), what };
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let Some((&key, rest)) = words.split_first() else { return };
        if key == "#" {
            return;
        }
        let Some((&equals, values)) = rest.split_first() else {
            if !key.starts_with('#') {
                self.ignored.push(remark(alone(key)));
            }
            return;
        };
        if equals == "#" {
            self.ignored.push(remark("it has no value, so LoadGen ignores it".into()));
            return;
        }
        if equals != "=" {
            let why = if key.starts_with('#') {
                "a comment needs a blank after its #, or LoadGen takes the first word for a key".to_owned()
            } else {
                format!("expected `{key} = value` with blanks around the =")
            };
            self.errors.push(remark(why));
            return;
        }
        if values.is_empty() {
            self.ignored.push(remark("it has no value, so LoadGen ignores it".into()));
            return;
        }
        for (i, value) in values.iter().enumerate() {
            if !is_number(value) {
                let hint = if value.starts_with('#') { ": a comment must stand on a line of its own" } else { "" };
                self.errors.push(remark(format!("{value:?} is neither an integer nor a decimal number{hint}")));
                return;
            }
            if i > 0 {
                self.ignored.push(remark(format!(
                    "of several values LoadGen keeps only the last; {:?} is ignored",
                    values[i - 1]
                )));
            }
            let setting = Setting { value: (*value).to_owned(), line, text: text.trim().to_owned() };
            if let Some(earlier) = self.settings.insert(key.to_owned(), setting)
                && earlier.line != line
            {
                self.ignored.push(Remark {
                    line: earlier.line,
                    text: earlier.text,
                    what: format!("line {line} sets {key} again, so this line is ignored"),
                });
            }
        }
    }
}

fn alone(word: &str) -> String {
    match word.split_once('=') {
        Some((key, value)) if !key.is_empty() => {
            format!("without blanks around the = LoadGen ignores it: write `{key} = {value}`")
        }
        _ => "it has no value, so LoadGen ignores it".into(),
    }
}

/// Whether C's `strtoul(…, 0)` or `strtod` would read the word to its end.
fn is_number(word: &str) -> bool {
    integer_prefix(word).1 == word.len() || real(word).is_some()
}

/// `strtoull(word, 0)`: the value of the longest prefix that is an integer (`0x` hexadecimal, leading `0` octal), and its
/// length. A minus sign wraps around, as in C.
pub(super) fn integer_prefix(word: &str) -> (u64, usize) {
    let (negative, digits, mut length) = match word.as_bytes().first() {
        Some(b'-') => (true, &word[1..], 1),
        Some(b'+') => (false, &word[1..], 1),
        _ => (false, word, 0),
    };
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (radix, digits) = match hex {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_hexdigit()) => {
            length += 2;
            (16, rest)
        }
        _ if digits.starts_with('0') => (8, digits),
        _ => (10, digits),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 {
        return (0, 0);
    }
    let value = u64::from_str_radix(&digits[..end], radix).unwrap_or(u64::MAX);
    (if negative { value.wrapping_neg() } else { value }, length + end)
}

/// `strtod`, if it reads the whole word.
pub(super) fn real(word: &str) -> Option<f64> {
    let (negative, digits) = match word.as_bytes().first() {
        Some(b'-') => (true, &word[1..]),
        Some(b'+') => (false, &word[1..]),
        _ => (false, word),
    };
    let sign = if negative { -1.0 } else { 1.0 };
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return hex_real(hex).map(|v| sign * v);
    }
    if digits.starts_with(['+', '-']) {
        return None;
    }
    digits.parse::<f64>().ok().map(|v| sign * v)
}

fn hex_real(digits: &str) -> Option<f64> {
    let (mantissa, exponent) = match digits.split_once(['p', 'P']) {
        Some((m, e)) => (m, e.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for c in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(c.to_digit(16)?);
    }
    let shift = exponent.saturating_sub(4 * fraction.len() as i32);
    Some(libm::scalbn(value, shift))
}
