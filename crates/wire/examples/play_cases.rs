//! Plays the conformance suite to any client, over TCP with real delays.
//!
//! `cargo run -p tailbound-wire --example play_cases -- [PORT]` prints `listening on 127.0.0.1:PORT` and then serves until it is
//! killed. The request's model (`"model":"case-07"` or `"model":"ping_between_tokens"`), the header `x-case` or the query `?case=`
//! says which case. `GET /cases` lists them with their truths as JSON lines; `GET /v1/models`, and `/health` are there for
//! clients that ask first. `-- --list` prints the same lines without serving.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tailbound_wire::cases::{Case, Framing, cases, find};
use tailbound_wire::{Eof, Fault};

#[expect(clippy::print_stdout, reason = "a program of its own")]
fn main() -> io::Result<()> {
    let argument = std::env::args().nth(1).unwrap_or_else(|| "0".into());
    if argument == "--list" {
        print!("{}", list());
        return Ok(());
    }
    let port: u16 = argument.parse().map_err(|_| io::Error::other(format!("not a port: {argument}")))?;
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    println!("listening on {}", listener.local_addr()?);
    for stream in listener.incoming() {
        let stream = stream?;
        std::thread::spawn(move || {
            // A client that goes away is no news.
            let _ = serve(&stream);
        });
    }
    Ok(())
}

/// One line of JSON for each case.
fn list() -> String {
    let line = |(i, case): (usize, Case)| {
        let truth = &case.truth;
        let fault = truth.end.err().map(|fault| match fault {
            Fault::Status(code) => format!("Status({code})"),
            other => format!("{other:?}"),
        });
        let line = serde_json::json!({
            "number": i + 1, "name": case.name, "about": case.about, "path": case.api.path(), "api": format!("{:?}", case.api),
            "stream": case.stream, "ok": truth.end.is_ok(), "finish": truth.end.ok().flatten(), "fault": fault,
            "ttft_ms": truth.ttft_ms, "visible_ms": truth.visible_ms, "last_ms": truth.last_ms, "itl": truth.gaps(),
            "tokens": truth.tokens, "text": truth.text, "choices": case.choices,
        });
        format!("{line}\n")
    };
    cases().into_iter().enumerate().map(line).collect()
}

struct Request {
    path: String,
    case: Option<String>,
    keep_alive: bool,
    body: Vec<u8>,
}

fn serve(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader)? {
        let path = request.path.split('?').next().unwrap_or_default().to_owned();
        let case = match path.as_str() {
            "/health" | "/ping" => reply(stream, "text/plain", "")?,
            "/v1/models" => {
                let models: Vec<_> =
                    cases().iter().map(|case| serde_json::json!({"id": case.name, "object": "model"})).collect();
                reply(stream, "application/json", &serde_json::json!({"object": "list", "data": models}).to_string())?
            }
            "/cases" => reply(stream, "application/jsonl", &list())?,
            _ => {
                name_of(&request).as_deref().and_then(find).map_or_else(|| not_found(stream), |case| Ok(Some(case)))?
            }
        };
        if let Some(case) = case {
            let open = play(stream, &case)?;
            if !open {
                return Ok(());
            }
        }
        if !request.keep_alive {
            return Ok(());
        }
    }
    Ok(())
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or("/").to_owned();
    let mut request = Request { path, case: None, keep_alive: true, body: Vec::new() };
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "x-case" => request.case = Some(value.to_owned()),
            "connection" => request.keep_alive = !value.eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    reader.take(length).read_to_end(&mut request.body)?;
    Ok(Some(request))
}

fn name_of(request: &Request) -> Option<String> {
    let query = request.path.split_once('?').map_or("", |(_, query)| query);
    let of_query = query.split('&').find_map(|pair| pair.strip_prefix("case=")).map(str::to_owned);
    let of_model = || {
        let body: serde_json::Value = serde_json::from_slice(&request.body).ok()?;
        Some(body["model"].as_str()?.to_owned())
    };
    request.case.clone().or(of_query).or_else(of_model)
}

fn reply(mut stream: &TcpStream, kind: &str, body: &str) -> io::Result<Option<Case>> {
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
    Ok(None)
}

fn not_found(mut stream: &TcpStream) -> io::Result<Option<Case>> {
    let body = r#"{"error":{"message":"no such case: name it as the model","type":"NotFoundError","code":404}}"#;
    write!(
        stream,
        "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    Ok(None)
}

/// Sends the response; says whether the connection can serve another.
#[expect(clippy::disallowed_methods, reason = "a server of its own, whose pace is the point")]
fn play(mut stream: &TcpStream, case: &Case) -> io::Result<bool> {
    let mut head = format!("HTTP/1.1 {} Case\r\n", case.status);
    for (name, value) in [("content-type", case.content_type), ("content-encoding", case.content_encoding)] {
        if let Some(value) = value {
            head += &format!("{name}: {value}\r\n");
        }
    }
    let length: usize = case.steps.iter().map(|step| step.bytes.len()).sum();
    head += &match case.framing {
        Framing::Chunked => "transfer-encoding: chunked\r\n\r\n".to_owned(),
        // A body that breaks off had promised more.
        Framing::Length if case.eof == Eof::Reset => format!("content-length: {}\r\n\r\n", length + 100),
        Framing::Length => format!("content-length: {length}\r\n\r\n"),
        Framing::Close => "connection: close\r\n\r\n".to_owned(),
    };
    stream.write_all(head.as_bytes())?;
    // By the schedule, not by gaps: one late step must not delay the rest.
    let start = Instant::now();
    let mut due_ms = 0;
    for step in &case.steps {
        due_ms += u64::from(step.delay_ms);
        std::thread::sleep(Duration::from_millis(due_ms).saturating_sub(start.elapsed()));
        if step.bytes.is_empty() {
            continue;
        }
        match case.framing {
            Framing::Chunked => {
                let mut chunk = format!("{:x}\r\n", step.bytes.len()).into_bytes();
                chunk.extend_from_slice(&step.bytes);
                chunk.extend_from_slice(b"\r\n");
                stream.write_all(&chunk)?;
            }
            Framing::Length | Framing::Close => stream.write_all(&step.bytes)?,
        }
    }
    if case.eof == Eof::Reset {
        // What was sent must arrive before the reset overtakes it.
        std::thread::sleep(Duration::from_millis(20));
        // A close with nothing allowed to linger is a reset.
        socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO))?;
        return Ok(false);
    }
    if case.framing == Framing::Chunked {
        stream.write_all(b"0\r\n\r\n")?;
    }
    Ok(case.framing != Framing::Close)
}
