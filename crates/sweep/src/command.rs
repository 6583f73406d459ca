use crate::Server;
use crate::server::{ServerError, open_log, tail, told};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use tailbound_clock::Dur;
use tailbound_os::group::{Group, Signal};
use tailbound_os::{clock, sleep};

/// A command that comes to an end by itself: a benchmark, or what follows one.
#[derive(Clone, Debug)]
pub struct Step {
    /// Program and arguments; no shell reads them.
    pub argv: Vec<String>,
    /// What it says, on both streams, is appended to this file.
    pub log: PathBuf,
}

/// Why a step has no result.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The command names no program.
    #[error("run it: the command is empty")]
    Empty,
    /// What it says has no place to go.
    #[error("write the log {}: {problem}", path.display())]
    Log {
        /// Where.
        path: PathBuf,
        /// What the system says.
        problem: io::Error,
    },
    /// It could not be started at all.
    #[error("start `{program}`: {problem}")]
    Spawn {
        /// The program.
        program: String,
        /// What the system says.
        problem: io::Error,
    },
    /// The server beside it died; what was measured since is worth nothing.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The caller wants no more.
    #[error("finish: interrupted")]
    Stopped,
}

/// How long a step that is not wanted any more may take to end.
const GRACE: Dur = Dur::from_secs(2);
const PAUSE: Dur = Dur::from_ms(10);

impl Step {
    /// Runs it to its end beside a server, if there is one. Whatever happens, nothing of it is left.
    ///
    /// # Errors
    /// It could not be started, the server died, or `stopped` said so.
    pub fn run(&self, mut server: Option<&mut Server>, stopped: &dyn Fn() -> bool) -> Result<ExitStatus, StepError> {
        let (program, arguments) = self.argv.split_first().ok_or(StepError::Empty)?;
        let (out, err) = open_log(&self.log)
            .and_then(|file| Ok((file.try_clone()?, file)))
            .map_err(|problem| StepError::Log { path: self.log.clone(), problem })?;
        let mut process = Command::new(program);
        process.args(arguments).stdin(Stdio::null()).stdout(out).stderr(err);
        let mut group =
            Group::spawn(&mut process).map_err(|problem| StepError::Spawn { program: program.clone(), problem })?;
        loop {
            if let Ok(Some(status)) = group.ended() {
                return Ok(status);
            }
            let why = match server.as_deref_mut().map(Server::check) {
                Some(Err(died)) => Some(died.into()),
                _ if stopped() => Some(StepError::Stopped),
                _ => None,
            };
            if let Some(why) = why {
                end(&mut group);
                return Err(why);
            }
            sleep::until(clock::now() + PAUSE);
        }
    }
}

/// SIGTERM, and SIGKILL to what is left after the grace (by dropping it).
fn end(group: &mut Group) {
    group.signal(Signal::Terminate);
    let deadline = clock::now() + GRACE;
    while clock::now() < deadline && !group.ended().is_ok_and(|status| status.is_some()) {
        sleep::until(clock::now() + PAUSE);
    }
}

/// How a step that failed ended, with the end of what it said.
pub fn complaint(status: &ExitStatus, log: &Path) -> String {
    format!("it {}; the end of its log {}:\n{}", told(status), log.display(), tail(log))
}
