//! Hand-written servers, and the few lines that drive the client against them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tailbound_client::{Acks, Config, Control, Request, Requests, RunLog, Target, run};
use tailbound_clock::Dur;
use tailbound_record::Row;
use tailbound_wire::Api;
use tailbound_workload::{IntentId, Load, Spec};

/// Serves each connection on a thread of its own; `serve` gets the connection and its number.
pub fn start(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let addr = listener.local_addr().expect("address");
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for (i, stream) in listener.incoming().flatten().enumerate() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream, i));
        }
    });
    addr
}

/// Reads one request with its body; `None` at the end of the connection.
pub fn read_request(stream: &mut impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0u8];
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).ok()?;
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |n| n.parse::<usize>().expect("a length"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(head + &String::from_utf8_lossy(&body))
}

/// One event of a completions stream.
pub fn event(text: &str, finish: Option<&str>) -> String {
    let finish = finish.map_or("null".to_owned(), |f| format!("\"{f}\""));
    format!("data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"text\":\"{text}\",\"finish_reason\":{finish}}}]}}\n\n")
}

/// A whole stream of `n` tokens `w0 w1 …`, usage and `[DONE]`.
pub fn stream_of(n: usize) -> String {
    let mut all = String::new();
    for i in 0..n {
        all += &event(&format!("w{i} "), (i + 1 == n).then_some("length"));
    }
    all += &format!(
        "data: {{\"id\":\"c\",\"choices\":[],\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":{n}}}}}\n\n"
    );
    all + "data: [DONE]\n\n"
}

pub const SSE_CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

pub fn chunk(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n", body.len())
}

/// Answers requests in order with whole chunked streams until the client hangs up.
pub fn serve_well(mut stream: TcpStream, tokens: usize) {
    while read_request(&mut stream).is_some() {
        let answer = format!("{SSE_CHUNKED}{}0\r\n\r\n", chunk(&stream_of(tokens)));
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

pub fn pause(ms: u64) {
    tailbound_os::sleep::until(tailbound_os::clock::now() + Dur::from_ms(ms));
}

/// Waits until the client hangs up (ten seconds at most), so that nothing else ends the connection.
pub fn hold(mut stream: TcpStream) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    while stream.read(&mut [0; 1024]).is_ok_and(|n| n > 0) {}
}

pub struct Same;

impl Requests for Same {
    fn request(&self, id: IntentId) -> Request<'_> {
        let mut request = Request::new(Api::Completions, "/v1/completions", &b"{\"prompt\":\"x\"}"[..]);
        request.headers.push(("x-request-id", id.0.to_string().into()));
        request.output_tokens = Some(5);
        request
    }
}

pub fn target(addr: SocketAddr) -> Target {
    Target::parse(&format!("http://{addr}")).expect("a URL")
}

/// Settings under which a test that goes wrong ends soon. Acknowledgements are delayed, which takes the longer way through the client:
/// bytes are peeked at, and taken out of the socket later.
pub fn quick() -> Config {
    let acks = Acks::Delayed;
    let mut config = Config { threads: 1, keep_text: true, grace: Dur::from_secs(5), acks, ..Config::default() };
    config.timeouts.connect = Dur::from_secs(5);
    config.timeouts.first_token = Dur::from_secs(10);
    config.timeouts.gap = Dur::from_secs(10);
    config.timeouts.request = Dur::from_secs(30);
    config
}

pub fn spec(requests: u64, concurrency: i64) -> Spec {
    Spec { num_prompts: Some(requests), max_concurrency: Some(concurrency), ..Spec::default() }
}

/// Runs and gives the rows in the order of their ids.
pub fn drive(spec: &Spec, target: &Target, config: &Config, control: &Control) -> (Vec<Row>, RunLog) {
    let mut load = Load::new(spec.plan().expect("a plan").into());
    let mut rows = Vec::new();
    let log = run(&mut load, &Same, target, config, control, &mut |row| rows.push(row)).expect("a run");
    rows.sort_by_key(|row: &Row| row.id);
    (rows, log)
}

/// One request to a server.
pub fn ask(addr: SocketAddr, config: &Config) -> Row {
    let (mut rows, _) = drive(&spec(1, 1), &target(addr), config, &Control::new());
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}
