//! What a test needs to record the real kernel: the right to, the machine for itself, and a look at what is left.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// Recordings of the kernel would disturb each other's load. What is asked of one later does not: a test lets go then.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits until no other test records the kernel.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    // A test that failed has left nothing behind that matters here.
    ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The machine for itself, and the right to record the kernel; aloud if not.
pub(crate) fn as_root() -> Option<MutexGuard<'static, ()>> {
    may_record().then(alone)
}

/// Whether it may record the kernel, for a test that asks for the machine each time it does; aloud if not.
pub(crate) fn may_record() -> bool {
    needs(is_root(), "recording the kernel needs root")
}

/// Whether a test can go on. If not, it says so; on CI it fails.
pub(crate) fn needs(condition: bool, what: &str) -> bool {
    if !condition {
        crate::skipped::skipped(what);
    }
    condition
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn has_tool(tool: &str) -> bool {
    let status = Command::new(tool).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
    needs(status.is_ok(), &format!("needs {tool}"))
}

/// What a recorder has in tracefs and shared memory: while it runs, or left behind.
pub(crate) fn held_by(recorder: u32) -> Vec<String> {
    let names = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let instance = format!("sigmund-{recorder}-");
    let arenas = format!("sigmund-arenas-{recorder}-");
    let instances = names("/sys/kernel/tracing/instances").into_iter().filter(|n| n.starts_with(&instance));
    instances.chain(names("/dev/shm").into_iter().filter(|n| n.starts_with(&arenas))).collect()
}

/// Waits until the recorder's program runs, with this word as its first or second on the command line.
pub(crate) fn program_of(recorder: u32, word: &str) -> Process {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        let children = fs::read_to_string(format!("/proc/{recorder}/task/{recorder}/children"));
        for child in children.unwrap_or_default().split_whitespace() {
            let command = fs::read_to_string(Path::new("/proc").join(child).join("cmdline"));
            // Before it is the program, it is `sigmund hold GATE -- PROGRAM …`.
            if command.unwrap_or_default().split('\0').take(2).any(|w| w == word) {
                return Process(child.parse().unwrap());
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("the recorder {recorder} started no program {word}");
}

/// A process of ours that may outlive its parent: killed when this goes.
pub(crate) struct Process(u32);

impl Process {
    /// Starts a program that says nothing and is told nothing.
    pub(crate) fn start(command: &mut Command) -> Process {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Process(child.unwrap_or_else(|e| panic!("{command:?}: {e}")).id())
    }

    /// A child that is waited for by the caller.
    pub(crate) fn of(child: &std::process::Child) -> Process {
        Process(child.id())
    }

    pub(crate) fn number(&self) -> u32 {
        self.0
    }

    /// Waits until it has more than so many LWPs, or has ended. A large program takes a while, and CPU time, to begin.
    pub(crate) fn wait_for_more_lwps_than(&self, number: usize) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            let Ok(lwps) = fs::read_dir(format!("/proc/{}/task", self.0)) else { return };
            if lwps.count() > number {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until it has used so much CPU time (to 10 ms: `utime` and `stime` of proc_pid_stat(5)) from now on, or has
    /// ended.
    pub(crate) fn wait_for_cpu_time(&self, enough: Duration) {
        let Some(before) = self.cpu_time() else { return };
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            if self.cpu_time().is_none_or(|now| now - before >= enough) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// `None` if it has ended.
    fn cpu_time(&self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).ok()?;
        // The name may have anything in it. After it, from the state on, these are the 12th and 13th.
        let (_, rest) = stat.rsplit_once(')')?;
        let ticks = rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok());
        Some(Duration::from_millis(10 * ticks.sum::<u64>()))
    }

    pub(crate) fn kill(&self) {
        self.send(Signal::KILL);
    }

    pub(crate) fn send(&self, signal: Signal) {
        // It may have ended by itself.
        let _ = kill_process(pid(self.0), signal);
    }

    /// Stops it, and waits until each of its threads is stopped: one that runs on another CPU goes on for a moment.
    pub(crate) fn stop(&self) {
        self.send(Signal::STOP);
        let start = Instant::now();
        while !self.is_stopped() {
            assert!(start.elapsed() < Duration::from_secs(20), "process {} does not stop", self.0);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_stopped(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.0)).into_iter().flatten().flatten();
        let mut states = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
        states.all(|stat| {
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't', 'Z', 'X']))
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn send(process: u32, signal: Signal) {
    kill_process(pid(process), signal).unwrap();
}

/// To a child that may have ended by itself; it has not been waited for.
pub(crate) fn try_send(process: u32, signal: Signal) {
    let _ = kill_process(pid(process), signal);
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(number.try_into().unwrap()).unwrap()
}
