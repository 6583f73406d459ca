//! A one-pass JSON reader for the few fields that matter in a chunk: no tree, no allocation.
//!
//! It is as strict as RFC 8259 about structure, and lenient where the field is: bytes that aren't UTF-8 and lone surrogates are
//! taken (they become U+FFFD if anybody asks for the text).

/// The bytes are not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad;

type Res<T> = Result<T, Bad>;

/// As deep as `serde_json` goes.
const MAX_DEPTH: u8 = 127;

/// A cursor over one JSON text.
pub(crate) struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u8,
}

/// A string as it stands between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Str<'a> {
    raw: &'a [u8],
    escaped: bool,
}

/// The value of a field of interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    /// Not there, or null.
    #[default]
    Absent,
    /// A string.
    Str(Str<'a>),
    /// Anything else, as it stands.
    Other(&'a [u8]),
}

impl<'a> Str<'a> {
    pub(crate) fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// What stands between the quotes.
    pub(crate) fn raw(self) -> &'a [u8] {
        self.raw
    }

    /// A string from what stands between its quotes, if that can stand there.
    #[inline]
    pub(crate) fn of_body(raw: &'a [u8]) -> Option<Str<'a>> {
        let mut at = 0;
        let mut escaped = false;
        while let Some(special) = next_special(raw, at) {
            if raw[special] != b'\\' {
                return None;
            }
            escaped = true;
            at = escape_end(raw, special).ok()?;
        }
        Some(Str { raw, escaped })
    }

    pub(crate) fn is(self, other: &str) -> bool {
        if !self.escaped {
            return self.raw == other.as_bytes();
        }
        self.decode() == other
    }

    /// Appends the text.
    pub(crate) fn push_to(self, out: &mut String) {
        match std::str::from_utf8(self.raw) {
            Ok(plain) if !self.escaped => out.push_str(plain),
            _ => unescape(&String::from_utf8_lossy(self.raw), out),
        }
    }

    /// The text.
    pub(crate) fn decode(self) -> String {
        let mut out = String::with_capacity(self.raw.len());
        self.push_to(&mut out);
        out
    }

    /// The bytes, if they need no unescaping.
    pub(crate) fn plain(self) -> Option<&'a [u8]> {
        (!self.escaped).then_some(self.raw)
    }
}

impl<'a> Field<'a> {
    /// The string, if it is one.
    pub(crate) fn str(self) -> Option<Str<'a>> {
        match self {
            Field::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The string, if it is one with something in it.
    pub(crate) fn filled(self) -> Option<Str<'a>> {
        self.str().filter(|s| !s.is_empty())
    }
}

impl<'a> Scan<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Scan<'a> {
        Scan { bytes, at: 0, depth: 0 }
    }

    /// Nothing but white space is left.
    pub(crate) fn end(&mut self) -> Res<()> {
        if self.peek().is_none() { Ok(()) } else { Err(Bad) }
    }

    /// The next byte that isn't white space; the cursor stands on it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Walks an object. `on` gets each key and must consume its value.
    pub(crate) fn object(&mut self, mut on: impl FnMut(&[u8], &mut Scan<'a>) -> Res<()>) -> Res<()> {
        self.open(b'{')?;
        if self.peek() == Some(b'}') {
            return self.close();
        }
        loop {
            let key = self.string()?;
            if self.peek() != Some(b':') {
                return Err(Bad);
            }
            self.at += 1;
            match key.plain() {
                Some(plain) => on(plain, self)?,
                None => on(key.decode().as_bytes(), self)?,
            }
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => return self.close(),
                _ => return Err(Bad),
            }
        }
    }

    /// Walks an array. `on` must consume each element.
    pub(crate) fn array(&mut self, mut on: impl FnMut(&mut Scan<'a>) -> Res<()>) -> Res<()> {
        self.open(b'[')?;
        if self.peek() == Some(b']') {
            return self.close();
        }
        loop {
            on(self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => return self.close(),
                _ => return Err(Bad),
            }
        }
    }

    /// Walks an object if the value is one, else passes over it.
    pub(crate) fn object_or_skip(&mut self, on: impl FnMut(&[u8], &mut Scan<'a>) -> Res<()>) -> Res<()> {
        if self.peek() == Some(b'{') { self.object(on) } else { self.skip() }
    }

    /// Walks an array if the value is one, else passes over it.
    pub(crate) fn array_or_skip(&mut self, on: impl FnMut(&mut Scan<'a>) -> Res<()>) -> Res<()> {
        if self.peek() == Some(b'[') { self.array(on) } else { self.skip() }
    }

    fn open(&mut self, bracket: u8) -> Res<()> {
        if self.peek() != Some(bracket) || self.depth == MAX_DEPTH {
            return Err(Bad);
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    fn close(&mut self) -> Res<()> {
        self.depth -= 1;
        self.at += 1;
        Ok(())
    }

    /// Passes over a value of any kind.
    pub(crate) fn skip(&mut self) -> Res<()> {
        match self.peek().ok_or(Bad)? {
            b'"' => self.string().map(drop),
            b'{' => self.object(|_, scan| scan.skip()),
            b'[' => self.array(Scan::skip),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number().map(drop),
        }
    }

    /// Passes over a value and says where it stood.
    pub(crate) fn raw(&mut self) -> Res<&'a [u8]> {
        self.peek();
        let start = self.at;
        self.skip()?;
        Ok(&self.bytes[start..self.at])
    }

    /// A value of a field that is normally a string.
    pub(crate) fn field(&mut self) -> Res<Field<'a>> {
        match self.peek() {
            Some(b'"') => self.string().map(Field::Str),
            Some(b'n') => self.literal(b"null").map(|()| Field::Absent),
            _ => self.raw().map(Field::Other),
        }
    }

    /// Passes over a value and says whether it was a string, an array or an object with something in it.
    pub(crate) fn filled(&mut self) -> Res<bool> {
        let raw = self.raw()?;
        Ok(match raw.first() {
            Some(b'"') => raw.len() > 2,
            Some(b'[' | b'{') => !matches!(Scan { bytes: raw, at: 1, depth: 0 }.peek(), Some(b']' | b'}')),
            _ => false,
        })
    }

    /// How many elements an array has; `None` if it is no array.
    pub(crate) fn length(&mut self) -> Res<Option<u32>> {
        if self.peek() != Some(b'[') {
            return self.skip().map(|()| None);
        }
        let mut length = 0u32;
        self.array(|scan| {
            length = length.saturating_add(1);
            scan.skip()
        })?;
        Ok(Some(length))
    }

    /// A boolean that is true.
    pub(crate) fn is_true(&mut self) -> Res<bool> {
        if self.peek() == Some(b't') {
            return self.literal(b"true").map(|()| true);
        }
        self.skip().map(|()| false)
    }

    /// A count: a number that is at least zero, rounded down; `None` for anything else.
    pub(crate) fn count(&mut self) -> Res<Option<u32>> {
        match self.peek() {
            Some(b'0'..=b'9') => {}
            _ => return self.skip().map(|()| None),
        }
        let digits = self.number()?;
        if let Some(count) = small_integer(digits) {
            return Ok(Some(count));
        }
        Ok(std::str::from_utf8(digits).ok().and_then(|text| text.parse::<f64>().ok()).map(|number| number as u32))
    }

    /// A number of any kind; `None` for anything else.
    pub(crate) fn float(&mut self) -> Res<Option<f64>> {
        match self.peek() {
            Some(b'0'..=b'9' | b'-') => {}
            _ => return self.skip().map(|()| None),
        }
        Ok(std::str::from_utf8(self.number()?).ok().and_then(|text| text.parse().ok()))
    }

    fn literal(&mut self, word: &[u8]) -> Res<()> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(Bad);
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Res<&'a [u8]> {
        let start = self.at;
        if self.here() == Some(b'-') {
            self.at += 1;
        }
        match self.here() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.here() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.here() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.here() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(&self.bytes[start..self.at])
    }

    fn here(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn digits(&mut self) -> Res<()> {
        let start = self.at;
        while self.here().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(Bad) }
    }

    /// A string, its quotes left out.
    pub(crate) fn string(&mut self) -> Res<Str<'a>> {
        if self.peek() != Some(b'"') {
            return Err(Bad);
        }
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            at = next_special(self.bytes, at).ok_or(Bad)?;
            match self.bytes[at] {
                b'"' => {
                    self.at = at + 1;
                    return Ok(Str { raw: &self.bytes[start..at], escaped });
                }
                b'\\' => {
                    escaped = true;
                    at = escape_end(self.bytes, at)?;
                }
                _ => return Err(Bad),
            }
        }
    }
}

fn small_integer(digits: &[u8]) -> Option<u32> {
    if digits.len() > 9 {
        return None;
    }
    digits.iter().try_fold(0u32, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u32::from(byte - b'0')))
}

/// The next quote, backslash or control character at or after `at`, eight bytes at a time.
#[inline]
fn next_special(bytes: &[u8], mut at: usize) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    while let Some(eight) = bytes.get(at..at + 8).and_then(|eight| <[u8; 8]>::try_from(eight).ok()) {
        let word = u64::from_le_bytes(eight);
        // The lowest marked byte is exact: a borrow only disturbs the bytes above a hit.
        let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
        let quote = zero(word ^ (ONES * u64::from(b'"')));
        let slash = zero(word ^ (ONES * u64::from(b'\\')));
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let hits = quote | slash | control;
        if hits != 0 {
            return Some(at + (hits.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20).map(|n| at + n)
}

/// Where the escape that starts at `at` ends.
fn escape_end(bytes: &[u8], at: usize) -> Res<usize> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => match bytes.get(at + 2..at + 6) {
            Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => Ok(at + 6),
            _ => Err(Bad),
        },
        _ => Err(Bad),
    }
}

/// Appends `text` with its escapes resolved; the escapes are known to be well-formed. Lone surrogates become U+FFFD.
fn unescape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(slash) = rest.find('\\') {
        out.push_str(&rest[..slash]);
        rest = &rest[slash + 1..];
        let Some(kind) = rest.chars().next() else { return };
        rest = &rest[kind.len_utf8()..];
        match kind {
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                let (first, after) = hex4(rest);
                rest = after;
                if !(0xD800..0xDC00).contains(&first) {
                    out.push(char::from_u32(first).unwrap_or('\u{FFFD}'));
                    continue;
                }
                let pair = rest.strip_prefix("\\u").map(hex4).filter(|(low, _)| (0xDC00..0xE000).contains(low));
                let Some((low, after)) = pair else {
                    out.push('\u{FFFD}');
                    continue;
                };
                rest = after;
                let joined = 0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00);
                out.push(char::from_u32(joined).unwrap_or('\u{FFFD}'));
            }
            other => out.push(other),
        }
    }
    out.push_str(rest);
}

fn hex4(text: &str) -> (u32, &str) {
    match text.get(..4).and_then(|hex| u32::from_str_radix(hex, 16).ok()) {
        Some(value) => (value, &text[4..]),
        None => (0xFFFD, text),
    }
}
