//! A streaming completions server over TLS that logs the truth: when each request had arrived whole, and when each token's record
//! was in the kernel.
//!
//!     cargo run --release -p tailbound-client --example tls_mock -- --port 8443 --ttft 50 --itl 20
//!
//! One thread; the certificate is its own, made at the start (clients need `--insecure`). `GET /mock/reset` forgets the log,
//! `GET /mock/dump?file=PATH` writes it in the format of the bench kit's mock: one JSON line a request, `recv` and `due0` in ns of
//! the monotonic clock, `sent` in ns from `recv`, `body` the request body's length. `--plain` leaves TLS out.

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use tailbound_clock::{Dur, Time};
use tailbound_os::poll::Epoll;
use tailbound_os::{clock, sleep, socket};

const LISTENER: u64 = u64::MAX;
const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

/// What the server knows of one request.
struct Truth {
    recv: Time,
    body: usize,
    tokens: u32,
    sent: Vec<Time>,
}

struct Conn {
    socket: TcpStream,
    tls: Option<ServerConnection>,
    input: Vec<u8>,
    /// The request being answered, as its place in the log.
    answering: Option<usize>,
}

struct Server {
    config: Option<Arc<ServerConfig>>,
    ttft: Dur,
    itl: Dur,
    conns: Vec<Option<Conn>>,
    due: BinaryHeap<Reverse<(Time, usize)>>,
    log: Vec<Truth>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flags: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: u64| {
        let at = flags.iter().position(|flag| flag == name);
        at.and_then(|at| flags.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    let listener = TcpListener::bind(("127.0.0.1", u16::try_from(number("--port", 8443))?))?;
    socket::widen_backlog(&listener, 16_384)?;
    listener.set_nonblocking(true)?;
    sleep::exact_timers();
    let plain = flags.iter().any(|flag| flag == "--plain");
    let mut server = Server {
        config: if plain { None } else { Some(self_signed()?) },
        ttft: Dur::from_ms(number("--ttft", 50)),
        itl: Dur::from_ms(number("--itl", 20)),
        conns: Vec::new(),
        due: BinaryHeap::new(),
        log: Vec::new(),
    };
    let mut epoll = Epoll::new(1024)?;
    epoll.watch_level(&listener, LISTENER)?;
    loop {
        server.send_due();
        let next = server.due.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
        let ready = epoll.wait(next.since(clock::now()).min(Dur::from_secs(1)));
        for i in 0..ready {
            match epoll.ready(i).token {
                LISTENER => server.accept(&listener, &epoll)?,
                slot => server.read(slot as usize),
            }
        }
    }
}

fn self_signed() -> Result<Arc<ServerConfig>, Box<dyn std::error::Error>> {
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key)?;
    Ok(Arc::new(config))
}

impl Server {
    fn accept(&mut self, listener: &TcpListener, epoll: &Epoll) -> io::Result<()> {
        while let Ok((socket, _)) = listener.accept() {
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            let tls = match &self.config {
                Some(config) => Some(ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?),
                None => None,
            };
            // Slots are never used again: a token that comes due late cannot hit a stranger.
            epoll.watch(&socket, self.conns.len() as u64)?;
            self.conns.push(Some(Conn { socket, tls, input: Vec::new(), answering: None }));
        }
        Ok(())
    }

    /// Takes in what has come; a connection that ended or failed is dropped.
    fn read(&mut self, slot: usize) {
        let Some(conn) = &mut self.conns[slot] else { return };
        if !conn.take_in().unwrap_or(false) {
            self.conns[slot] = None;
            return;
        }
        if conn.answering.is_some() {
            return;
        }
        let Some((head, body)) = take_request(&mut conn.input) else { return };
        let recv = clock::now();
        let answered = if head.starts_with("POST") {
            conn.answering = Some(self.log.len());
            self.log.push(Truth { recv, body: body.len(), tokens: max_tokens(&body), sent: Vec::new() });
            self.due.push(Reverse((recv + self.ttft, slot)));
            conn.write(HEAD.as_bytes())
        } else {
            let text = control(&mut self.log, &head, self.ttft, self.itl);
            conn.write(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()).as_bytes())
        };
        if answered.is_err() {
            self.conns[slot] = None;
        }
    }

    fn send_due(&mut self) {
        while let Some(&Reverse((at, slot))) = self.due.peek() {
            if at > clock::now() {
                return;
            }
            self.due.pop();
            let Some(conn) = &mut self.conns[slot] else { continue };
            let Some(truth) = conn.answering.and_then(|at| self.log.get_mut(at)) else { continue };
            if conn.send_token(truth).is_err() {
                self.conns[slot] = None;
                continue;
            }
            if truth.sent.len() < truth.tokens as usize {
                self.due.push(Reverse((at + self.itl, slot)));
            } else {
                conn.answering = None;
            }
        }
    }
}

impl Conn {
    /// Reads until the socket is empty. False: the peer has closed.
    fn take_in(&mut self) -> io::Result<bool> {
        let mut buf = [0; 16 << 10];
        loop {
            let read = match &mut self.tls {
                Some(tls) => tls.read_tls(&mut self.socket),
                None => self.socket.read(&mut buf),
            };
            match read {
                Ok(0) => return Ok(false),
                Ok(n) if self.tls.is_none() => self.input.extend_from_slice(&buf[..n]),
                Ok(_) => self.decrypt()?,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(e) => return Err(e),
            }
        }
    }

    fn decrypt(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let state = tls.process_new_packets().map_err(io::Error::other)?;
        let from = self.input.len();
        self.input.resize(from + state.plaintext_bytes_to_read(), 0);
        tls.reader().read_exact(&mut self.input[from..])?;
        self.flush()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return self.socket.write_all(bytes) };
        tls.writer().write_all(bytes)?;
        self.flush()
    }

    /// Every record goes to the kernel at once. A socket that is full fails the connection: the truth would be a lie.
    fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            tls.write_tls(&mut self.socket)?;
        }
        Ok(())
    }

    fn send_token(&mut self, truth: &mut Truth) -> io::Result<()> {
        let i = truth.sent.len() as u32;
        let last = i + 1 == truth.tokens;
        let finish = if last { "\"length\"" } else { "null" };
        let mut events = format!(
            "data: {{\"id\":\"cmpl-0\",\"object\":\"text_completion\",\"created\":1700000000,\"model\":\"mock\",\"choices\":[{{\"index\":0,\"text\":\" w{i}\",\"logprobs\":null,\"finish_reason\":{finish}}}],\"usage\":null}}\n\n"
        );
        if last {
            let (prompt, tokens) = (truth.body / 5, truth.tokens);
            let all = prompt + tokens as usize;
            let _ = write!(
                events,
                "data: {{\"id\":\"cmpl-0\",\"object\":\"text_completion\",\"created\":1700000000,\"model\":\"mock\",\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{tokens},\"total_tokens\":{all}}}}}\n\ndata: [DONE]\n\n"
            );
        }
        let end = if last { "0\r\n\r\n" } else { "" };
        self.write(format!("{:x}\r\n{events}\r\n{end}", events.len()).as_bytes())?;
        truth.sent.push(clock::now());
        Ok(())
    }
}

/// The first whole request of `input`: its head, and its body.
fn take_request(input: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    let end = memchr::memmem::find(input, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&input[..end]).into_owned();
    let named = |line: &str| line.to_ascii_lowercase().strip_prefix("content-length:").map(|v| v.trim().to_owned());
    let length = head.lines().find_map(named).and_then(|v| v.parse().ok()).unwrap_or(0);
    if input.len() < end + length {
        return None;
    }
    let body = input[end..end + length].to_vec();
    input.drain(..end + length);
    Some((head, body))
}

fn max_tokens(body: &[u8]) -> u32 {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    body["max_tokens"].as_u64().map_or(16, |n| n.clamp(1, 1 << 20) as u32)
}

/// What is asked of the mock itself.
fn control(log: &mut Vec<Truth>, head: &str, ttft: Dur, itl: Dur) -> String {
    let path = head.split(' ').nth(1).unwrap_or_default();
    if let Some(file) = path.strip_prefix("/mock/dump?file=") {
        return match dump(log, file, ttft, itl) {
            Ok(late) => format!("{{\"requests\":{},\"late_max\":{{\"p99\":{late:.4}}}}}", log.len()),
            Err(e) => format!("{{\"error\":\"failed to write {file}: {e}\"}}"),
        };
    }
    if path == "/mock/reset" {
        log.clear();
    }
    "{}".to_owned()
}

/// Writes the log; returns the 99th percentile of each request's worst lateness against its plan, in ms.
fn dump(log: &[Truth], file: &str, ttft: Dur, itl: Dur) -> io::Result<f64> {
    let mut out = io::BufWriter::new(std::fs::File::create(file)?);
    let mut late = Vec::new();
    for truth in log {
        let due = truth.recv + ttft;
        let plan = |i: usize| due + Dur(itl.ns() * i as u64);
        late.push(truth.sent.iter().enumerate().map(|(i, at)| at.since(plan(i))).max().unwrap_or(Dur::ZERO));
        write!(out, "{{\"recv\":{},\"due0\":{},\"body\":{},\"sent\":[", truth.recv.ns(), due.ns(), truth.body)?;
        for (i, at) in truth.sent.iter().enumerate() {
            write!(out, "{}{}", if i > 0 { "," } else { "" }, at.since(truth.recv).ns())?;
        }
        writeln!(out, "]}}")?;
    }
    out.flush()?;
    late.sort_unstable();
    Ok(late.get(late.len() * 99 / 100).or(late.last()).map_or(0.0, |d| d.secs() * 1e3))
}
