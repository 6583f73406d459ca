//! Three runs: a plain one, one with everything that can be shown, and one in which nothing completed.

use tailbound_clock::{Dur, Time};
use tailbound_record::server::{Buckets, Measure, Reading, Scrape, System};
use tailbound_record::{Blame, Cause, End, Finish, Moment, Phase, Row, StampSource, Why};
use tailbound_report::{
    Description, Diffusion, Extras, Probes, RateChange, Run, Selected, Selection, ServerTimes, SpecDecode,
};
use tailbound_stats::servers::Servers;
use tailbound_stats::{Bounds, ClientHealth, Objectives, Ramp, RampLaw, RunFacts, Summary, Verdict, judge, summarize};

const MS: u64 = 1_000_000;

/// What a [`Run`] borrows from.
pub struct Owned {
    pub description: Description,
    pub facts: RunFacts,
    pub rows: Vec<Row>,
    pub selection: Selection,
    pub extras: Extras,
    pub summary: Summary,
    pub verdict: Verdict,
}

impl Owned {
    pub fn new(facts: RunFacts, rows: Vec<Row>, selection: Selection, extras: Extras) -> Owned {
        let description = Description {
            date: "20261130-120000".into(),
            backend: "openai".into(),
            label: None,
            model_id: "org/model-7b".into(),
            tokenizer_id: Some("org/model-7b".into()),
            max_model_len: None,
            protocol: Some("HTTP/2"),
            num_prompts: rows.len(),
            metadata: vec![("gpu".into(), "H100".into())],
        };
        let summary = summarize(&rows, &facts);
        let bounds = Bounds { percentiles: selection.percentiles.clone(), ..Bounds::default() };
        let verdict = judge(&summary, &facts, &ClientHealth::default(), &bounds);
        Owned { description, facts, rows, selection, extras, summary, verdict }
    }

    pub fn run(&self) -> Run<'_> {
        Run {
            description: &self.description,
            facts: &self.facts,
            summary: &self.summary,
            verdict: &self.verdict,
            rows: &self.rows,
            selection: &self.selection,
            extras: &self.extras,
        }
    }
}

/// Scheduled, released and written at those ms; `n` events of `tokens`, the first after `ttft`, then every `gap` ms.
fn row(id: u64, at: [u64; 3], n: u64, tokens: u16, ttft: u64, gap: u64) -> Row {
    let mut row = Row::new(id);
    for (moment, ms) in [Moment::Scheduled, Moment::Released, Moment::WriteStart].into_iter().zip(at) {
        row.at.set(moment, Time(ms * MS));
    }
    for i in 0..n {
        let t = Time((at[2] + ttft + i * gap) * MS);
        row.chunks.push(t, i as u32, tokens, true);
        row.at.set_first(Moment::FirstToken, t);
        row.at.set_first(Moment::FirstVisible, t);
        row.at.set(Moment::LastToken, t);
        row.at.set(Moment::StreamEnd, Time(t.ns() + MS / 2));
    }
    row.tokens.prompt_server = Some(100 + id as u32);
    row.tokens.prompt_asked = Some(100 + id as u32);
    row.tokens.output_server = Some(n as u32 * u32::from(tokens));
    row.stamps = StampSource::Kernel;
    row.text = Some(format!("answer {id}").into());
    row.end = End::Done(Finish::Length);
    row
}

fn failed(id: u64, at: u64, cause: Cause, blame: Blame, detail: &str) -> Row {
    let mut row = row(id, [at, at, at], 0, 0, 0, 0);
    row.tokens.output_server = None;
    row.text = None;
    row.at.set(Moment::StreamEnd, Time((at + 30) * MS));
    row.end = End::Failed { phase: Phase::Headers, blame, cause, detail: detail.into() };
    row
}

/// A closed loop of 400 requests at concurrency 4.
pub fn plain() -> Owned {
    let rows = (0..400).map(|i| {
        let write = (i / 4) * 530;
        row(i, [0, write, write], 20, 1, 100 + i % 7, 20 + i % 3)
    });
    let mut facts = RunFacts::new(Time::ZERO, Time(53_020 * MS));
    facts.max_concurrency = Some(4);
    Owned::new(facts, rows.collect(), Selection::default(), Extras::default())
}

/// An open loop under a cap that shapes it, with failures of two kinds, objectives missed, bundles, probes and speculation.
pub fn full() -> Owned {
    let mut rows: Vec<Row> = (0..40)
        .map(|i| {
            let (scheduled, released) = (i * 50, i * 100);
            let mut r = row(i, [scheduled, released, released + 1], 8, 3, 150 + i * 2, 60);
            r.class = (i % 2) as u16;
            r.at.set(Moment::ConnectStart, Time(released * MS));
            r.at.set(Moment::Connected, Time(released * MS + MS / 4));
            r.tokens.cached_server = Some(32);
            r.tokens.reasoning_server = Some(6);
            r
        })
        .collect();
    rows[3] = failed(3, 150, Cause::Status(503), Blame::Server, "{\"error\": \"overloaded\"}\nplease wait");
    rows[9] = failed(9, 450, Cause::Status(503), Blame::Server, "busy");
    rows[12] = failed(12, 600, Cause::Reset, Blame::Network, "");
    rows[38].end = End::Cancelled(Why::Interrupted);
    rows[39] = Row::new(39);
    rows[39].at.set(Moment::Scheduled, Time(39 * 50 * MS));
    rows[39].end = End::NeverSent(Why::Duration);
    let objectives = Objectives {
        all: ["ttft:500", "tpot:25", "e2el:2000"].map(|o| o.parse().expect("an objective")).to_vec(),
        ..Objectives::default()
    };
    let facts = RunFacts {
        request_rate: Some(20.0),
        burstiness: f64::INFINITY,
        max_concurrency: Some(8),
        objectives,
        interrupted: true,
        ..RunFacts::new(Time::ZERO, Time(4_600 * MS))
    };
    let selection =
        Selection { metrics: Selected::ALL.to_vec(), percentiles: vec![50.0, 99.0, 99.9], token_lines: true };
    let extras = Extras {
        probes: Some(Probes { completed: 9, failed: 1, median_e2e_ms: 12.5, p99_e2e_ms: 30.25, max_e2e_ms: 31.0 }),
        spec_decode: Some(SpecDecode {
            drafts: 1000,
            draft_tokens: 4000,
            accepted_tokens: 2400,
            accepted_per_position: vec![900, 700, 500, 300],
        }),
        audio_s: 9.2,
        server_times: vec![ServerTimes { queue_s: Some(0.01), ttft_s: None }; 40],
        servers: servers(),
        ..Extras::default()
    };
    Owned::new(facts, rows, selection, extras)
}

/// A server that began again, and a machine with GPUs.
fn servers() -> Option<Servers> {
    let engine = |running: f64, waiting: f64, tokens: f64| {
        let values = [
            (Measure::Running, running),
            (Measure::Waiting, waiting),
            (Measure::KvUse, running / 10.0),
            (Measure::PrefixQueries, tokens * 4.0),
            (Measure::PrefixHits, tokens),
            (Measure::Preemptions, (tokens / 100.0).floor()),
            (Measure::PromptTokens, tokens * 4.0),
            (Measure::GeneratedTokens, tokens),
            (Measure::DraftTokens, tokens * 2.0),
            (Measure::AcceptedTokens, tokens),
            (Measure::ProcessCpu, tokens / 400.0),
        ];
        let n = (tokens / 20.0).floor();
        let ttft = Buckets { bounds: vec![0.1, 0.25, 0.5], counts: vec![0.0, n - 2.0, n], count: n, sum: n * 0.18 };
        Reading {
            system: Some(System::Vllm),
            values: values.into_iter().collect(),
            ttft: Some(ttft),
            ..Reading::default()
        }
    };
    let machine = |busy: f64, energy: f64| Reading {
        system: Some(System::Dcgm),
        values: [
            (Measure::GpuUse, busy),
            (Measure::GpuPower, 700.0 * busy),
            (Measure::GpuTemperature, 60.5),
            (Measure::GpuMemory, 70e9),
            (Measure::GpuEnergy, energy),
            (Measure::CpuTime, energy / 100.0),
            (Measure::CpuIdle, energy / 200.0),
            (Measure::MemoryTotal, 64e9),
            (Measure::MemoryAvailable, 16e9),
        ]
        .into_iter()
        .collect(),
        ..Reading::default()
    };
    let scrape = |from: &str, at_ms: u64, reading: Reading| Scrape {
        from: format!("http://{from}/metrics"),
        at: Time(at_ms * MS),
        took: Dur::from_ms(2),
        reading: Some(reading),
    };
    let mut scrapes = vec![
        scrape("server:8000", 0, engine(0.0, 0.0, 1000.0)),
        scrape("server:8000", 1000, engine(4.0, 0.0, 1300.0)),
        scrape("server:8000", 3000, engine(8.0, 3.0, 40.0)),
        scrape("server:8000", 4700, engine(0.0, 0.0, 440.0)),
        scrape("gpus:9400", 0, machine(0.0, 0.0)),
        scrape("gpus:9400", 2000, machine(0.9, 1200.0)),
        scrape("gpus:9400", 4600, machine(0.6, 2500.0)),
    ];
    scrapes.push(Scrape { reading: None, ..scrapes[1].clone() });
    let ttfts: Vec<Dur> = (0..37).map(|i| Dur::from_ms(152 + 2 * i)).collect();
    Servers::new(&scrapes, &ttfts, Time::ZERO, Time(4_600 * MS))
}

/// A ramp against a server that refuses everything, without a tokenizer.
pub fn nothing() -> Owned {
    let rows = (0..12).map(|i| failed(i, i * 10, Cause::Refused, Blame::Network, "connection refused")).collect();
    let ramp = Some(Ramp { law: RampLaw::Linear, start_rps: 1.0, end_rps: 10.0 });
    let facts = RunFacts { ramp, ..RunFacts::new(Time::ZERO, Time(200 * MS)) };
    let extras = Extras {
        rate_changes: vec![RateChange { rps: 1, timestamp: "2026-11-30T12:00:00".into() }],
        diffusion: Some(Diffusion {
            committed_throughput: 10.0,
            steps_per_canvas: 4.0,
            committed_per_step: 2.5,
            committed_tokens: 100,
            denoising_steps: 40,
            canvas_positions: 320,
        }),
        ..Extras::default()
    };
    let selection =
        Selection { metrics: vec![Selected::Ttft, Selected::E2el], token_lines: false, ..Selection::default() };
    Owned::new(facts, rows, selection, extras)
}
