use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use tailbound_client::{ClientError, Target, fetch};
use tailbound_clock::Dur;
use tailbound_os::group::{Group, Signal};
use tailbound_os::{clock, sleep};

/// How to run a server, and how to know that it is ready.
#[derive(Clone, Debug)]
pub struct ServerCommand {
    /// Program and arguments; no shell reads them.
    pub argv: Vec<String>,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// What it says, on both streams, is appended to this file.
    pub log: PathBuf,
    /// Where it listens.
    pub target: Target,
    /// The path that answers with a status of 2xx once it is ready.
    pub ready_path: String,
    /// How long that may take.
    pub ready_timeout: Dur,
    /// How long it may take to end after SIGTERM before SIGKILL ends it.
    pub grace: Dur,
}

impl ServerCommand {
    /// A command whose address is read from its own arguments ([`address`]), ready when `/health` says so, within 300 s.
    ///
    /// # Errors
    /// The address is none.
    pub fn new(argv: Vec<String>, log: PathBuf) -> Result<ServerCommand, ClientError> {
        Ok(ServerCommand {
            target: Target::parse(&address(&argv))?,
            argv,
            env: Vec::new(),
            log,
            ready_path: "/health".into(),
            ready_timeout: Dur::from_secs(300),
            grace: Dur::from_secs(10),
        })
    }
}

/// The base URL a server's arguments say it listens at: `--host` (localhost if there is none, or if it is every address) and
/// `--port` or `-p` (8000), each as `--port 1` or `--port=1`.
pub fn address(argv: &[String]) -> String {
    let value = |names: &[&str]| {
        argv.iter().enumerate().find_map(|(i, arg)| match arg.split_once('=') {
            Some((name, value)) if names.contains(&name) => Some(value.to_owned()),
            None if names.contains(&arg.as_str()) => argv.get(i + 1).cloned(),
            _ => None,
        })
    };
    let host = match value(&["--host"]).as_deref() {
        None | Some("0.0.0.0" | "::" | "[::]") => "localhost".to_owned(),
        Some(v6) if v6.contains(':') && !v6.starts_with('[') => format!("[{v6}]"),
        Some(host) => host.to_owned(),
    };
    format!("http://{host}:{}", value(&["--port", "-p"]).unwrap_or_else(|| "8000".into()))
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The command names no program.
    #[error("start the server: its command is empty")]
    Empty,
    /// Its output has no place to go.
    #[error("write the server's log {}: {problem}", path.display())]
    Log {
        /// Where.
        path: PathBuf,
        /// What the system says.
        problem: io::Error,
    },
    /// It could not be started at all.
    #[error("start the server `{program}`: {problem}")]
    Spawn {
        /// The program.
        program: String,
        /// What the system says.
        problem: io::Error,
    },
    /// Somebody else listens where it would: its readiness would be the other's.
    #[error("start the server: something already answers at {address}")]
    Taken {
        /// Where.
        address: String,
    },
    /// It ended by itself.
    #[error("keep the server running: it {} after {after}; the end of its log {}:\n{tail}", told(.status), log.display())]
    Died {
        /// How.
        status: ExitStatus,
        /// How long it lived.
        after: Dur,
        /// The whole log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// It lives, and isn't ready.
    #[error("reach the server at {address}: not ready within {limit} ({last}); the end of its log {}:\n{tail}", log.display())]
    NotReady {
        /// Where.
        address: String,
        /// The limit.
        limit: Dur,
        /// What the last attempt said.
        last: String,
        /// The whole log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// The caller wants no more.
    #[error("start the server: interrupted")]
    Stopped,
}

pub(crate) fn told(status: &ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended".into(),
    }
}

/// A server that answers. However this is dropped, and however this process ends, nothing of the server is left.
#[derive(Debug)]
pub struct Server {
    group: Group,
    command: ServerCommand,
    started: tailbound_clock::Time,
}

/// Between two looks at a server that is starting or ending.
const PAUSE: Dur = Dur::from_ms(50);

impl Server {
    /// Starts a server and waits until it is ready, or `stopped` says that nobody waits any more.
    ///
    /// # Errors
    /// It cannot be started, dies, isn't ready in time, or the address is taken; what it said last is part of the error.
    pub fn start(command: ServerCommand, stopped: &dyn Fn() -> bool) -> Result<Server, ServerError> {
        let (program, arguments) = command.argv.split_first().ok_or(ServerError::Empty)?;
        if fetch(&command.target, &command.ready_path, None, Dur::from_secs(1)).is_ok() {
            return Err(ServerError::Taken { address: command.target.to_string() });
        }
        let (out, err) = open_log(&command.log)
            .and_then(|file| Ok((file.try_clone()?, file)))
            .map_err(|problem| ServerError::Log { path: command.log.clone(), problem })?;
        let mut process = Command::new(program);
        process.args(arguments).envs(command.env.iter().map(|(k, v)| (k, v)));
        process.stdin(Stdio::null()).stdout(out).stderr(err);
        let group =
            Group::spawn(&mut process).map_err(|problem| ServerError::Spawn { program: program.clone(), problem })?;
        let mut server = Server { group, command, started: clock::now() };
        server.await_ready(stopped)?;
        Ok(server)
    }

    fn await_ready(&mut self, stopped: &dyn Fn() -> bool) -> Result<(), ServerError> {
        let deadline = self.started + self.command.ready_timeout;
        loop {
            self.check()?;
            if stopped() {
                return Err(ServerError::Stopped);
            }
            let last = match fetch(&self.command.target, &self.command.ready_path, None, Dur::from_secs(2)) {
                Ok(reply) if (200..300).contains(&reply.status) => return Ok(()),
                Ok(reply) => format!("{} answered with status {}", self.command.ready_path, reply.status),
                Err(e) => format!("failed to {e}"),
            };
            if clock::now() >= deadline {
                return Err(ServerError::NotReady {
                    address: self.command.target.to_string(),
                    limit: self.command.ready_timeout,
                    last,
                    log: self.command.log.clone(),
                    tail: tail(&self.command.log),
                });
            }
            sleep::until(clock::now() + PAUSE);
        }
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// It has ended; how, and what it said last.
    pub fn check(&mut self) -> Result<(), ServerError> {
        match self.group.ended() {
            Ok(None) | Err(_) => Ok(()),
            Ok(Some(status)) => Err(ServerError::Died {
                status,
                after: clock::now().since(self.started),
                log: self.command.log.clone(),
                tail: tail(&self.command.log),
            }),
        }
    }

    /// How it was started.
    pub fn command(&self) -> &ServerCommand {
        &self.command
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.group.id()
    }

    /// Ends it: SIGTERM to all its processes, and after the grace SIGKILL.
    pub fn stop(mut self) {
        self.group.signal(Signal::Terminate);
        let deadline = clock::now() + self.command.grace;
        while clock::now() < deadline {
            let ended = self.group.ended().is_ok_and(|status| status.is_some());
            if ended && self.group.alive().is_empty() {
                break;
            }
            sleep::until(clock::now() + PAUSE);
        }
    }
}

pub(crate) fn open_log(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    File::options().create(true).append(true).open(path)
}

/// The last lines of a file, indented: twenty at most, and not more than 4 KiB.
pub(crate) fn tail(path: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(4096)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = match read() {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) => return format!("    (failed to read it: {e})"),
    };
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return "    (it is empty)".into();
    }
    let last = &lines[lines.len().saturating_sub(20)..];
    last.iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
