//! The least of a server that speaks HTTP/2, written frame by frame.

use crate::server::stream_of;
use std::io::{Read, Write};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;

/// `:status: 200` and `content-type: text/event-stream`, by the fixed table.
pub const SSE_HEAD: &[u8] = b"\x88\x5f\x11text/event-stream";

/// One connection.
pub struct Peer<'a, S> {
    stream: &'a mut S,
    /// Acknowledgements of settings and pings that have come.
    pub acknowledged: usize,
}

/// A request, whole.
pub struct Asked {
    pub id: u32,
    pub head: Vec<u8>,
    pub body: Vec<u8>,
}

impl<'a, S: Read + Write> Peer<'a, S> {
    /// Reads the client's first words and answers with settings.
    pub fn greet(stream: &'a mut S, settings: &[(u16, u32)]) -> Option<Peer<'a, S>> {
        let mut peer = Peer::greeted(stream)?;
        let list = settings.iter().flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat());
        peer.frame(SETTINGS, 0, 0, &list.collect::<Vec<u8>>())?;
        Some(peer)
    }

    /// Reads the client's first words, having spoken first.
    pub fn greeted(stream: &'a mut S) -> Option<Peer<'a, S>> {
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).ok()?;
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        Some(Peer { stream, acknowledged: 0 })
    }

    pub fn frame(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) -> Option<()> {
        let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(id.to_be_bytes());
        bytes.extend(payload);
        self.stream.write_all(&bytes).and_then(|()| self.stream.flush()).ok()
    }

    /// The next request; `None` at the end of the connection. Gives leave for more of a body, as it is read.
    pub fn request(&mut self) -> Option<Asked> {
        let mut asked = Asked { id: 0, head: Vec::new(), body: Vec::new() };
        loop {
            let mut front = [0; 9];
            self.stream.read_exact(&mut front).ok()?;
            let length = u32::from_be_bytes([0, front[0], front[1], front[2]]);
            let id = u32::from_be_bytes([front[5], front[6], front[7], front[8]]);
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).ok()?;
            let (kind, flags) = (front[3], front[4]);
            match kind {
                SETTINGS if flags == 0 => self.frame(SETTINGS, 1, 0, b"")?,
                SETTINGS | PING => self.acknowledged += 1,
                HEADERS => (asked.id, asked.head) = (id, payload),
                DATA => {
                    assert_eq!(id, asked.id);
                    asked.body.extend(payload);
                    if length > 0 {
                        self.frame(WINDOW_UPDATE, 0, 0, &length.to_be_bytes())?;
                        self.frame(WINDOW_UPDATE, 0, id, &length.to_be_bytes())?;
                    }
                }
                _ => {}
            }
            if matches!(kind, HEADERS | DATA) && flags & 1 != 0 {
                return Some(asked);
            }
        }
    }

    pub fn answer(&mut self, id: u32, tokens: usize) -> Option<()> {
        self.frame(HEADERS, 4, id, SSE_HEAD)?;
        for piece in stream_of(tokens).as_bytes().chunks(70) {
            self.frame(DATA, 0, id, piece)?;
        }
        self.frame(DATA, 1, id, b"")
    }

    /// Answers until the client hangs up.
    pub fn serve_well(&mut self, tokens: usize) {
        while let Some(asked) = self.request() {
            if self.answer(asked.id, tokens).is_none() {
                return;
            }
        }
    }
}
