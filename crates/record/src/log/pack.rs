//! A row in few bytes: numbers as LEB128, moments and chunks as differences. The numbers given to each variant are the file format:
//! new ones are added, old ones never change.

use crate::{Blame, Cause, Chunks, Counts, End, Finish, Limit, Moment, Moments, Net, Phase, Row, StampSource, Why};
use tailbound_clock::Time;

pub(super) struct Output<'a>(pub &'a mut Vec<u8>);

impl Output<'_> {
    fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    /// A difference of either sign: zigzag.
    fn signed(&mut self, n: i64) {
        self.number(((n << 1) ^ (n >> 63)) as u64);
    }

    /// 0 is absent, so that a count of 0 stays apart from none.
    fn optional(&mut self, n: Option<u32>) {
        self.number(n.map_or(0, |n| u64::from(n) + 1));
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }
}

pub(super) struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return None;
            }
            n |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }

    fn narrow<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }

    fn signed(&mut self) -> Option<i64> {
        let n = self.number()?;
        Some((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    fn optional(&mut self) -> Option<Option<u32>> {
        match self.number()? {
            0 => Some(None),
            n => Some(Some(u32::try_from(n - 1).ok()?)),
        }
    }

    fn text(&mut self) -> Option<Box<str>> {
        let length = self.narrow()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(std::str::from_utf8(text).ok()?.into())
    }
}

pub(super) fn row(out: &mut Output<'_>, row: &Row) {
    out.number(row.id);
    out.number(u64::from(row.class));
    out.number(u64::from(row.worker));
    let base = moments(out, &row.at);
    let tokens = &row.tokens;
    for count in [
        tokens.prompt_asked,
        tokens.prompt_server,
        tokens.cached_server,
        tokens.output_asked,
        tokens.output_server,
        tokens.reasoning_server,
        tokens.output_tokenized,
    ] {
        out.optional(count);
    }
    chunks(out, &row.chunks, base);
    end(out, &row.end);
    out.number(match row.stamps {
        StampSource::Kernel => 0,
        StampSource::Mixed => 1,
        StampSource::User => 2,
        StampSource::Virtual => 3,
    });
    let net = &row.net;
    out.number(u64::from(net.status));
    out.number(u64::from(net.reused));
    out.number(u64::from(net.retries));
    out.number(u64::from(net.reads));
    out.number(net.body_bytes);
    match &row.text {
        None => out.number(0),
        Some(text) => {
            out.number(1);
            out.text(text);
        }
    }
}

pub(super) fn unrow(input: &mut Input<'_>) -> Option<Row> {
    let mut row = Row::new(input.number()?);
    row.class = input.narrow()?;
    row.worker = input.narrow()?;
    let base;
    (row.at, base) = unmoments(input)?;
    row.tokens = Counts {
        prompt_asked: input.optional()?,
        prompt_server: input.optional()?,
        cached_server: input.optional()?,
        output_asked: input.optional()?,
        output_server: input.optional()?,
        reasoning_server: input.optional()?,
        output_tokenized: input.optional()?,
    };
    row.chunks = unchunks(input, base)?;
    row.end = unend(input)?;
    row.stamps = match input.number()? {
        0 => StampSource::Kernel,
        1 => StampSource::Mixed,
        2 => StampSource::User,
        3 => StampSource::Virtual,
        _ => return None,
    };
    row.net = Net {
        status: input.narrow()?,
        reused: input.number()? != 0,
        retries: input.narrow()?,
        reads: input.narrow()?,
        body_bytes: input.number()?,
    };
    row.text = match input.number()? {
        0 => None,
        1 => Some(input.text()?),
        _ => return None,
    };
    Some(row)
}

/// Which of them happened, then each as the difference to the one before. Returns the last.
fn moments(out: &mut Output<'_>, at: &Moments) -> u64 {
    let happened = Moment::ALL.iter().filter(|m| at.get(**m).is_some()).fold(0u64, |bits, m| bits | 1 << *m as u8);
    out.number(happened);
    let mut last = 0u64;
    for time in Moment::ALL.iter().filter_map(|m| at.get(*m)) {
        out.signed(time.ns().wrapping_sub(last) as i64);
        last = time.ns();
    }
    last
}

fn unmoments(input: &mut Input<'_>) -> Option<(Moments, u64)> {
    let happened = input.number()?;
    if happened >> Moment::COUNT != 0 {
        return None;
    }
    let mut at = Moments::NONE;
    let mut last = 0u64;
    for moment in Moment::ALL.into_iter().filter(|m| happened >> *m as u8 & 1 == 1) {
        last = last.wrapping_add(input.signed()? as u64);
        at.set(moment, Time(last));
    }
    Some((at, last))
}

fn chunks(out: &mut Output<'_>, chunks: &Chunks, base: u64) {
    out.number(chunks.len() as u64);
    let (mut at, mut read) = (base, 0u32);
    for chunk in chunks.as_slice() {
        out.signed(chunk.at.ns().wrapping_sub(at) as i64);
        out.signed(i64::from(chunk.read) - i64::from(read));
        out.number(u64::from(chunk.tokens) << 1 | u64::from(chunk.visible));
        (at, read) = (chunk.at.ns(), chunk.read);
    }
}

fn unchunks(input: &mut Input<'_>, base: u64) -> Option<Chunks> {
    let count: usize = input.narrow()?;
    // Each takes three bytes at least: a count beyond that is damage.
    if count > input.0.len() / 3 {
        return None;
    }
    let mut chunks = Chunks::with_capacity(count);
    let (mut at, mut read) = (base, 0i64);
    for _ in 0..count {
        at = at.wrapping_add(input.signed()? as u64);
        read = read.checked_add(input.signed()?)?;
        let last = input.number()?;
        chunks.push(Time(at), u32::try_from(read).ok()?, u16::try_from(last >> 1).ok()?, last & 1 == 1);
    }
    Some(chunks)
}

fn end(out: &mut Output<'_>, end: &End) {
    match end {
        End::Done(finish) => {
            out.number(0);
            out.number(match finish {
                Finish::Stop => 0,
                Finish::Length => 1,
                Finish::ToolCalls => 2,
                Finish::ContentFilter => 3,
                Finish::Other => 4,
                Finish::Unstated => 5,
            });
        }
        End::Failed { phase, blame, cause: why, detail } => {
            out.number(1);
            out.number(match phase {
                Phase::Resolve => 0,
                Phase::Connect => 1,
                Phase::Tls => 2,
                Phase::Write => 3,
                Phase::Headers => 4,
                Phase::FirstToken => 5,
                Phase::Stream => 6,
            });
            out.number(match blame {
                Blame::Server => 0,
                Blame::Network => 1,
                Blame::Client => 2,
            });
            cause(out, *why);
            out.text(detail);
        }
        End::Cancelled(reason) => {
            out.number(2);
            why(out, *reason);
        }
        End::NeverSent(reason) => {
            out.number(3);
            why(out, *reason);
        }
    }
}

fn unend(input: &mut Input<'_>) -> Option<End> {
    Some(match input.number()? {
        0 => End::Done(match input.number()? {
            0 => Finish::Stop,
            1 => Finish::Length,
            2 => Finish::ToolCalls,
            3 => Finish::ContentFilter,
            4 => Finish::Other,
            5 => Finish::Unstated,
            _ => return None,
        }),
        1 => End::Failed {
            phase: match input.number()? {
                0 => Phase::Resolve,
                1 => Phase::Connect,
                2 => Phase::Tls,
                3 => Phase::Write,
                4 => Phase::Headers,
                5 => Phase::FirstToken,
                6 => Phase::Stream,
                _ => return None,
            },
            blame: match input.number()? {
                0 => Blame::Server,
                1 => Blame::Network,
                2 => Blame::Client,
                _ => return None,
            },
            cause: uncause(input)?,
            detail: input.text()?,
        },
        2 => End::Cancelled(unwhy(input)?),
        3 => End::NeverSent(unwhy(input)?),
        _ => return None,
    })
}

fn cause(out: &mut Output<'_>, cause: Cause) {
    let (code, more) = match cause {
        Cause::NoAddress => (0, None),
        Cause::Refused => (1, None),
        Cause::Reset => (2, None),
        Cause::Tls => (3, None),
        Cause::Timeout(limit) => (4, Some(limit_code(limit))),
        Cause::Status(status) => (5, Some(u64::from(status))),
        Cause::Protocol => (6, None),
        Cause::ErrorObject => (7, None),
        Cause::EndedEarly => (8, None),
        Cause::NoTokens => (9, None),
        Cause::LocalLimit => (10, None),
        Cause::Io => (11, None),
    };
    out.number(code);
    if let Some(more) = more {
        out.number(more);
    }
}

fn limit_code(limit: Limit) -> u64 {
    match limit {
        Limit::Connect => 0,
        Limit::FirstToken => 1,
        Limit::Gap => 2,
        Limit::Request => 3,
    }
}

fn uncause(input: &mut Input<'_>) -> Option<Cause> {
    Some(match input.number()? {
        0 => Cause::NoAddress,
        1 => Cause::Refused,
        2 => Cause::Reset,
        3 => Cause::Tls,
        4 => Cause::Timeout(match input.number()? {
            0 => Limit::Connect,
            1 => Limit::FirstToken,
            2 => Limit::Gap,
            3 => Limit::Request,
            _ => return None,
        }),
        5 => Cause::Status(input.narrow()?),
        6 => Cause::Protocol,
        7 => Cause::ErrorObject,
        8 => Cause::EndedEarly,
        9 => Cause::NoTokens,
        10 => Cause::LocalLimit,
        11 => Cause::Io,
        _ => return None,
    })
}

fn why(out: &mut Output<'_>, why: Why) {
    out.number(match why {
        Why::Interrupted => 0,
        Why::Duration => 1,
        Why::Rule => 2,
        Why::Planned => 3,
        Why::Session => 4,
    });
}

fn unwhy(input: &mut Input<'_>) -> Option<Why> {
    Some(match input.number()? {
        0 => Why::Interrupted,
        1 => Why::Duration,
        2 => Why::Rule,
        3 => Why::Planned,
        4 => Why::Session,
        _ => return None,
    })
}
