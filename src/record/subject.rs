//! The subject of a recording: a program that is started for it, a running process, or the whole machine.

use std::{
    fs,
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    path::Path,
    process::ExitStatus,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use fkt_ingest::live::Scope;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid as KernelPid, PidfdFlags, pidfd_open},
};
use sigmund_model::Pid;

use super::{
    gate::{GatedProgram, Interrupted},
    signals::{Asked, Signals},
    work::Work,
};
use crate::cli::RecordArgs;

/// The end of the subject in the manifest, if the recording ended before the subject.
pub(super) const GOES_ON: &str = "goes on";

/// How long it may take to read the command line of a process.
const COMMAND_WITHIN: Duration = Duration::from_secs(1);

/// The subject of a recording.
pub(super) enum Subject {
    Program(GatedProgram),
    Process(Running),
    System,
}

/// When the recording ends after a request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// When the program has ended. It was asked to end.
    AtItsEnd,
    /// Now. The subject continues.
    Now,
    /// Now, without completing anything.
    AtOnce,
}

/// A process that was already running.
pub(super) struct Running {
    pid: Pid,
    /// A pidfd: it becomes readable when the process has ended, even if another process has its pid by then.
    handle: OwnedFd,
}

impl Subject {
    /// Finds the process, or starts the program, which waits at its gate. `arenas` is the folder for the program's
    /// arenas.
    pub(super) fn choose(args: &RecordArgs, arenas: Option<&Path>, signals: &Signals) -> Result<Subject> {
        match (args.pid, arenas) {
            (Some(pid), _) => Ok(Subject::Process(Running::find(Pid(pid))?)),
            (None, Some(arenas)) => Ok(Subject::Program(GatedProgram::start(args, arenas, signals)?)),
            (None, None) => Ok(Subject::System),
        }
    }

    /// The processes whose kernel events are recorded.
    pub(super) fn scope(&self, only: bool) -> Scope {
        match self.pid() {
            None => Scope::System,
            Some(pid) if only => Scope::Only(pid),
            Some(pid) => Scope::Program(pid),
        }
    }

    pub(super) fn pid(&self) -> Option<Pid> {
        match self {
            Subject::Program(held) => Some(held.pid()),
            Subject::Process(running) => Some(running.pid),
            Subject::System => None,
        }
    }

    /// The command line.
    pub(super) fn command(&self, args: &RecordArgs) -> Vec<String> {
        match self {
            Subject::Program(_) => args.program.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            Subject::Process(running) => running.command(),
            Subject::System => Vec::new(),
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Subject::Program(held) => held.name(),
            Subject::Process(running) => format!("process {}", running.pid),
            Subject::System => "the whole machine".into(),
        }
    }

    /// Lets a program begin.
    pub(super) fn release(&mut self) -> Result<()> {
        match self {
            Subject::Program(held) => held.release(),
            Subject::Process(_) | Subject::System => Ok(()),
        }
    }

    /// Whether the program has begun.
    ///
    /// # Errors
    /// When it cannot.
    pub(super) fn has_begun(&mut self) -> Result<bool> {
        match self {
            Subject::Program(held) => held.has_begun(),
            Subject::Process(_) | Subject::System => Ok(true),
        }
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> Result<bool> {
        match self {
            Subject::Program(held) => held.has_ended(),
            Subject::Process(running) => running.has_ended(),
            Subject::System => Ok(false),
        }
    }

    /// How it ended. After this call, its pid may belong to another process.
    pub(super) fn ended(&mut self) -> Result<String> {
        match self {
            Subject::Program(held) => Ok(held.ended()?.map_or_else(|| GOES_ON.into(), |status| how(&status))),
            Subject::Process(_) | Subject::System => Ok("ended".into()),
        }
    }

    /// Handles a request to stop. A program is asked to end.
    pub(super) fn stop(&mut self, asked: Asked) -> Stop {
        match self {
            Subject::Program(held) => match held.interrupt(asked) {
                Interrupted::Ending => Stop::AtItsEnd,
                Interrupted::KilledBefore => Stop::AtOnce,
            },
            Subject::Process(_) | Subject::System => Stop::Now,
        }
    }

    /// Ends the recording while the subject continues.
    ///
    /// # Errors
    /// When the subject has not begun yet.
    pub(super) fn leave(&mut self) -> Result<()> {
        match self {
            Subject::Program(held) => held.leave(),
            Subject::Process(_) | Subject::System => Ok(()),
        }
    }

    /// The process that has to be asked for the events that it recorded itself.
    pub(super) fn to_be_asked(&self) -> Option<Pid> {
        match self {
            Subject::Process(running) => Some(running.pid),
            Subject::Program(_) | Subject::System => None,
        }
    }
}

impl Running {
    fn find(pid: Pid) -> Result<Running> {
        let number = i32::try_from(pid.0).ok().and_then(KernelPid::from_raw);
        let number = number.ok_or_else(|| anyhow!("process {pid}: there is no such process"))?;
        let handle = pidfd_open(number, PidfdFlags::empty()).with_context(|| format!("process {pid}"))?;
        Ok(Running { pid, handle })
    }

    /// The command line. It is in the memory of the process, and reading that may never end (for example if it is a
    /// file of a user-space file system). So the wait for it is short.
    fn command(&self) -> Vec<String> {
        let path = format!("/proc/{}/cmdline", self.pid);
        let read = Work::start("command line", move || fs::read(path).unwrap_or_default());
        let line = read.and_then(|read| read.within(COMMAND_WITHIN)).ok().flatten().unwrap_or_default();
        let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    fn has_ended(&self) -> Result<bool> {
        let mut wait = [PollFd::new(&self.handle, PollFlags::IN)];
        Ok(poll(&mut wait, Some(&Timespec::default())).with_context(|| format!("process {}", self.pid))? > 0)
    }
}

fn how(status: &ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
