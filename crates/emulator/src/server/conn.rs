//! One client's connection: bytes read and not understood yet, bytes written and not taken yet.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use tailbound_clock::Time;

use super::live::Key;
use crate::http::Parser;

/// While an answer is being given, this much of the next request is read and no more.
const READ_AHEAD: usize = 64 << 10;

pub(super) struct Conn {
    socket: TcpStream,
    /// Counted from 1, over all connections ever.
    pub number: u64,
    pub input: Vec<u8>,
    pub parser: Parser,
    /// When the first byte of the request being read came.
    pub request_began: Option<Time>,
    /// When anything last moved.
    pub active: Time,
    /// The request being answered.
    pub busy: Option<Key>,
    pub close_when_flushed: bool,
    /// The reply was a refusal, and what still comes is not wanted.
    pub discarding: bool,
    /// Input was left in the kernel.
    pub has_more: bool,
    output: Vec<u8>,
    output_from: usize,
    /// Bytes ever handed to [`Conn::send`], and those the kernel has taken.
    pub queued: u64,
    pub flushed: u64,
}

/// The connection is of no more use.
#[derive(Debug)]
pub(super) struct Gone;

/// How reading went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// All there is has been read, for now.
    Drained,
    /// The client will send no more.
    Ended,
}

impl Conn {
    pub(super) fn new(socket: TcpStream, number: u64, now: Time) -> Conn {
        Conn {
            socket,
            number,
            input: Vec::new(),
            parser: Parser::default(),
            request_began: None,
            active: now,
            busy: None,
            close_when_flushed: false,
            discarding: false,
            has_more: false,
            output: Vec::new(),
            output_from: 0,
            queued: 0,
            flushed: 0,
        }
    }

    /// Reads what there is. With `to_the_end` a short read is not taken for the last one.
    pub(super) fn read(&mut self, scratch: &mut [u8], to_the_end: bool) -> Result<Input, Gone> {
        self.has_more = false;
        loop {
            if self.busy.is_some() && self.input.len() >= READ_AHEAD {
                self.has_more = true;
                return Ok(Input::Drained);
            }
            match self.socket.read(scratch) {
                Ok(0) => return Ok(Input::Ended),
                Ok(n) => {
                    self.input.extend_from_slice(&scratch[..n]);
                    if n < scratch.len() && !to_the_end {
                        return Ok(Input::Drained);
                    }
                    // A request is looked at before more of it is read, so that one past the limits does not fill memory.
                    if self.busy.is_none() && n == scratch.len() {
                        self.has_more = true;
                        return Ok(Input::Drained);
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Input::Drained),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Gone),
            }
        }
    }

    /// Writes `bytes`, or keeps what the kernel does not take now. [`Gone`] when more than `most` would be kept.
    pub(super) fn send(&mut self, bytes: &[u8], most: usize) -> Result<(), Gone> {
        self.queued += bytes.len() as u64;
        let mut taken = 0;
        if self.is_flushed() {
            taken = self.write(bytes)?;
            self.flushed += taken as u64;
        }
        if taken < bytes.len() {
            if self.output.len() - self.output_from + bytes.len() - taken > most.max(bytes.len()) {
                return Err(Gone);
            }
            self.output.extend_from_slice(&bytes[taken..]);
        }
        Ok(())
    }

    /// Writes what was kept.
    pub(super) fn flush(&mut self) -> Result<(), Gone> {
        while !self.is_flushed() {
            let output = std::mem::take(&mut self.output);
            let taken = self.write(&output[self.output_from..]);
            self.output = output;
            let taken = taken?;
            if taken == 0 {
                return Ok(());
            }
            self.output_from += taken;
            self.flushed += taken as u64;
        }
        self.output = Vec::new();
        self.output_from = 0;
        Ok(())
    }

    /// Says that nothing more will be written. What still comes is read and forgotten until the client ends it: closing at
    /// once would make the kernel reset the connection, and the client might never see the reply.
    pub(super) fn discard_the_rest(&mut self, now: Time) {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
        self.input = Vec::new();
        self.discarding = true;
        self.request_began = Some(now);
    }

    /// Reads and forgets; tells whether the client has ended.
    pub(super) fn discard(&mut self, scratch: &mut [u8]) -> bool {
        loop {
            match self.socket.read(scratch) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(e) => return e.kind() != ErrorKind::WouldBlock,
            }
        }
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.output_from == self.output.len()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, Gone> {
        loop {
            match self.socket.write(bytes) {
                Ok(n) => return Ok(n),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Gone),
            }
        }
    }
}
