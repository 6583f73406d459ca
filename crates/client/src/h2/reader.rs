//! The server's side of a connection: its frames, and what they mean for the response that is waited for.

use super::frame::{Code, Frame, HEAD, LARGEST, USUAL_LENGTH, flag, kind, number, setting};
use super::hpack::{self, Wrong};
use super::response::Fields;
use super::session::{Goodbye, HEAD_LIMIT, Phase, Session};
use crate::http::{Part, Stop, quote, take};

/// How far reading has come.
#[derive(Debug, Default)]
pub(super) struct Reading {
    at: At,
    /// The front of a frame, or of one that must be whole to be read. Empty otherwise.
    partial: Vec<u8>,
    /// A header block that goes on in the next frame.
    block: Option<Block>,
    decoder: hpack::Decoder,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Head,
    /// The byte that says how much of a body's frame is padding.
    PadLength(Frame),
    /// In a body's frame: bytes left, padding after them, and whether the body ends there.
    Data { left: u32, pad: u32, ends: bool },
    /// In a frame that is read whole.
    Whole(Frame),
    /// So many bytes mean nothing to us.
    Skip(u32),
    /// The response had no body, and its head has been handed out.
    End,
}

#[derive(Debug)]
struct Block {
    bytes: Vec<u8>,
    /// What it counts towards the limit: its frames' fronts too, so that empty ones come to an end.
    weight: usize,
    ends: bool,
}

/// Half of the window that the server has been given: it gets more when so much is used up.
const HALF: u32 = 1 << 30;

/// What can be wrong with a header block.
enum Spoilt {
    Compression(Wrong),
    Malformed(String),
}

impl From<Wrong> for Spoilt {
    fn from(wrong: Wrong) -> Spoilt {
        Spoilt::Compression(wrong)
    }
}

impl Session {
    /// Takes one part off the front of `input`. `None`: more bytes are needed, and `input` is used up.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Part<'a>>, Stop> {
        loop {
            match self.reading.at {
                At::Head => {
                    let Some(frame) = self.front(input) else { return Ok(None) };
                    self.enter(frame, input)?;
                }
                At::Data { left: 0, pad: 0, ends } => {
                    self.reading.at = At::Head;
                    if ends {
                        return self.end().map(Some);
                    }
                }
                At::End => return self.end().map(Some),
                At::Whole(frame) => {
                    let Some(part) = self.gather(frame, input)? else { return Ok(None) };
                    if let Some(part) = part {
                        return Ok(Some(part));
                    }
                }
                At::Skip(0) => self.reading.at = At::Head,
                _ if input.is_empty() => return Ok(None),
                At::PadLength(frame) => {
                    let pad = u32::from(take(input, 1)[0]);
                    self.enter_data(frame, Some(pad))?;
                }
                At::Data { left: 0, pad, ends } => {
                    let padding = take(input, u64::from(pad));
                    self.reading.at = At::Data { left: 0, pad: pad - padding.len() as u32, ends };
                }
                At::Data { left, pad, ends } => {
                    let body = take(input, u64::from(left));
                    self.reading.at = At::Data { left: left - body.len() as u32, pad, ends };
                    return Ok(Some(Part::Body(body)));
                }
                At::Skip(left) => {
                    let skipped = take(input, u64::from(left));
                    self.reading.at = At::Skip(left - skipped.len() as u32);
                }
            }
        }
    }

    /// Takes bytes that belong to no response; whether the connection may still be used.
    pub fn between(&mut self, mut bytes: &[u8]) -> bool {
        self.broken |= !matches!(self.next(&mut bytes), Ok(None));
        self.keep_alive()
    }

    fn front(&mut self, input: &mut &[u8]) -> Option<Frame> {
        let partial = &mut self.reading.partial;
        if partial.is_empty()
            && let Some((front, rest)) = input.split_first_chunk::<HEAD>()
        {
            *input = rest;
            return Some(Frame::read(front));
        }
        partial.extend_from_slice(take(input, (HEAD - partial.len()) as u64));
        let front: [u8; HEAD] = partial.as_slice().try_into().ok()?;
        partial.clear();
        Some(Frame::read(&front))
    }

    /// A frame begins; `rest` is what has come after its front.
    fn enter(&mut self, frame: Frame, rest: &[u8]) -> Result<(), Stop> {
        if !self.peer.settled && (frame.kind != kind::SETTINGS || frame.has(flag::ACK)) {
            self.broken = true;
            let bytes = [&frame.bytes(), &rest[..rest.len().min(HEAD_LIMIT)]].concat();
            return Err(Stop::Bad(format!("the server does not speak HTTP/2: it answered {}", quote(&bytes))));
        }
        if frame.length > USUAL_LENGTH {
            let what = format!("a frame of {} bytes, where {USUAL_LENGTH} are the most", frame.length);
            return Err(self.violation(Code::FRAME_SIZE, what));
        }
        let goes_on = frame.kind == kind::CONTINUATION && frame.stream == self.stream.id;
        if self.reading.block.is_some() != goes_on {
            return Err(self.violation(Code::PROTOCOL, "a header block that does not hang together"));
        }
        match frame.kind {
            kind::DATA if frame.has(flag::PADDED) && frame.length == 0 => {
                Err(self.violation(Code::FRAME_SIZE, "a padded frame without its padding"))
            }
            kind::DATA if frame.has(flag::PADDED) => {
                self.reading.at = At::PadLength(frame);
                Ok(())
            }
            kind::DATA => self.enter_data(frame, None),
            kind::HEADERS..=kind::CONTINUATION => {
                self.reading.at = At::Whole(frame);
                Ok(())
            }
            _ => {
                self.reading.at = At::Skip(frame.length);
                Ok(())
            }
        }
    }

    /// A body's frame begins, with so much padding if it is padded.
    fn enter_data(&mut self, frame: Frame, padding: Option<u32>) -> Result<(), Stop> {
        let current = self.of_current(frame)?;
        match self.stream.phase {
            Phase::Body if current => {}
            Phase::Done => return Err(self.violation(Code::STREAM_CLOSED, "a body after its end")),
            _ if !current => return Err(self.violation(Code::STREAM_CLOSED, "a body after its end")),
            _ => return Err(self.violation(Code::PROTOCOL, "a body before its head")),
        }
        let pad = padding.unwrap_or(0);
        let Some(left) = (frame.length - u32::from(padding.is_some())).checked_sub(pad) else {
            return Err(self.violation(Code::PROTOCOL, "a frame with more padding than bytes"));
        };
        self.give_leave(frame.length);
        self.stream.received += u64::from(left);
        if self.stream.length.is_some_and(|length| self.stream.received > length) {
            return Err(self.violation(Code::PROTOCOL, "the body is longer than its content-length"));
        }
        self.reading.at = At::Data { left, pad, ends: frame.has(flag::END_STREAM) };
        Ok(())
    }

    /// Long before a window is used up, the server gets another.
    fn give_leave(&mut self, used: u32) {
        self.taken += used;
        if self.taken >= HALF {
            let taken = std::mem::take(&mut self.taken);
            self.allow(0, taken);
        }
        self.stream.taken += used;
        if self.stream.taken >= HALF {
            let taken = std::mem::take(&mut self.stream.taken);
            self.allow(self.stream.id, taken);
        }
    }

    /// The response is over.
    fn end(&mut self) -> Result<Part<'static>, Stop> {
        self.reading.at = At::Head;
        let received = self.stream.received;
        if let Some(length) = self.stream.length.filter(|&length| length != received) {
            let what = format!("the body ends after {received} of {length} bytes");
            return Err(self.violation(Code::PROTOCOL, what));
        }
        self.stream.phase = Phase::Done;
        self.forget_rest();
        Ok(Part::End)
    }

    /// Waits for all of a frame. `None`: more bytes are needed. Inner `None`: it was no part of a response.
    fn gather(&mut self, frame: Frame, input: &mut &[u8]) -> Result<Option<Option<Part<'static>>>, Stop> {
        let length = frame.length as usize;
        if self.reading.partial.is_empty() && input.len() >= length {
            self.reading.at = At::Head;
            return self.whole(frame, take(input, u64::from(frame.length))).map(Some);
        }
        let missing = length - self.reading.partial.len();
        self.reading.partial.extend_from_slice(take(input, missing as u64));
        if self.reading.partial.len() < length {
            return Ok(None);
        }
        self.reading.at = At::Head;
        let mut payload = std::mem::take(&mut self.reading.partial);
        let part = self.whole(frame, &payload);
        payload.clear();
        self.reading.partial = payload;
        part.map(Some)
    }

    fn whole(&mut self, frame: Frame, payload: &[u8]) -> Result<Option<Part<'static>>, Stop> {
        let right_length = match frame.kind {
            kind::PRIORITY => payload.len() == 5,
            kind::RST_STREAM | kind::WINDOW_UPDATE => payload.len() == 4,
            kind::SETTINGS if frame.has(flag::ACK) => payload.is_empty(),
            kind::SETTINGS => payload.len().is_multiple_of(6),
            kind::PING => payload.len() == 8,
            kind::GOAWAY => payload.len() >= 8,
            _ => true,
        };
        if !right_length {
            return Err(self.violation(Code::FRAME_SIZE, "a frame of a wrong length"));
        }
        let of_connection = matches!(frame.kind, kind::SETTINGS | kind::PING | kind::GOAWAY);
        if frame.kind != kind::WINDOW_UPDATE && of_connection != (frame.stream == 0) {
            return Err(self.violation(Code::PROTOCOL, "a frame on the wrong stream"));
        }
        match frame.kind {
            kind::HEADERS => return self.head(frame, payload),
            kind::CONTINUATION => return self.head_goes_on(frame, payload),
            kind::RST_STREAM => self.reset(frame, Code(number(payload, 0)))?,
            kind::SETTINGS if !frame.has(flag::ACK) => self.settings(payload)?,
            kind::PING if !frame.has(flag::ACK) => self.answer(kind::PING, flag::ACK, payload)?,
            kind::GOAWAY => self.goodbye(payload)?,
            kind::WINDOW_UPDATE => self.more_room(frame, number(payload, 0) & LARGEST)?,
            kind::PUSH_PROMISE => {
                return Err(self.violation(Code::PROTOCOL, "an answer that was not asked for (PUSH_PROMISE)"));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Whether a frame belongs to the exchange under way; otherwise it belongs to one before.
    fn of_current(&mut self, frame: Frame) -> Result<bool, Stop> {
        if frame.stream == 0 || frame.stream > self.stream.id || frame.stream.is_multiple_of(2) {
            return Err(self.violation(Code::PROTOCOL, "a frame of a stream that was never opened"));
        }
        Ok(frame.stream == self.stream.id)
    }

    fn head(&mut self, frame: Frame, payload: &[u8]) -> Result<Option<Part<'static>>, Stop> {
        if !self.of_current(frame)? || self.stream.phase == Phase::Done {
            return Err(self.violation(Code::STREAM_CLOSED, "a head after the response's end"));
        }
        if self.stream.phase == Phase::Unanswered {
            self.stream.phase = Phase::Head;
        }
        let Some(fragment) = fragment(frame, payload) else {
            return Err(self.violation(Code::PROTOCOL, "a frame with more padding than bytes"));
        };
        let ends = frame.has(flag::END_STREAM);
        if frame.has(flag::END_HEADERS) {
            return self.fields(fragment, ends);
        }
        self.reading.block = Some(Block { bytes: fragment.to_vec(), weight: fragment.len(), ends });
        Ok(None)
    }

    fn head_goes_on(&mut self, frame: Frame, payload: &[u8]) -> Result<Option<Part<'static>>, Stop> {
        let Some(mut block) = self.reading.block.take() else { return Ok(None) };
        block.bytes.extend_from_slice(payload);
        block.weight += payload.len() + HEAD;
        if block.weight > HEAD_LIMIT {
            let what = format!("the response's head is longer than {HEAD_LIMIT} bytes");
            return Err(self.violation(Code::ENHANCE_YOUR_CALM, what));
        }
        if frame.has(flag::END_HEADERS) {
            return self.fields(&block.bytes, block.ends);
        }
        self.reading.block = Some(block);
        Ok(None)
    }

    /// A header block is whole: a head, an interim one, or a trailer.
    fn fields(&mut self, block: &[u8], ends: bool) -> Result<Option<Part<'static>>, Stop> {
        let mut fields = Fields::default();
        let read = self
            .reading
            .decoder
            .decode(block, |name, value| fields.add(name, value, HEAD_LIMIT).map_err(Spoilt::Malformed));
        match read {
            Ok(()) => {}
            Err(Spoilt::Compression(what)) => return Err(self.violation(Code::COMPRESSION, what)),
            Err(Spoilt::Malformed(what)) => return Err(self.violation(Code::PROTOCOL, what)),
        }
        if self.stream.phase == Phase::Body {
            if !ends || !fields.is_trailer() {
                return Err(self.violation(Code::PROTOCOL, "a second head within a response"));
            }
            return self.end().map(Some);
        }
        let length = fields.length;
        let head = fields.head().map_err(|what| self.violation(Code::PROTOCOL, what))?;
        if head.status < 200 {
            return match ends {
                false => Ok(None),
                true => Err(self.violation(Code::PROTOCOL, "a response that ends with an interim head")),
            };
        }
        self.stream.phase = Phase::Body;
        self.stream.length = length.filter(|_| !matches!(head.status, 204 | 304));
        if ends {
            self.reading.at = At::End;
        }
        Ok(Some(Part::Head(head)))
    }

    fn reset(&mut self, frame: Frame, code: Code) -> Result<(), Stop> {
        if !self.of_current(frame)? || self.stream.phase == Phase::Done {
            return Ok(());
        }
        self.broken = true;
        if code == Code::REFUSED_STREAM && self.stream.phase == Phase::Unanswered {
            return Err(Stop::Refused(format!("the server refused the request ({code})")));
        }
        Err(Stop::Reset(format!("the server broke the answer off ({code})")))
    }

    fn settings(&mut self, payload: &[u8]) -> Result<(), Stop> {
        self.peer.settled = true;
        for setting in payload.chunks_exact(6) {
            let (name, value) = (u16::from_be_bytes([setting[0], setting[1]]), number(setting, 2));
            match name {
                setting::HEADER_TABLE_SIZE => self.table_too_large |= (value as usize) < hpack::TABLE_SIZE,
                setting::ENABLE_PUSH if value != 0 => {
                    return Err(self.violation(Code::PROTOCOL, "a server that says it takes pushes"));
                }
                setting::MAX_CONCURRENT_STREAMS => self.peer.streams = value,
                setting::INITIAL_WINDOW_SIZE if value > LARGEST => {
                    return Err(self.violation(Code::FLOW_CONTROL, "a window larger than there can be"));
                }
                setting::INITIAL_WINDOW_SIZE => {
                    self.stream.window += i64::from(value) - self.peer.window;
                    self.peer.window = i64::from(value);
                }
                setting::MAX_FRAME_SIZE if !(USUAL_LENGTH..1 << 24).contains(&value) => {
                    return Err(self.violation(Code::PROTOCOL, "a limit on frames that is none"));
                }
                setting::MAX_FRAME_SIZE => self.peer.longest_frame = value,
                _ => {}
            }
        }
        self.answer(kind::SETTINGS, flag::ACK, &[])?;
        self.send_on();
        Ok(())
    }

    fn goodbye(&mut self, payload: &[u8]) -> Result<(), Stop> {
        let (last, code) = (number(payload, 0) & LARGEST, Code(number(payload, 4)));
        let words: String = String::from_utf8_lossy(&payload[8..]).chars().take(100).collect();
        self.goodbye = Some(Goodbye { code, words: words.escape_debug().to_string().into() });
        if self.stream.phase != Phase::Done && last < self.stream.id {
            return Err(Stop::Refused(self.farewell().unwrap_or_default()));
        }
        Ok(())
    }

    fn more_room(&mut self, frame: Frame, more: u32) -> Result<(), Stop> {
        let of_stream = frame.stream != 0;
        if of_stream && !self.of_current(frame)? {
            return Ok(());
        }
        if more == 0 {
            return Err(self.violation(Code::PROTOCOL, "a window that grows by nothing"));
        }
        let window = if of_stream { &mut self.stream.window } else { &mut self.window };
        *window += i64::from(more);
        if *window > i64::from(LARGEST) {
            return Err(self.violation(Code::FLOW_CONTROL, "a window larger than there can be"));
        }
        self.send_on();
        Ok(())
    }
}

/// What of a head's frame belongs to its block: not the padding, nor the old-fashioned priority. `None`: there is too much padding.
fn fragment(frame: Frame, payload: &[u8]) -> Option<&[u8]> {
    let (pad, mut rest) = match frame.has(flag::PADDED) {
        true => payload.split_first().map(|(&pad, rest)| (usize::from(pad), rest))?,
        false => (0, payload),
    };
    if frame.has(flag::PRIORITY) {
        rest = rest.get(5..)?;
    }
    rest.len().checked_sub(pad).map(|length| &rest[..length])
}
