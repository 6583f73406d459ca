use crate::Dist;
use crate::request::{decode_ns, departure, first_chunk_tokens, output_tokens, tpot_ns, tpot_vllm_ns};
use std::sync::Arc;
use tailbound_record::{Moment, Row};

/// Every latency this crate takes. Formulas: `tailbound_report::explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// First token − first byte written.
    Ttft,
    /// First token − scheduled arrival.
    TtftScheduled,
    /// First visible token − first byte written.
    Ttfo,
    /// (last token − first token) / (n − k₁).
    Tpot,
    /// (last token − first token) / (n − 1).
    TpotVllm,
    /// (last token − first token) / n.
    TpotOverN,
    /// (last token − first byte written) / n; also called NTPOT.
    TpotInclTtft,
    /// Gaps between events, shared out over the tokens each event carried.
    Itl,
    /// Gaps between events: what vLLM calls ITL.
    Icl,
    /// Last token − first byte written.
    E2e,
    /// Last token − scheduled arrival.
    E2eScheduled,
    /// End of the stream − first byte written.
    StreamEnd,
    /// Connecting, TLS included, for requests that opened a connection.
    Connect,
    /// Release − scheduled arrival: the wait for a place under the cap.
    ClientQueue,
    /// Departure − release: how late this client was.
    Lateness,
}

impl Metric {
    /// Every one.
    pub const ALL: [Metric; 15] = {
        use Metric::*;
        [
            Ttft,
            TtftScheduled,
            Ttfo,
            Tpot,
            TpotVllm,
            TpotOverN,
            TpotInclTtft,
            Itl,
            Icl,
            E2e,
            E2eScheduled,
            StreamEnd,
            Connect,
            ClientQueue,
            Lateness,
        ]
    };

    /// Whether a request has one value of it; gaps it has many of.
    pub fn of_requests(self) -> bool {
        !matches!(self, Metric::Itl | Metric::Icl)
    }

    /// A request's value, in ns; `None` where it has none, or many.
    pub fn of(self, row: &Row) -> Option<f64> {
        let n = || output_tokens(row).0;
        let length = match self {
            Metric::Ttft => row.ttft(),
            Metric::TtftScheduled => row.ttft_scheduled(),
            Metric::Ttfo => row.at.between(Moment::WriteStart, Moment::FirstVisible),
            Metric::E2e => row.e2e(),
            Metric::E2eScheduled => row.e2e_scheduled(),
            Metric::StreamEnd => row.at.between(Moment::WriteStart, Moment::StreamEnd),
            Metric::Connect => {
                let connected = row.at.between(Moment::ConnectStart, Moment::TlsDone);
                connected.or_else(|| row.at.between(Moment::ConnectStart, Moment::Connected))
            }
            Metric::ClientQueue => row.at.between(Moment::Scheduled, Moment::Released),
            Metric::Lateness => {
                let due = row.at.get(Moment::Released).or(row.at.get(Moment::Scheduled));
                departure(row).zip(due).map(|(left, due)| left.since(due))
            }
            Metric::Tpot => return tpot_ns(row),
            Metric::TpotVllm => return tpot_vllm_ns(row),
            Metric::TpotOverN => {
                let n = n();
                return decode_ns(row).filter(|_| n > first_chunk_tokens(row, n)).map(|d| d / f64::from(n));
            }
            Metric::TpotInclTtft => {
                let n = n();
                return row.e2e().filter(|_| n > 0).map(|d| d.ns() as f64 / f64::from(n));
            }
            Metric::Itl | Metric::Icl => None,
        };
        length.map(|d| d.ns() as f64)
    }

    /// Its name in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Ttft => "ttft",
            Metric::TtftScheduled => "ttft_scheduled",
            Metric::Ttfo => "ttfo",
            Metric::Tpot => "tpot",
            Metric::TpotVllm => "tpot_vllm",
            Metric::TpotOverN => "tpot_over_n",
            Metric::TpotInclTtft => "tpot_incl_ttft",
            Metric::Itl => "itl",
            Metric::Icl => "icl",
            Metric::E2e => "e2e",
            Metric::E2eScheduled => "e2e_scheduled",
            Metric::StreamEnd => "stream_end",
            Metric::Connect => "connect",
            Metric::ClientQueue => "client_queue",
            Metric::Lateness => "lateness",
        }
    }
}

/// The latency distributions, in nanoseconds, of completed requests (the last three: of every request that got so far).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    /// [`Metric::Ttft`].
    pub ttft: Dist,
    /// [`Metric::TtftScheduled`].
    pub ttft_scheduled: Dist,
    /// [`Metric::Ttfo`].
    pub ttfo: Dist,
    /// [`Metric::Tpot`].
    pub tpot: Dist,
    /// [`Metric::TpotVllm`].
    pub tpot_vllm: Dist,
    /// [`Metric::TpotOverN`].
    pub tpot_over_n: Dist,
    /// [`Metric::TpotInclTtft`].
    pub tpot_incl_ttft: Dist,
    /// [`Metric::Itl`]; the same sample as `icl` where no event carried more than one token.
    pub itl: Arc<Dist>,
    /// [`Metric::Icl`].
    pub icl: Arc<Dist>,
    /// [`Metric::E2e`].
    pub e2e: Dist,
    /// [`Metric::E2eScheduled`].
    pub e2e_scheduled: Dist,
    /// [`Metric::StreamEnd`].
    pub stream_end: Dist,
    /// [`Metric::Connect`].
    pub connect: Dist,
    /// [`Metric::ClientQueue`].
    pub client_queue: Dist,
    /// [`Metric::Lateness`].
    pub lateness: Dist,
    /// Tokens per second that each user saw: 1 / TPOT. Not a duration.
    pub interactivity: Dist,
}

impl Latencies {
    /// The distribution of a metric.
    pub fn get(&self, metric: Metric) -> &Dist {
        match metric {
            Metric::Ttft => &self.ttft,
            Metric::TtftScheduled => &self.ttft_scheduled,
            Metric::Ttfo => &self.ttfo,
            Metric::Tpot => &self.tpot,
            Metric::TpotVllm => &self.tpot_vllm,
            Metric::TpotOverN => &self.tpot_over_n,
            Metric::TpotInclTtft => &self.tpot_incl_ttft,
            Metric::Itl => &self.itl,
            Metric::Icl => &self.icl,
            Metric::E2e => &self.e2e,
            Metric::E2eScheduled => &self.e2e_scheduled,
            Metric::StreamEnd => &self.stream_end,
            Metric::Connect => &self.connect,
            Metric::ClientQueue => &self.client_queue,
            Metric::Lateness => &self.lateness,
        }
    }
}

/// The samples while they are taken.
#[derive(Default)]
pub(crate) struct Samples {
    ttft: Vec<f64>,
    ttft_scheduled: Vec<f64>,
    ttfo: Vec<f64>,
    tpot: Vec<f64>,
    tpot_vllm: Vec<f64>,
    tpot_over_n: Vec<f64>,
    tpot_incl_ttft: Vec<f64>,
    itl: Vec<f64>,
    icl: Vec<f64>,
    any_bundle: bool,
    e2e: Vec<f64>,
    e2e_scheduled: Vec<f64>,
    stream_end: Vec<f64>,
    connect: Vec<f64>,
    client_queue: Vec<f64>,
    lateness: Vec<f64>,
    interactivity: Vec<f64>,
}

impl Samples {
    pub(crate) fn with_room_for(events: usize) -> Samples {
        Samples { icl: Vec::with_capacity(events), ..Samples::default() }
    }

    pub(crate) fn add(&mut self, row: &Row) {
        self.client_side(row);
        if row.ok() {
            self.answer(row);
            self.gaps(row);
        }
    }

    fn client_side(&mut self, row: &Row) {
        self.connect.extend(Metric::Connect.of(row));
        self.client_queue.extend(Metric::ClientQueue.of(row));
        self.lateness.extend(Metric::Lateness.of(row));
    }

    fn answer(&mut self, row: &Row) {
        self.ttft.extend(Metric::Ttft.of(row));
        self.ttft_scheduled.extend(Metric::TtftScheduled.of(row));
        self.ttfo.extend(Metric::Ttfo.of(row));
        self.e2e.extend(Metric::E2e.of(row));
        self.e2e_scheduled.extend(Metric::E2eScheduled.of(row));
        self.stream_end.extend(Metric::StreamEnd.of(row));
        self.tpot_vllm.extend(Metric::TpotVllm.of(row));
        self.tpot_over_n.extend(Metric::TpotOverN.of(row));
        self.tpot_incl_ttft.extend(Metric::TpotInclTtft.of(row));
        if let Some(tpot) = tpot_ns(row) {
            self.tpot.push(tpot);
            if tpot > 0.0 {
                self.interactivity.push(1e9 / tpot);
            }
        }
    }

    fn gaps(&mut self, row: &Row) {
        let events = row.chunks.as_slice();
        self.icl.extend(row.chunks.gaps().map(|gap| gap.ns() as f64));
        // Nothing bundled so far means `itl` would repeat `icl`: it is filled only once a bundle turns up.
        if !self.any_bundle {
            if events.iter().skip(1).all(|e| e.tokens <= 1) {
                return;
            }
            self.any_bundle = true;
            let before = self.icl.len() - (events.len() - 1);
            self.itl.extend_from_slice(&self.icl[..before]);
        }
        for pair in events.windows(2) {
            let tokens = pair[1].tokens.max(1);
            let gap = pair[1].at.since(pair[0].at).ns() as f64 / f64::from(tokens);
            self.itl.extend(std::iter::repeat_n(gap, usize::from(tokens)));
        }
    }

    pub(crate) fn finish(self) -> Latencies {
        let icl = Arc::new(Dist::new(self.icl));
        let itl = if self.any_bundle { Arc::new(Dist::new(self.itl)) } else { icl.clone() };
        // Most runs have no reasoning and one token in the first event: what is equal is sorted once.
        let ttfo_is_ttft = self.ttfo == self.ttft;
        let tpot_is_vllms = self.tpot == self.tpot_vllm;
        let ttft = Dist::new(self.ttft);
        let tpot = Dist::new(self.tpot);
        Latencies {
            ttft_scheduled: Dist::new(self.ttft_scheduled),
            ttfo: if ttfo_is_ttft { ttft.clone() } else { Dist::new(self.ttfo) },
            tpot_vllm: if tpot_is_vllms { tpot.clone() } else { Dist::new(self.tpot_vllm) },
            tpot_over_n: Dist::new(self.tpot_over_n),
            tpot_incl_ttft: Dist::new(self.tpot_incl_ttft),
            ttft,
            tpot,
            itl,
            icl,
            e2e: Dist::new(self.e2e),
            e2e_scheduled: Dist::new(self.e2e_scheduled),
            stream_end: Dist::new(self.stream_end),
            connect: Dist::new(self.connect),
            client_queue: Dist::new(self.client_queue),
            lateness: Dist::new(self.lateness),
            interactivity: Dist::new(self.interactivity),
        }
    }
}
