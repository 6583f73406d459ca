//! Drives a server with the client alone and prints what it cost and what it saw, as one JSON line; rows as JSON lines with `--out`.
//!
//!     cargo run --release -p tailbound-client --example load -- --url http://127.0.0.1:8000 --requests 1000 --concurrency 1000 --tokens 100
//!
//! The keys are those of the minimal client of the bench kit, so that one script reads both.

use std::fmt::Write as _;
use std::io::Write as _;
use tailbound_client::{Acks, Config, Control, Request, Requests, Target, Trust, probe, run};
use tailbound_clock::Dur;
use tailbound_os::usage;
use tailbound_record::{Moment, Row};
use tailbound_wire::Api;
use tailbound_workload::{IntentId, Load, Spec};

/// All requests are alike; with `--unique` each body has a length of its own, so that the server's log can be matched to the rows.
struct Same {
    bodies: Vec<Vec<u8>>,
    tokens: u32,
}

impl Requests for Same {
    fn request(&self, id: IntentId) -> Request<'_> {
        let body = &self.bodies[id.0 as usize % self.bodies.len()];
        Request { output_tokens: Some(self.tokens), ..Request::new(Api::Completions, "/v1/completions", &body[..]) }
    }
}

struct Flags(Vec<String>);

impl Flags {
    fn on(&self, name: &str) -> bool {
        self.0.iter().any(|a| a == name)
    }
    fn text(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|a| a == name)?;
        self.0.get(at + 1).map(String::as_str)
    }
    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tailbound_os::signals::watch();
    let flags = Flags(std::env::args().skip(1).collect());
    let tokens: u32 = flags.number("--tokens").unwrap_or(16);
    let mut target = Target::parse(flags.text("--url").unwrap_or("http://127.0.0.1:8000"))?;
    if flags.on("--insecure") {
        target.trust = Trust::Anything;
    }
    let kinds: usize = if flags.on("--unique") { flags.number("--requests").unwrap_or(1) } else { 1 };
    let bodies = (0..kinds).map(|i| {
        let prompt = "a ".repeat(32) + &"a".repeat(i);
        format!(
            "{{\"model\":\"mock\",\"prompt\":\"{prompt}\",\"max_tokens\":{tokens},\"stream\":true,\"stream_options\":{{\"include_usage\":true}}}}"
        )
        .into_bytes()
    });
    let requests = Same { bodies: bodies.collect(), tokens };
    let spec = Spec {
        num_prompts: flags.number("--requests"),
        request_rate: flags.number("--rate"),
        max_concurrency: flags.number("--concurrency"),
        burstiness: if flags.on("--constant") { Some(f64::INFINITY) } else { None },
        ..Spec::default()
    };
    let config = Config {
        threads: flags.number("--threads").unwrap_or(1),
        gather: !flags.on("--no-gather"),
        realtime: flags.on("--realtime"),
        pin: flags.number("--pin").into_iter().collect(),
        preconnect: flags.number("--preconnect").unwrap_or(0),
        ..Config::default()
    };
    // What the ready check of `bench serve` does.
    let sends_at_once =
        flags.on("--ready-check") && probe(&requests.request(IntentId(0)), &target, &config)?.sends_at_once;
    let config = Config { acks: if sends_at_once { Acks::Delayed } else { Acks::AtOnce }, ..config };
    let mut load = Load::new(spec.plan().map_err(|e| e.to_string())?.into());
    let mut rows = Vec::new();
    let log = run(&mut load, &requests, &target, &config, &Control::new(), &mut |row| rows.push(row))?;
    let cpu = log.process_cpu.secs();
    let rss = usage::peak_rss().unwrap_or(0) / 1024;
    if let Some(path) = flags.text("--out") {
        write_rows(path, &rows)?;
    }
    let line = summary(&rows, &log, cpu, rss);
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

fn write_rows(path: &str, rows: &[Row]) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    for row in rows {
        let at = |moment| row.at.get(moment).map_or("null".to_owned(), |t| t.ns().to_string());
        write!(
            out,
            "{{\"i\":{},\"intended\":{},\"released\":{},\"sent\":{},\"written\":{},\"first\":{},\"last\":{},\"connect_start\":{},\"connected\":{},\"stamps\":\"{:?}\",\"end\":\"{:?}\",\"at\":[",
            row.id,
            at(Moment::Scheduled),
            at(Moment::Released),
            at(Moment::WriteStart),
            at(Moment::Written),
            at(Moment::FirstToken),
            at(Moment::LastToken),
            at(Moment::ConnectStart),
            at(Moment::Connected),
            row.stamps,
            row.end
        )?;
        for (i, chunk) in row.chunks.as_slice().iter().enumerate() {
            write!(out, "{}{}", if i > 0 { "," } else { "" }, chunk.at.ns())?;
        }
        writeln!(out, "],\"coalesced\":{}}}", row.chunks.coalesced())?;
    }
    out.flush()
}

fn summary(rows: &[Row], log: &tailbound_client::RunLog, cpu: f64, rss: u64) -> String {
    let ok: Vec<&Row> = rows.iter().filter(|row| row.ok()).collect();
    let tokens: usize = ok.iter().map(|row| row.chunks.len()).sum();
    let coalesced: usize = ok.iter().map(|row| row.chunks.coalesced()).sum();
    let wall = log.end.since(log.start).secs();
    let mut line = String::new();
    let reads: u64 = log.reads;
    let _ = write!(
        line,
        "{{\"requests\":{},\"ok\":{},\"wall_s\":{wall:.4},\"events\":{tokens},\"reads\":{reads},\"coalesced\":{coalesced},\"connections\":{},\"retries\":{},\"unstamped\":{},\"cpu_s\":{cpu:.3},\"loop_cpu_s\":{:.3},\"cpu_s_per_1k_req\":{:.4},\"cpu_s_per_1m_tok\":{:.3},\"rss_kib\":{rss}",
        rows.len(),
        ok.len(),
        log.connections,
        log.retries,
        log.unstamped,
        log.loop_cpu.iter().copied().sum::<Dur>().secs(),
        cpu / ok.len().max(1) as f64 * 1e3,
        cpu / tokens.max(1) as f64 * 1e6,
    );
    let ms = |name: &str, mut ns: Vec<u64>| {
        ns.sort_unstable();
        let at = |p: f64| match ns.len() {
            0 => f64::NAN,
            n => ns[((p * n as f64).ceil() as usize).clamp(1, n) - 1] as f64 / 1e6,
        };
        format!(
            ",\"{name}\":{{\"n\":{},\"p50\":{:.4},\"p90\":{:.4},\"p99\":{:.4},\"max\":{:.4}}}",
            ns.len(),
            at(0.5),
            at(0.9),
            at(0.99),
            at(1.0)
        )
    };
    let all = |of: &dyn Fn(&Row) -> Option<Dur>| ok.iter().filter_map(|row| of(row)).map(Dur::ns).collect::<Vec<_>>();
    line += &ms("ttft_ms", all(&Row::ttft));
    line += &ms("e2el_ms", all(&Row::e2e));
    line += &ms("itl_ms", ok.iter().flat_map(|row| row.chunks.gaps()).map(Dur::ns).collect());
    line += &ms("connect_ms", all(&|row| row.at.between(Moment::ConnectStart, Moment::Connected)));
    line += &ms("send_late_ms", log.late.iter().map(|late| late.by.ns()).collect());
    line += &ms("noise_ms", log.noise.sorted_ns.clone());
    let _ = write!(line, ",\"read_delay\":{:?},\"refused\":{:?}}}", log.read_delay, log.refused);
    line
}
