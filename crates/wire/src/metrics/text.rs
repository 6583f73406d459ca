//! The text format 0.0.4 and OpenMetrics 1.0, as far as figures go: what is only for people and databases (help, types, timestamps,
//! exemplars) is read past. Of names in quotes (Prometheus 3) those inside the braces are understood.

use super::NotMetrics;
use std::borrow::Cow;

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: Labels<'a>,
    /// Its value; may be infinite or not a number.
    pub value: f64,
}

/// The labels of a figure, in the page's order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Labels<'a>(&'a str);

impl<'a> Labels<'a> {
    /// The value of one.
    pub fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.pairs().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// All of them.
    pub fn pairs(self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            // What stands here was read once already, so nothing is wrong with it.
            let (pair, after) = label(rest).ok().flatten()?;
            rest = after;
            Some(pair)
        })
        .filter(|(name, _)| !name.is_empty())
    }
}

/// Shows `take` every figure of a page, in order; how many there were. All of the page is read, or it is refused.
///
/// # Errors
/// It isn't text, or not in this format (a page for people, say): which line, and why.
pub fn samples<'a>(page: &'a [u8], mut take: impl FnMut(Sample<'a>)) -> Result<usize, NotMetrics> {
    let text = std::str::from_utf8(page).map_err(|_| NotMetrics::NotText { gzip: page.starts_with(&[0x1f, 0x8b]) })?;
    let (mut count, mut ended) = (0, false);
    for (i, line) in text.split('\n').enumerate() {
        let wrong = |why| NotMetrics::Line { line: i + 1, why };
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() {
            continue;
        }
        if ended {
            return Err(wrong("something stands behind # EOF"));
        }
        if let Some(comment) = line.strip_prefix('#') {
            ended = comment == " EOF";
            continue;
        }
        take(sample(line).map_err(wrong)?);
        count += 1;
    }
    Ok(count)
}

fn sample(line: &str) -> Result<Sample<'_>, &'static str> {
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')).unwrap_or(line.len());
    let (mut name, mut rest) = line.split_at(end);
    if name.starts_with(|c: char| c.is_ascii_digit()) || (name.is_empty() && !rest.starts_with('{')) {
        return Err("it begins with no name");
    }
    let mut labels = Labels::default();
    rest = rest.trim_start();
    if let Some(inner) = rest.strip_prefix('{') {
        let mut left = inner;
        while let Some(((label, value), after)) = label(left)? {
            if label.is_empty() {
                let Cow::Borrowed(quoted) = value else { return Err("a name with escapes") };
                if !name.is_empty() {
                    return Err("a label without a name");
                }
                name = quoted;
            }
            left = after;
        }
        labels = Labels(&inner[..inner.len() - left.len()]);
        rest = left.trim_start().strip_prefix('}').ok_or("its braces don't end")?;
    }
    if name.is_empty() {
        return Err("it has no name");
    }
    let mut words = rest.split_ascii_whitespace();
    let value = words.next().ok_or("it has no value")?.parse().map_err(|_| "its value is no number")?;
    match words.next() {
        None | Some("#") => {}
        Some(stamp) if stamp.parse::<f64>().is_ok() && words.next().is_none_or(|w| w == "#") => {}
        Some(_) => return Err("what follows its value is no time"),
    }
    Ok(Sample { name, labels, value })
}

type Label<'a> = ((&'a str, Cow<'a, str>), &'a str);

/// The first label and what comes after it (and after its comma); `None` where the braces end. A name in quotes alone has an empty key.
fn label(text: &str) -> Result<Option<Label<'_>>, &'static str> {
    let text = text.trim_start();
    if text.is_empty() || text.starts_with('}') {
        return Ok(None);
    }
    let (first, name, rest) = match text.strip_prefix('"') {
        Some(_) => {
            let (quoted, rest) = quoted(text)?;
            (Some(quoted), "", rest.trim_start())
        }
        None => {
            let end = text.find(['=', ',', '}', '"']).ok_or("a label without a value")?;
            (None, text[..end].trim_end(), &text[end..])
        }
    };
    let (name, value, rest) = match (rest.strip_prefix('='), first) {
        (Some(rest), None) if !name.is_empty() => {
            let (value, rest) = quoted(rest.trim_start())?;
            (name, value, rest)
        }
        // A label whose name is in quotes.
        (Some(rest), Some(Cow::Borrowed(name))) => {
            let (value, rest) = quoted(rest.trim_start())?;
            (name, value, rest)
        }
        (None, Some(value)) => ("", value, rest),
        _ => return Err("a label without a value"),
    };
    let rest = rest.trim_start();
    match rest.strip_prefix(',') {
        Some(rest) => Ok(Some(((name, value), rest))),
        None if rest.starts_with('}') => Ok(Some(((name, value), rest))),
        // Inside a sample that was read already, the text ends where the braces did.
        None if rest.is_empty() => Ok(Some(((name, value), rest))),
        None => Err("labels without a comma between them"),
    }
}

/// What stands in quotes, with `\\`, `\"` and `\n` resolved, and what follows.
fn quoted(text: &str) -> Result<(Cow<'_, str>, &str), &'static str> {
    let inner = text.strip_prefix('"').ok_or("a label's value without quotes")?;
    let end = memchr::memchr2(b'"', b'\\', inner.as_bytes()).ok_or("a label's value that doesn't end")?;
    if inner.as_bytes()[end] == b'"' {
        return Ok((Cow::Borrowed(&inner[..end]), &inner[end + 1..]));
    }
    let mut value = String::new();
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((Cow::Owned(value), &inner[at + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, c @ ('"' | '\\'))) => value.push(c),
                // As Prometheus does: what isn't an escape stands for itself.
                Some((_, c)) => value.extend(['\\', c]),
                None => break,
            },
            c => value.push(c),
        }
    }
    Err("a label's value that doesn't end")
}
