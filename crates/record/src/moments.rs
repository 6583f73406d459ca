use tailbound_clock::{Dur, Time};

/// What can happen in a request's life, in the order in which it normally does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Moment {
    /// When the plan said it should start. Open-loop headlines count from here.
    Scheduled,
    /// When the load let it go (after waiting for a place under a concurrency cap, or for the pacer).
    Released,
    /// TCP connect began; absent on a reused connection.
    ConnectStart,
    /// TCP connect ended.
    Connected,
    /// TLS handshake ended; absent on plain connections.
    TlsDone,
    /// Just before the first byte of the request was handed to the kernel.
    WriteStart,
    /// Just after the last byte of the request was handed to the kernel.
    Written,
    /// The response's status line and headers had arrived.
    Headers,
    /// First byte of the response body.
    FirstByte,
    /// First complete stream event of any kind.
    FirstEvent,
    /// First event that carries output of any kind (content, reasoning, tool arguments, refusal, audio …).
    FirstToken,
    /// First event that carries output a user would see (content, tool call, refusal, audio; not reasoning).
    FirstVisible,
    /// Last event that carries output.
    LastToken,
    /// The event that stated why generation ended.
    Finish,
    /// The last event that carried usage counts.
    Usage,
    /// The response body ended, in whatever way.
    StreamEnd,
}

impl Moment {
    /// Every moment, in order.
    pub const ALL: [Moment; Moment::COUNT] = {
        use Moment::*;
        [
            Scheduled,
            Released,
            ConnectStart,
            Connected,
            TlsDone,
            WriteStart,
            Written,
            Headers,
            FirstByte,
            FirstEvent,
            FirstToken,
            FirstVisible,
            LastToken,
            Finish,
            Usage,
            StreamEnd,
        ]
    };
    /// How many there are.
    pub const COUNT: usize = 16;

    /// Its name in files: `first_token` and so on.
    pub const fn name(self) -> &'static str {
        match self {
            Moment::Scheduled => "scheduled",
            Moment::Released => "released",
            Moment::ConnectStart => "connect_start",
            Moment::Connected => "connected",
            Moment::TlsDone => "tls_done",
            Moment::WriteStart => "write_start",
            Moment::Written => "written",
            Moment::Headers => "headers",
            Moment::FirstByte => "first_byte",
            Moment::FirstEvent => "first_event",
            Moment::FirstToken => "first_token",
            Moment::FirstVisible => "first_visible",
            Moment::LastToken => "last_token",
            Moment::Finish => "finish",
            Moment::Usage => "usage",
            Moment::StreamEnd => "stream_end",
        }
    }
}

/// The moments of one request; each may be absent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Moments([u64; Moment::COUNT]);

/// No run lasts 584 years, so the last moment there is can stand for "it did not happen".
const ABSENT: u64 = u64::MAX;

impl Moments {
    /// None of them has happened.
    pub const NONE: Moments = Moments([ABSENT; Moment::COUNT]);

    /// When it happened, if it did.
    pub fn get(&self, moment: Moment) -> Option<Time> {
        let ns = self.0[moment as usize];
        (ns != ABSENT).then_some(Time(ns))
    }

    /// Sets it, whether or not it was set.
    pub fn set(&mut self, moment: Moment, at: Time) {
        self.0[moment as usize] = at.ns();
    }

    /// Sets it unless it is set: for everything called "first".
    pub fn set_first(&mut self, moment: Moment, at: Time) {
        if self.0[moment as usize] == ABSENT {
            self.set(moment, at);
        }
    }

    /// Forgets it, as a retry must.
    pub fn clear(&mut self, moment: Moment) {
        self.0[moment as usize] = ABSENT;
    }

    /// From `from` to `to`, if both happened; zero if they happened in the other order.
    pub fn between(&self, from: Moment, to: Moment) -> Option<Dur> {
        Some(self.get(to)?.since(self.get(from)?))
    }
}

impl Default for Moments {
    fn default() -> Self {
        Moments::NONE
    }
}

impl std::fmt::Debug for Moments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_map();
        for moment in Moment::ALL {
            if let Some(at) = self.get(moment) {
                map.entry(&format_args!("{}", moment.name()), &at.ns());
            }
        }
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_moments_is_in_order() {
        for (i, moment) in Moment::ALL.into_iter().enumerate() {
            assert_eq!(moment as usize, i);
        }
    }

    #[test]
    fn a_first_is_kept_and_an_absence_gives_no_length() {
        let mut at = Moments::NONE;
        at.set_first(Moment::FirstToken, Time(5));
        at.set_first(Moment::FirstToken, Time(9));
        assert_eq!(at.get(Moment::FirstToken), Some(Time(5)));
        assert_eq!(at.between(Moment::Written, Moment::FirstToken), None);
        at.set(Moment::Written, Time(2));
        assert_eq!(at.between(Moment::Written, Moment::FirstToken), Some(Dur(3)));
    }
}
