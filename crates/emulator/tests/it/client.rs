//! The least an HTTP client can be, and emulators to try it on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tailbound_clock::Dur;
use tailbound_emulator::{Config, Emulator, Handle};
use tailbound_engine::Law;

/// Steps of 2 ms, 8 at once, contexts of 2,048 tokens, as in the captures.
pub fn config() -> Config {
    let law = Law::Constant { step: Dur::from_ms(2), per_prefill_token: Dur::ZERO };
    let mut engine = tailbound_engine::Config::new(law, 4096, 2048);
    engine.max_num_seqs = 8;
    Config { served_model_names: vec!["smollm2-135m".to_owned(), "alias".to_owned()], ..Config::new(engine) }
}

pub fn start(config: Config) -> Handle {
    Emulator::start(config).unwrap()
}

/// A reply, its body dechunked.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// The body ended as its framing says.
    pub whole: bool,
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e} in {:?}", self.text()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|l| l.split_once(": "));
        lines.into_iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v)
    }

    /// The payloads of the `data:` lines, `[DONE]` left out.
    pub fn events(&self) -> Vec<Value> {
        data_lines(self.text()).filter(|d| *d != "[DONE]").map(|d| serde_json::from_str(d).unwrap()).collect()
    }
}

pub fn data_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|l| l.strip_prefix("data: "))
}

pub struct Client {
    socket: TcpStream,
    held: Vec<u8>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Client {
        let socket = TcpStream::connect(addr).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Client { socket, held: Vec::new() }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    pub fn post(&mut self, path: &str, body: &str) {
        self.send(&post(path, body));
    }

    /// Reads one more piece; false at the end.
    fn more(&mut self) -> bool {
        let mut piece = [0; 65536];
        match self.socket.read(&mut piece) {
            Ok(n) => {
                self.held.extend_from_slice(&piece[..n]);
                n > 0
            }
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => false,
            Err(e) => panic!("no reply: {e}"),
        }
    }

    /// Waits until `needle` has come.
    pub fn wait_for(&mut self, needle: &str) {
        while !self.held.windows(needle.len()).any(|w| w == needle.as_bytes()) {
            assert!(self.more(), "the connection ended before {needle:?}: {}", String::from_utf8_lossy(&self.held));
        }
    }

    pub fn reply(&mut self) -> Reply {
        let head_end = loop {
            if let Some(at) = find(&self.held, b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.more(), "the connection ended before a reply: {:?}", String::from_utf8_lossy(&self.held));
        };
        let head = String::from_utf8(self.held.drain(..head_end).collect()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut reply = Reply { status, head, body: Vec::new(), whole: true };
        if status == 100 {
            return reply;
        }
        if let Some(length) = reply.header("content-length") {
            let length: usize = length.parse().unwrap();
            while self.held.len() < length && self.more() {}
            reply.whole = self.held.len() >= length;
            reply.body = self.held.drain(..length.min(self.held.len())).collect();
        } else if reply.header("transfer-encoding") == Some("chunked") {
            reply.whole = self.chunks(&mut reply.body);
        } else {
            while self.more() {}
            reply.body = std::mem::take(&mut self.held);
        }
        reply
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> bool {
        loop {
            let line = loop {
                match find(&self.held, b"\r\n") {
                    Some(at) => break at,
                    None if !self.more() => return false,
                    None => {}
                }
            };
            let size = usize::from_str_radix(std::str::from_utf8(&self.held[..line]).unwrap(), 16).unwrap();
            while self.held.len() < line + 2 + size + 2 {
                if !self.more() {
                    return false;
                }
            }
            body.extend_from_slice(&self.held[line + 2..line + 2 + size]);
            self.held.drain(..line + 2 + size + 2);
            if size == 0 {
                return true;
            }
        }
    }

    /// Whether the server closes the connection without another byte.
    pub fn is_closed(&mut self) -> bool {
        self.held.is_empty() && !self.more()
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

pub fn post(path: &str, body: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub fn get(addr: SocketAddr, path: &str) -> Reply {
    let mut client = Client::connect(addr);
    client.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
    client.reply()
}

pub fn ask(addr: SocketAddr, path: &str, body: &Value) -> Reply {
    let mut client = Client::connect(addr);
    client.post(path, &body.to_string());
    client.reply()
}

/// A sample of `/metrics`, summed over replicas.
pub fn metric(addr: SocketAddr, name: &str) -> f64 {
    let page = get(addr, "/metrics");
    let samples = page.text().lines().filter(|l| {
        l.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])) || l.split(' ').next() == Some(name)
    });
    samples.map(|l| l.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

/// Asks again until it holds; the emulator has its own thread.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        std::thread::yield_now();
    }
    panic!("never came true: {what}");
}

/// A file of the shared data, or `None` with a note where it is not at hand.
pub fn data(name: &str) -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let root = std::env::var("TAILBOUND_DATA").unwrap_or_else(|_| default.to_owned());
    let path = PathBuf::from(root).join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{} is not there", path.display());
    eprintln!("skipped: {} is not there", path.display());
    None
}

/// What vLLM sent, captured.
pub fn capture(name: &str) -> Option<String> {
    data(&format!("engines/vllm/{name}")).map(|path| std::fs::read_to_string(path).unwrap())
}

/// The body of a captured reply.
pub fn captured_body(name: &str) -> Option<String> {
    capture(name).map(|text| text.split_once("\r\n\r\n").map_or(text.clone(), |(_, body)| body.to_owned()))
}
