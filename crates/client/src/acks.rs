//! Whether the peer waits for acknowledgements, and keeping them delayed where it doesn't.
//!
//! On a connection whose peer only sends, the kernel acknowledges at every read. That costs two fifths of all a small event costs
//! (`benches/client_real.md`), and nobody waits for it, unless the peer collects small writes while an earlier one is
//! unacknowledged (Nagle's algorithm, RFC 896): such a peer sends its next token only when the acknowledgement comes. So
//! acknowledgements are delayed only towards a peer that has been seen to send small segments while earlier ones were unacknowledged.

use std::io;
use tailbound_clock::{Dur, Time};
use tailbound_os::Stamped;
use tailbound_os::socket::Socket;

/// The kernel sends a delayed acknowledgement at this age, and from then on acknowledges at every read again.
const DELAY: Dur = Dur::from_ms(40);
/// Segments this small are held back by a sender that collects; larger ones may fill a packet.
const SMALL: usize = 500;
/// One observation could be chance: an acknowledgement that left between two calls of ours.
const ENOUGH: u32 = 2;

/// What a probe has seen.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Segments we had sent after the read before the last, and how long the last one was.
    before_last: Option<u32>,
    last: Option<(u32, usize)>,
    seen: u32,
}

impl Watch {
    /// A read brought `len` bytes; our side had sent so many segments `before` it and `after` it.
    pub fn read(&mut self, before: Option<u32>, after: Option<u32>, len: usize) {
        let (Some(before), Some(after)) = (before, after) else { return };
        // What the last read brought has come after the read before it. If nothing has left since that one, it was still
        // unacknowledged when these bytes were sent.
        if let (Some(sent), Some((_, last))) = (self.before_last, self.last)
            && sent == before
            && len.max(last) < SMALL
        {
            self.seen += 1;
        }
        self.before_last = self.last.map(|(after, _)| after);
        self.last = Some((after, len));
    }

    /// Whether the peer sends without waiting.
    pub fn sends_at_once(&self) -> bool {
        self.seen >= ENOUGH
    }
}

/// A connection's acknowledgements are to be delayed.
///
/// Where the kernel can, bytes are read by peeking at them: they stay in the socket, and as long as it is not empty a read sends no
/// acknowledgement. They are taken out together, every so often and when the answer is whole.
#[derive(Debug, Default)]
pub(crate) struct Delayed {
    /// Reads peek.
    peeks: bool,
    /// Reads of this answer that didn't peek, up to [`PLAIN`].
    plain: u8,
    /// Bytes seen and still in the socket.
    held: usize,
    /// The kernel has gone back to acknowledging at once, or is about to.
    lapsed: bool,
}

/// So many bytes stay in the socket at most, beside those that have not been seen: little beside the smallest window of a connection
/// (64 KiB), so that the peer's sending is not shaped.
const HELD: usize = 1500;

/// So many reads of each answer are plain, and acknowledge at once: what is then left to the kernel's timer comes in bursts on the core that
/// received the bytes, and on one machine that is the server's, which would be late with first tokens.
const PLAIN: u8 = 8;

impl Delayed {
    /// For a fresh connection; `peek` unless its reads are to be watched.
    pub fn start(socket: &Socket, peek: bool) -> Delayed {
        let peeks = peek && socket.peek_onwards();
        if !peeks {
            socket.delay_acks();
        }
        Delayed { peeks, ..Delayed::default() }
    }

    /// Receives what is there and has not been seen.
    #[inline]
    pub fn receive(&mut self, socket: &Socket, buf: &mut [u8]) -> io::Result<Option<Stamped>> {
        if !self.peeks {
            return socket.receive(buf);
        }
        if self.plain < PLAIN {
            self.plain += 1;
            return socket.receive(buf);
        }
        if self.held == 0 {
            socket.delay_acks();
        }
        let got = socket.peek(buf);
        if let Ok(Some(Stamped { len, .. })) = got {
            self.held += len;
            if self.held >= HELD {
                self.release(socket);
            }
        }
        got
    }

    /// The answer has been read to its end.
    pub fn end(&mut self, socket: &Socket) {
        self.release(socket);
        self.plain = 0;
    }

    /// Takes out of the socket what has been seen: before the connection is closed (a close with bytes unread is a reset), used again, or
    /// read in another way.
    fn release(&mut self, socket: &Socket) {
        if self.held > 0 {
            socket.discard(self.held);
            self.held = 0;
        }
    }

    /// At each read, made at `now`, the one before at `last`. Asks the kernel again once gaps are short enough for it to matter.
    #[inline]
    pub fn keep(&mut self, socket: &Socket, last: Time, now: Time) {
        if self.peeks {
            return;
        }
        if now.since(last) >= DELAY {
            self.lapsed = true;
        } else if self.lapsed {
            self.lapsed = false;
            socket.delay_acks();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(reads: &[(u32, u32, usize)]) -> bool {
        let mut watch = Watch::default();
        reads.iter().for_each(|&(before, after, len)| watch.read(Some(before), Some(after), len));
        watch.sends_at_once()
    }

    #[test]
    fn an_acknowledgement_for_every_second_segment_gives_an_eager_sender_away() {
        assert!(watch(&[(2, 2, 90), (2, 3, 90), (3, 3, 90), (3, 4, 90), (4, 4, 90), (4, 5, 90)]));
    }

    #[test]
    fn a_sender_that_waits_is_not_taken_for_an_eager_one() {
        // The delayed acknowledgement leaves before each further segment comes.
        assert!(!watch(&[(2, 2, 90), (3, 3, 90), (4, 4, 90), (5, 5, 90), (6, 6, 90)]));
        // The kernel acknowledges at every read.
        assert!(!watch(&[(2, 3, 90), (3, 4, 90), (4, 5, 90), (5, 6, 90)]));
        // Whole packets are never held back, so they prove nothing.
        assert!(!watch(&[(2, 2, 1400), (2, 3, 1400), (3, 3, 1400), (3, 4, 1400), (4, 4, 1400)]));
        assert!(!watch(&[(2, 2, 90), (2, 2, 90)]));
    }
}
