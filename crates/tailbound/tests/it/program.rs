//! Runs the binary, with an end to every wait and an eye on what must never be printed.

use std::ffi::OsStr;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use tailbound_clock::{Dur, Time};
use tailbound_os::{clock, sleep};

/// In every run's environment; in no run's output.
pub const KEY: &str = "sk-test-secret";

/// No run here takes longer unless it hangs.
const PATIENCE: Dur = Dur::from_secs(30);

/// What a run came to.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` if a signal killed it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Asserts the exit code, and shows everything if it is another.
    pub fn exits(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that the run failed before it began: one `error:` line that says all of `parts`, then at most notes and hints, and no result.
    pub fn refuses(self, code: i32, parts: &[&str]) -> Ended {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{}", self.stderr);
        let errors: Vec<&str> = self.stderr.lines().filter(|l| l.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{}", self.stderr);
        for part in parts {
            assert!(errors[0].contains(part), "`{part}` is not in `{}`", errors[0]);
        }
        for line in self.stderr.lines() {
            let known = ["error: ", "note: ", "  while: ", "  hint: "].iter().any(|start| line.starts_with(start));
            assert!(known, "an odd line: `{line}` in {}", self.stderr);
        }
        self
    }

    /// Asserts that the hint says `part`.
    pub fn hints(self, part: &str) -> Ended {
        let hint = self.stderr.lines().find(|l| l.starts_with("  hint: ")).unwrap_or_default();
        assert!(hint.contains(part), "`{part}` is not in the hint of {}", self.stderr);
        self
    }

    /// The result as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e} in {}{}", self.stdout, self.stderr))
    }

    /// The value of the report's line that begins with `name`.
    pub fn line(&self, name: &str) -> &str {
        let line = self.stdout.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
        line.unwrap_or_else(|| panic!("no line `{name}` in {}{}", self.stdout, self.stderr))
    }
}

/// A run that is under way.
pub struct Running {
    child: Child,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
}

/// The binary with nothing of this machine's in its environment.
pub fn command<S: AsRef<OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailbound"));
    for name in ["OPENAI_BASE_URL", "HF_TOKEN", "HF_ENDPOINT", "HF_HUB_CACHE", "CLICOLOR_FORCE", "NO_COLOR", "COLUMNS"]
    {
        command.env_remove(name);
    }
    command.env("OPENAI_API_KEY", KEY).env("HF_HUB_OFFLINE", "1").env("HF_HOME", "/nonexistent").args(args);
    command
}

/// Starts `command`, its output gathered.
pub fn start(mut command: Command) -> Running {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stdout, stderr) = (gather(child.stdout.take().unwrap()), gather(child.stderr.take().unwrap()));
    Running { child, stdout, stderr }
}

fn gather(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        text
    })
}

impl Running {
    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status().unwrap();
        assert!(kill.success());
    }

    /// Waits for its end. A run that doesn't end is killed, and the test fails.
    pub fn ended(mut self) -> Ended {
        let deadline = clock::now() + PATIENCE;
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            if clock::now() > deadline {
                self.child.kill().unwrap();
                let _ = self.child.wait();
                panic!("it hangs: {}{}", self.stdout.join().unwrap(), self.stderr.join().unwrap());
            }
            pause();
        };
        let ended = Ended { code, stdout: self.stdout.join().unwrap(), stderr: self.stderr.join().unwrap() };
        for text in [&ended.stdout, &ended.stderr] {
            assert!(!text.contains("panicked"), "{text}");
            assert!(!text.contains(KEY), "the key is shown: {text}");
        }
        ended
    }
}

/// Runs to the end.
pub fn run<S: AsRef<OsStr>>(args: &[S]) -> Ended {
    start(command(args)).ended()
}

/// `tailbound bench serve --base-url URL` and the flags, which are split at blanks.
pub fn bench(url: &str, flags: &str) -> Ended {
    run(&bench_args(url, flags))
}

/// The arguments of [`bench`].
pub fn bench_args(url: &str, flags: &str) -> Vec<String> {
    let all = format!("bench serve --base-url {url} {flags}");
    all.split_whitespace().map(str::to_owned).collect()
}

/// A short wait between two looks.
pub fn pause() {
    sleep::until(clock::now() + Dur::from_ms(10));
}

/// Waits until `there` says so.
pub fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let start: Time = clock::now();
    while !there() {
        assert!(clock::now().since(start) < PATIENCE, "waited in vain for {what}");
        pause();
    }
}
