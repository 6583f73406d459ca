//! The truth: when each token was planned to leave, and when it did.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use tailbound_clock::{Dur, Time};

use crate::error::EmulatorError;

/// One request, as the server saw it.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// The client's `x-request-id`, or the name it was given.
    pub id: String,
    /// The number of its connection, counted from 1.
    pub conn: u64,
    pub rank: usize,
    pub api: &'static str,
    pub stream: bool,
    /// When it had arrived whole.
    pub recv: Time,
    pub prompt_tokens: u32,
    pub output_tokens: u32,
    pub cached_tokens: u32,
    /// Per token, nanoseconds after `recv`: when the engine put it out.
    pub planned: Vec<u64>,
    /// Per token: just after the `write` that carried it had returned. As long as `planned`, less what never left.
    pub sent: Vec<u64>,
    /// `stop`, `length`, `abort` (the client left), `cut` (a fault), `error`.
    pub finish: &'static str,
    pub status: u16,
    pub fault: Option<&'static str>,
    pub late_max: Option<Dur>,
}

/// How late tokens left, over all requests so far. `late` counts every token of streamed answers, `late_max` the
/// latest token of each request (of a whole answer, its last token's).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Requests that ended, whichever way, if they got so far as to be taken.
    pub requests: u64,
    /// Tokens sent.
    pub tokens: u64,
    /// Per request.
    pub late_max: Quantiles,
    /// Per token.
    pub late: Quantiles,
    /// Writes that the client's full buffer held up.
    pub blocked_writes: u64,
    /// How far the engine's plan was moved back because this machine could not keep up at all.
    pub slipped: Dur,
    /// CPU time of the emulator's thread.
    pub cpu: Dur,
}

/// Three points of a distribution; `None` where there is nothing. Percentiles are exact to 2 %, the maximum is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantiles {
    /// Half are at most this.
    pub p50: Option<Dur>,
    /// All but one in a hundred are at most this.
    pub p99: Option<Dur>,
    /// The largest.
    pub max: Option<Dur>,
}

impl Summary {
    /// As a JSON object, in milliseconds.
    pub fn to_json(&self) -> String {
        let ms = |d: Option<Dur>| d.map(|d| d.ms());
        let quantiles = |q: Quantiles| serde_json::json!({"p50": ms(q.p50), "p99": ms(q.p99), "max": ms(q.max)});
        serde_json::json!({
            "requests": self.requests,
            "tokens": self.tokens,
            "late_max_ms": quantiles(self.late_max),
            "late_ms": quantiles(self.late),
            "blocked_writes": self.blocked_writes,
            "slipped_ms": self.slipped.ms(),
            "cpu_s": self.cpu.secs(),
        })
        .to_string()
    }
}

/// A histogram of lengths of time with 64 steps an octave.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    counts: Vec<u64>,
    total: u64,
    max: Dur,
}

impl Lateness {
    pub(crate) fn new() -> Lateness {
        Lateness { counts: vec![0; 64 * 64], total: 0, max: Dur::ZERO }
    }

    pub(crate) fn add(&mut self, d: Dur) {
        self.counts[Lateness::place(d.ns())] += 1;
        self.total += 1;
        self.max = self.max.max(d);
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        if self.total == 0 {
            return Quantiles::default();
        }
        Quantiles { p50: Some(self.quantile(0.5)), p99: Some(self.quantile(0.99)), max: Some(self.max) }
    }

    fn quantile(&self, q: f64) -> Dur {
        let rank = ((q * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (place, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Dur(Lateness::top(place)).min(self.max);
            }
        }
        self.max
    }

    /// Values under 64 have a place each; then every octave has 64 places.
    fn place(ns: u64) -> usize {
        if ns < 64 {
            return ns as usize;
        }
        let octave = 63 - ns.leading_zeros();
        let within = (ns >> (octave - 6)) & 63;
        ((octave - 5) as usize) * 64 + within as usize
    }

    fn top(place: usize) -> u64 {
        if place < 64 {
            return place as u64;
        }
        let (octave, within) = (place / 64 + 5, (place % 64) as u64);
        (((u128::from(64 + within) + 1) << (octave - 6)) - 1).min(u128::from(u64::MAX)) as u64
    }
}

/// The file, written by a thread of its own so that no token waits for a disk.
pub(crate) struct Log {
    sender: Option<SyncSender<Record>>,
    writer: Option<JoinHandle<std::io::Result<()>>>,
    /// What the thread has not taken yet.
    backlog: VecDeque<Record>,
}

impl Log {
    pub(crate) fn create(path: &Path) -> Result<Log, EmulatorError> {
        let fail = |source| EmulatorError::TruthLog { path: path.to_owned(), source };
        let file = File::create(path).map_err(fail)?;
        let (sender, receiver) = sync_channel(1 << 14);
        let writer = std::thread::Builder::new()
            .name("truth-log".to_owned())
            .spawn(move || write_all(file, &receiver))
            .map_err(fail)?;
        Ok(Log { sender: Some(sender), writer: Some(writer), backlog: VecDeque::new() })
    }

    pub(crate) fn push(&mut self, record: Record) {
        self.backlog.push_back(record);
        self.flush();
    }

    /// Hands over what the thread has room for.
    pub(crate) fn flush(&mut self) {
        let Some(sender) = &self.sender else { return };
        while let Some(record) = self.backlog.pop_front() {
            if let Err(TrySendError::Full(record) | TrySendError::Disconnected(record)) = sender.try_send(record) {
                self.backlog.push_front(record);
                return;
            }
        }
    }

    /// Waits until everything is on disk.
    pub(crate) fn close(mut self) -> std::io::Result<()> {
        if let Some(sender) = self.sender.take() {
            for record in self.backlog.drain(..) {
                // A writer that is gone has an error to tell, below.
                let _ = sender.send(record);
            }
        }
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            Some(Err(_)) => Err(std::io::Error::other("the truth log's thread ended in a panic")),
            None => Ok(()),
        }
    }
}

fn write_all(file: File, records: &Receiver<Record>) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    loop {
        let record = match records.try_recv() {
            Ok(record) => record,
            Err(std::sync::mpsc::TryRecvError::Disconnected) => return out.flush(),
            Err(std::sync::mpsc::TryRecvError::Empty) => {
                // Nothing to do: let readers of the file see all there is.
                out.flush()?;
                match records.recv() {
                    Ok(record) => record,
                    Err(_) => return out.flush(),
                }
            }
        };
        line.clear();
        record.line(&mut line);
        out.write_all(&line)?;
    }
}

impl Record {
    /// One line of JSON.
    fn line(&self, out: &mut Vec<u8>) {
        let late_max = self.late_max.map(|d| d.ns());
        let head = serde_json::json!({
            "id": self.id, "conn": self.conn, "rank": self.rank, "api": self.api, "stream": self.stream,
            "recv": self.recv.ns(), "prompt_tokens": self.prompt_tokens, "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens, "status": self.status, "finish": self.finish, "fault": self.fault,
            "late_max": late_max,
        })
        .to_string();
        out.extend_from_slice(&head.as_bytes()[..head.len() - 1]);
        for (name, times) in [("planned", &self.planned), ("sent", &self.sent)] {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":[");
            let mut number = itoa::Buffer::new();
            for (i, &t) in times.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(number.format(t).as_bytes());
            }
            out.push(b']');
        }
        out.extend_from_slice(b"}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_json_with_every_time() {
        let record = Record {
            id: "a\"b".to_owned(),
            planned: vec![1, 20, 300],
            sent: vec![2, 21],
            finish: "length",
            late_max: Some(Dur(1)),
            ..Record::default()
        };
        let mut line = Vec::new();
        record.line(&mut line);
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["id"], "a\"b");
        assert_eq!(value["planned"], serde_json::json!([1, 20, 300]));
        assert_eq!(value["sent"], serde_json::json!([2, 21]));
        assert_eq!(value["late_max"], 1);
        assert!(value["fault"].is_null());
    }

    proptest! {
        #[test]
        fn quantiles_are_within_two_percent(mut values in prop::collection::vec(0u64..10_000_000_000, 1..200)) {
            let mut histogram = Lateness::new();
            values.iter().for_each(|&v| histogram.add(Dur(v)));
            values.sort_unstable();
            let q = histogram.quantiles();
            prop_assert_eq!(q.max, Some(Dur(values[values.len() - 1])));
            for (p, got) in [(0.5, q.p50), (0.99, q.p99)] {
                let exact = values[((p * values.len() as f64).ceil() as usize).max(1) - 1];
                let got = got.unwrap().ns();
                prop_assert!(got >= exact && got as f64 <= exact as f64 * 1.02, "{got} for {exact}");
            }
        }

        #[test]
        fn every_length_has_a_place_whose_top_is_not_below_it(ns in any::<u64>()) {
            let place = Lateness::place(ns);
            prop_assert!(place < 64 * 64);
            prop_assert!(Lateness::top(place) >= ns);
        }
    }
}
