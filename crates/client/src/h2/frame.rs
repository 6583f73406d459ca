//! Frames: nine bytes that say what follows (RFC 9113, 4.1), and the numbers in them.

use std::fmt;

/// Length of what stands before each frame's payload.
pub(super) const HEAD: usize = 9;
/// The longest payload without any agreement (RFC 9113, 4.2).
pub(super) const USUAL_LENGTH: u32 = 16_384;
/// The largest window, and the largest number of a stream.
pub(super) const LARGEST: u32 = i32::MAX as u32;
/// The window without any agreement (RFC 9113, 6.9.2).
pub(super) const USUAL_WINDOW: u32 = 65_535;

/// Kinds of frames (RFC 9113, 6).
pub(super) mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags; which mean something depends on the kind.
pub(super) mod flag {
    pub const ACK: u8 = 1;
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 0x20;
}

/// Settings (RFC 9113, 6.5.2).
pub(super) mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// The front of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub length: u32,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl Frame {
    pub fn read(bytes: &[u8; HEAD]) -> Frame {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        let stream = u32::from_be_bytes(stream) & LARGEST;
        Frame { length: u32::from_be_bytes([0, a, b, c]), kind, flags, stream }
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Writes it in front of its payload.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    pub fn bytes(&self) -> [u8; HEAD] {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, d, e, f, g]
    }
}

/// Appends a frame.
pub(super) fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    Frame { length: payload.len() as u32, kind, flags, stream }.put(out);
    out.extend_from_slice(payload);
}

/// Four bytes at `at`; zero where there are none.
pub(super) fn number(payload: &[u8], at: usize) -> u32 {
    payload.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// Why a stream or a connection is ended (RFC 9113, 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(pub u32);

impl Code {
    pub const PROTOCOL: Code = Code(1);
    pub const FLOW_CONTROL: Code = Code(3);
    pub const STREAM_CLOSED: Code = Code(5);
    pub const FRAME_SIZE: Code = Code(6);
    pub const REFUSED_STREAM: Code = Code(7);
    pub const COMPRESSION: Code = Code(9);
    pub const ENHANCE_YOUR_CALM: Code = Code(0xb);
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        match NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "error {:#x}", self.0),
        }
    }
}
