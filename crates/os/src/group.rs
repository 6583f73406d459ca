//! Processes that must not outlive this one: each command leads its own session, and a guard ends what is left of it when this
//! process goes, however it goes.
//!
//! A terminal's Ctrl-C reaches only the foreground group, so a command of its own group gets no signal that wasn't meant for it.
//! `PR_SET_PDEATHSIG` would not do: it follows the thread that spawned, not the process, and reaches no grandchild. The guard is
//! a fork that waits for the end of a pipe whose other end only this process holds.

use crate::socket::check;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};

/// The variable by which every process of a group is known, even one that left session and parent behind.
const MARK: &str = "TAILBOUND_GROUP";

/// What is sent to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C's.
    Interrupt,
    /// The polite one.
    Terminate,
    /// The one that cannot be ignored.
    Kill,
}

/// A command, everything it started, and its guard. Dropping it kills what is left.
#[derive(Debug)]
pub struct Group {
    leader: Child,
    mark: String,
    guard: Guard,
}

impl Group {
    /// Starts a command as the leader of its own session.
    ///
    /// # Errors
    /// What the system says against it: mostly that there is no such program.
    pub fn spawn(command: &mut Command) -> io::Result<Group> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let guard = Guard::start()?;
        let now = crate::clock::now().ns();
        let mark = format!("{}-{now}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let told = guard.told.as_raw_fd();
        // SAFETY: between fork and exec only setsid, getpid and write are called; all are async-signal-safe. `told` is open then,
        // because `guard` lives until this function's end, and exec closes it.
        unsafe {
            command.env(MARK, &mark).pre_exec(move || {
                check(libc::setsid())?;
                let pid = libc::getpid().to_ne_bytes();
                match libc::write(told, pid.as_ptr().cast(), pid.len()) {
                    4 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            });
        }
        let leader = command.spawn()?;
        Ok(Group { leader, mark, guard })
    }

    /// The leader's process id, which is the group's too.
    pub fn id(&self) -> u32 {
        self.leader.id()
    }

    /// How the leader ended, if it has.
    ///
    /// # Errors
    /// None in practice: the leader is our child.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.leader.try_wait()
    }

    /// Signals every process of the group.
    pub fn signal(&self, signal: Signal) {
        let number = match signal {
            Signal::Interrupt => libc::SIGINT,
            Signal::Terminate => libc::SIGTERM,
            Signal::Kill => libc::SIGKILL,
        };
        // SAFETY: no memory is touched. Nobody left to be told is no error.
        unsafe { libc::kill(-(self.id() as libc::pid_t), number) };
        if signal == Signal::Kill {
            for pid in self.alive() {
                // SAFETY: as above; the process carries our mark.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        }
    }

    /// The processes that carry the group's mark and still run, in whatever session they are now.
    pub fn alive(&self) -> Vec<i32> {
        let wanted = format!("{MARK}={}", self.mark);
        let own = std::process::id() as i32;
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        // A zombie's environment reads as empty.
        let marked = |pid: &i32| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|env| env.split(|&b| b == 0).any(|variable| variable == wanted.as_bytes()))
        };
        pids.filter(|&pid| pid != own).filter(marked).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What forks while it is killed is found the next time.
        for _ in 0..10 {
            self.signal(Signal::Kill);
            let _ = self.leader.wait();
            if self.alive().is_empty() {
                break;
            }
        }
        self.guard.dismiss();
    }
}

/// The fork that outlives us for as long as it takes to end a group.
#[derive(Debug)]
struct Guard {
    pid: libc::pid_t,
    /// The pipe through which the group's id is told, and whose end is this process's end.
    told: OwnedFd,
}

impl Guard {
    fn start() -> io::Result<Guard> {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for two descriptors.
        check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
        // SAFETY: both were just opened and belong to nobody else.
        let (ear, told) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        // SAFETY: the child calls only async-signal-safe functions (see `watch`) and never returns.
        match check(unsafe { libc::fork() })? {
            0 => watch(ear.as_raw_fd()),
            pid => Ok(Guard { pid, told }),
        }
    }

    /// Ends it without its doing anything.
    fn dismiss(&self) {
        // SAFETY: no memory is touched but a null status; the guard is our child and not waited for elsewhere.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            while libc::waitpid(self.pid, std::ptr::null_mut(), 0) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

/// A guard whose group never came to be is dismissed by nobody else.
impl Drop for Guard {
    fn drop(&mut self) {
        self.dismiss();
    }
}

/// What the guard does: waits for the pipe's end, and then ends the group it was told of.
fn watch(ear: libc::c_int) -> ! {
    // SAFETY: only async-signal-safe calls on memory of this frame: the process is a fork of one that may have several threads.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"tb-guard".as_ptr());
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Every other descriptor would keep somebody's pipe or port open.
        libc::dup2(ear, 0);
        if libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0) < 0 {
            for fd in 1..1 << 16 {
                libc::close(fd);
            }
        }
        let mut group: libc::pid_t = 0;
        loop {
            match libc::read(0, (&raw mut group).cast(), size_of::<libc::pid_t>()) {
                0 => break,
                n if n < 0 && *libc::__errno_location() != libc::EINTR => break,
                _ => {}
            }
        }
        if group > 1 {
            libc::kill(-group, libc::SIGTERM);
            let pause = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let mut left = 100;
            while left > 0 && libc::kill(-group, 0) == 0 {
                libc::nanosleep(&pause, std::ptr::null_mut());
                left -= 1;
            }
            libc::kill(-group, libc::SIGKILL);
        }
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock, sleep};
    use tailbound_clock::Dur;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn wait_for(mut there: impl FnMut() -> bool) {
        let start = clock::now();
        while !there() {
            assert!(clock::now().since(start) < Dur::from_secs(10), "waited in vain");
            sleep::until(clock::now() + Dur::from_ms(5));
        }
    }

    #[test]
    fn dropping_a_group_ends_children_that_ignore_signals_and_left_the_session() {
        let mut group = Group::spawn(&mut shell("trap '' TERM INT; setsid sleep 1000 & sleep 1000 & wait")).unwrap();
        wait_for(|| group.alive().len() == 3);
        assert_eq!(group.ended().unwrap(), None);
        group.signal(Signal::Terminate);
        let marked = group.alive();
        drop(group);
        for pid in marked {
            wait_for(|| {
                fs::read(format!("/proc/{pid}/environ")).is_ok_and(|e| e.is_empty())
                    || fs::metadata(format!("/proc/{pid}")).is_err()
            });
        }
    }

    #[test]
    fn the_leader_gets_the_groups_signals_and_its_end_is_known() {
        let mut group = Group::spawn(&mut shell("trap 'exit 7' INT; while :; do sleep 0.01; done")).unwrap();
        wait_for(|| group.alive().len() > 1);
        group.signal(Signal::Interrupt);
        let mut status = None;
        wait_for(|| {
            status = group.ended().unwrap();
            status.is_some()
        });
        assert_eq!(status.and_then(|s| s.code()), Some(7));
    }

    #[test]
    fn a_command_that_is_not_there_is_an_error() {
        assert_eq!(Group::spawn(&mut Command::new("/no/such/program")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
