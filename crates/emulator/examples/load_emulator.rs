//! The least that can load an emulator: many streams on one thread, counted and not looked at. Prints one line of JSON with
//! what came and what it cost the server, which it asks for. Options are `name=value`.
//!
//! `cargo run --release -p tailbound-emulator --example load_emulator -- port=8000 streams=10000 requests=20000 tokens=200 rate=5000`

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use tailbound_clock::{Dur, Time};
use tailbound_os::clock::now;
use tailbound_os::poll::Epoll;

type Failure = Box<dyn std::error::Error>;

struct Stream {
    socket: TcpStream,
    /// The end of what was read, in case a mark is cut in two.
    tail: Vec<u8>,
}

fn main() -> Result<(), Failure> {
    let (mut port, mut streams, mut requests, mut tokens, mut rate) = (8000u16, 256usize, 1024usize, 200u32, 0.0f64);
    for arg in std::env::args().skip(1) {
        let (name, value) = arg.split_once('=').ok_or(format!("{arg} is not name=value"))?;
        match name {
            "port" => port = value.parse()?,
            "streams" => streams = value.parse()?,
            "requests" => requests = value.parse()?,
            "tokens" => tokens = value.parse()?,
            // Streams begun per second; 0: all at once.
            "rate" => rate = value.parse()?,
            _ => return Err(format!("there is no option {name}").into()),
        }
    }
    tailbound_os::limits::raise_nofile()?;
    tailbound_os::sleep::exact_timers();
    let addr = SocketAddr::from(([127, 0, 0, 1], port));
    let before = truth(addr)?;
    let (start, cpu) = (now(), tailbound_os::usage::process_cpu());
    let (events, reads, peak) = run(addr, streams, requests, tokens, rate)?;
    let (wall, cpu) = (now().since(start).secs(), (tailbound_os::usage::process_cpu() - cpu).secs());
    let after = truth(addr)?;
    let server = |name: &str| after[name].as_f64().unwrap_or(0.0) - before[name].as_f64().unwrap_or(0.0);
    let (sent, server_cpu) = (server("tokens"), server("cpu_s"));
    let line = serde_json::json!({
        "requests": requests, "peak_streams": peak, "tokens": events, "reads": reads, "wall_s": wall,
        "tokens_per_s": events as f64 / wall, "client_cpu_s": cpu,
        "server": {
            "tokens": sent, "cpu_s": server_cpu, "tokens_per_cpu_s": sent / server_cpu, "cpu_share": server_cpu / wall,
            "late_max_ms": after["late_max_ms"], "late_ms": after["late_ms"], "slipped_ms": after["slipped_ms"],
            "blocked_writes": after["blocked_writes"],
        },
    });
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

/// Keeps `streams` open until `requests` have been answered; gives (tokens, reads, most streams at once).
fn run(
    addr: SocketAddr,
    streams: usize,
    requests: usize,
    tokens: u32,
    rate: f64,
) -> Result<(u64, u64, usize), Failure> {
    let mut epoll = Epoll::new(1024)?;
    let mut open: Vec<Stream> = Vec::new();
    let (mut begun, mut done, mut events, mut reads) = (0usize, 0usize, 0u64, 0u64);
    let mut buffer = vec![0u8; 256 << 10];
    let start = now();
    let due = |i: usize| if rate > 0.0 { start + Dur::from_secs_f64(i as f64 / rate) } else { start };
    while done < requests {
        while open.len() < streams && begun < requests && due(open.len()) <= now() {
            let socket = TcpStream::connect(addr)?;
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
            epoll.watch(&socket, open.len() as u64)?;
            let mut stream = Stream { socket, tail: Vec::new() };
            stream.ask(begun, tokens)?;
            open.push(stream);
            begun += 1;
        }
        let next = if open.len() < streams && begun < requests { due(open.len()) } else { Time::MAX };
        let ready = epoll.wait(next.since(now()).min(Dur::from_secs(10)));
        for i in 0..ready {
            let ready = epoll.ready(i);
            let stream = &mut open[ready.token as usize];
            loop {
                match stream.socket.read(&mut buffer) {
                    Ok(0) => return Err("the server closed a stream".into()),
                    Ok(n) => {
                        reads += 1;
                        let (new, ended) = stream.take(&buffer[..n]);
                        events += new;
                        if ended {
                            done += 1;
                            if begun < requests {
                                stream.ask(begun, tokens)?;
                                begun += 1;
                            }
                        }
                        if n < buffer.len() {
                            break;
                        }
                    }
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) => return Err(e.into()),
                }
            }
        }
    }
    Ok((events, reads, open.len()))
}

impl Stream {
    fn ask(&mut self, number: usize, tokens: u32) -> Result<(), Failure> {
        let body = format!(
            "{{\"prompt\":\"request {number} asks for nothing in particular\",\"max_tokens\":{tokens},\"ignore_eos\":true,\"stream\":true}}"
        );
        let head = format!("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        self.tail.clear();
        self.socket.write_all(format!("{head}{body}").as_bytes())?;
        Ok(())
    }

    /// The tokens in these bytes, and whether they end the answer.
    fn take(&mut self, bytes: &[u8]) -> (u64, bool) {
        const TOKEN: &[u8] = b"\"text\":\"";
        self.tail.extend_from_slice(bytes);
        let tokens = memchr::memmem::find_iter(&self.tail, TOKEN).count() as u64;
        let ended = self.tail.ends_with(b"\r\n0\r\n\r\n");
        // As much as could be the beginning of a mark, and no whole one, which would count twice.
        let keep = self.tail.len().min(TOKEN.len() - 1);
        self.tail.drain(..self.tail.len() - keep);
        (tokens, ended)
    }
}

fn truth(addr: SocketAddr) -> Result<serde_json::Value, Failure> {
    let mut socket = TcpStream::connect(addr)?;
    socket.write_all(b"GET /emulator/truth HTTP/1.1\r\nconnection: close\r\n\r\n")?;
    let mut reply = String::new();
    socket.read_to_string(&mut reply)?;
    Ok(serde_json::from_str(reply.split_once("\r\n\r\n").ok_or("no reply")?.1)?)
}
