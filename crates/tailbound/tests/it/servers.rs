//! Servers to run against: emulators, and sockets that answer whatever a test likes.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tailbound_clock::Dur;
use tailbound_emulator::{AnswerLength, Config, Emulator, Handle};
use tailbound_engine::Law;

/// An emulator called `tiny` with a step of `step_ms`, answers up to the limit, contexts of 2,048 tokens.
pub fn config(step_ms: u64) -> Config {
    let law = Law::Constant { step: Dur::from_ms(step_ms), per_prefill_token: Dur::ZERO };
    let engine = tailbound_engine::Config::new(law, 8192, 2048);
    Config { served_model_names: vec!["tiny".into()], answer_length: AnswerLength::Limit, ..Config::new(engine) }
}

pub fn emulator(config: Config) -> Handle {
    Emulator::start(config).unwrap()
}

/// An emulator with a truth log.
pub fn truthful(config: Config, log: &Path) -> Handle {
    emulator(Config { truth_log: Some(log.to_owned()), ..config })
}

/// A server that reads each request and hands its first line and the connection to `answer`; a connection is closed when that
/// returns. Returns its address. It lives as long as the test program.
pub fn answering(answer: fn(&str, &mut TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, answer));
        }
    });
    url
}

fn serve(mut stream: TcpStream, answer: fn(&str, &mut TcpStream)) {
    if let Some((first, _)) = request(&stream) {
        answer(&first, &mut stream);
    }
}

/// The first line and the body of one request.
fn request(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        let line = line.trim_end();
        if first.is_empty() {
            first = line.to_owned();
        }
        if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first, body))
}

/// A chat server that keeps the bodies it was sent, in order, and answers the n-th with `answer n`; a body that holds `fail` with an error.
pub fn recorder(fail: &'static str) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let kept = bodies.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Some((first, body)) = request(&stream) else { continue };
            if !first.contains("/chat/completions") {
                respond(&mut stream, "404 Not Found", "application/json", "{}");
                continue;
            }
            let body = String::from_utf8(body).unwrap();
            if body.contains(fail) {
                respond(&mut stream, "500 Internal Server Error", "application/json", "{}");
                continue;
            }
            let mut kept = kept.lock().unwrap();
            kept.push(serde_json::from_str(&body).unwrap());
            let event = |choice: Value| format!("data: {}\n\n", serde_json::json!({ "choices": [choice] }));
            let said = format!("answer {}", kept.len());
            let stream_text = event(serde_json::json!({ "index": 0, "delta": { "content": said } }))
                + &event(serde_json::json!({ "index": 0, "delta": {}, "finish_reason": "stop" }))
                + "data: [DONE]\n\n";
            respond(&mut stream, "200 OK", "text/event-stream", &stream_text);
        }
    });
    (url, bodies)
}

/// Writes a whole response and asks for no more.
pub fn respond(stream: &mut TcpStream, status: &str, kind: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // A client that left is the test's business, not the server's.
    let _ = stream.write_all((head + body).as_bytes());
}

/// An address at which nothing listens.
pub fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
