//! Servers that start, die, hang, and leave things behind.

use std::net::TcpListener;
use tailbound_clock::Dur;
use tailbound_sweep::{Server, ServerCommand, ServerError, address};

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// A port nobody listens at now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn command(folder: &tempfile::TempDir, program: &str, script: &str, port: u16) -> ServerCommand {
    let argv = [program, "-c", script, "--host", "127.0.0.1", "--port", &port.to_string()].map(str::to_owned);
    ServerCommand::new(argv.into(), folder.path().join("logs/server.log")).unwrap()
}

/// Answers 503 until it is asked a third time, ignores SIGTERM, and has a child in a session of its own.
const STUBBORN: &str = "
import http.server, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(['sleep', '1000'], start_new_session=True)
class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Handler.asked += 1
        self.send_response(200 if Handler.asked > 2 else 503)
        self.send_header('content-length', '0')
        self.end_headers()
http.server.HTTPServer((sys.argv[2], int(sys.argv[4])), Handler).serve_forever()
";

#[test]
fn a_server_is_ready_when_it_says_so_and_nothing_of_it_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(&folder, "python3", STUBBORN, free_port());
    command.grace = Dur::from_ms(200);
    let mut server = Server::start(command.clone(), &|| false).unwrap();
    server.check().unwrap();
    assert!(matches!(Server::start(command.clone(), &|| false), Err(ServerError::Taken { .. })));
    let id = server.id();
    assert!(std::path::Path::new(&format!("/proc/{id}")).exists());
    server.stop();
    assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    let log = std::fs::read_to_string(&command.log).unwrap();
    assert!(log.contains("\"GET /health HTTP/1.1\" 503") && log.contains("\"GET /health HTTP/1.1\" 200"), "{log}");
    // The address is free again, so nothing else of it listens there either.
    Server::start(command, &|| false).unwrap();
}

#[test]
fn a_server_that_dies_says_how_and_what_it_said_last() {
    let folder = tempfile::tempdir().unwrap();
    let command = command(&folder, "sh", "seq 1 30; echo no such model >&2; exit 3", free_port());
    let error = Server::start(command, &|| false).unwrap_err().to_string();
    assert!(error.contains("ended with exit code 3") && error.ends_with("\n    30\n    no such model"), "{error}");
    assert!(!error.contains("    11\n") && error.contains("    12\n"), "twenty lines of it: {error}");
}

#[test]
fn a_server_that_is_never_ready_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(&folder, "sh", "sleep 1000 & wait", free_port());
    command.ready_timeout = Dur::from_ms(200);
    let error = Server::start(command.clone(), &|| false).unwrap_err().to_string();
    assert!(error.contains("not ready within 200ms") && error.ends_with("(it is empty)"), "{error}");
    assert!(matches!(Server::start(command, &|| true), Err(ServerError::Stopped)));
}

#[test]
fn a_server_that_is_not_there_is_said_to_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let command = ServerCommand::new(words("/no/such/server --port 1"), folder.path().join("log")).unwrap();
    let error = Server::start(command, &|| false).unwrap_err().to_string();
    assert!(error.starts_with("start the server `/no/such/server`: No such file"), "{error}");
}

#[test]
fn the_address_is_read_from_the_command() {
    for (argv, expected) in [
        ("vllm serve m", "http://localhost:8000"),
        ("vllm serve m --host 0.0.0.0 --port 81", "http://localhost:81"),
        ("infinity_emb v2 -p 7997 --host=127.0.0.1", "http://127.0.0.1:7997"),
        ("llama-server --host ::1 --port=8080", "http://[::1]:8080"),
    ] {
        assert_eq!(address(&words(argv)), expected);
    }
}
