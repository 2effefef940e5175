//! Who is recorded: a program that is started for it, a process that runs already, or the whole machine.

use std::{
    fs::{self, File},
    os::fd::OwnedFd,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::ExitStatus,
};

use anyhow::{Context, Result, anyhow};
use fkt_ingest::live::Scope;
use fut::control::Process;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid as KernelPid, PidfdFlags, pidfd_open},
};
use sigmund_merge::UserSide;
use sigmund_model::Pid;

use super::{gate::Held, signals::Asked};
use crate::{cli::RecordArgs, output};

/// Who is recorded.
pub(super) enum Subject {
    Program(Held),
    Process(Running),
    System,
}

/// A process that runs already.
pub(super) struct Running {
    pid: Pid,
    /// Readable when it has ended, whoever has its number then.
    handle: OwnedFd,
}

impl Subject {
    /// Finds the process, or starts the program, which waits at its gate.
    pub(super) fn choose(args: &RecordArgs, arenas: &Path) -> Result<Subject> {
        match args.pid {
            _ if args.all => Ok(Subject::System),
            Some(pid) => Ok(Subject::Process(Running::find(Pid(pid))?)),
            None => Ok(Subject::Program(Held::start(args, arenas)?)),
        }
    }

    /// Whose kernel events are recorded.
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

    /// Whether it has arenas to drain: only what was started with them has.
    pub(super) fn is_drained(&self) -> bool {
        matches!(self, Subject::Program(_))
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

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<String>> {
        match self {
            Subject::Program(held) => Ok(held.ended()?.as_ref().map(how)),
            Subject::Process(running) => Ok(running.has_ended()?.then(|| "ended".into())),
            Subject::System => Ok(None),
        }
    }

    /// Somebody wants the recording to stop. A program is asked to; `Some` says that the recording need not wait.
    pub(super) fn stop(&mut self, asked: Asked) -> Option<String> {
        match self {
            Subject::Program(held) => {
                held.interrupt(asked);
                None
            }
            Subject::Process(_) | Subject::System => Some("goes on".into()),
        }
    }

    /// What a process recorded itself, if the recorder did not drain it: the last of its flight recorder.
    pub(super) fn user_side(&self, run: &Path) -> Option<UserSide> {
        match self {
            Subject::Process(running) => running.user_side(run),
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

    fn command(&self) -> Vec<String> {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    fn has_ended(&self) -> Result<bool> {
        let mut wait = [PollFd::new(&self.handle, PollFlags::IN)];
        Ok(poll(&mut wait, Some(&Timespec::default())).with_context(|| format!("process {}", self.pid))? > 0)
    }

    fn user_side(&self, run: &Path) -> Option<UserSide> {
        let file = format!("user-{}.fut", self.pid);
        let path = run.join(&file);
        let snapshot = || -> Result<UserSide> {
            let process = Process::find(self.pid.0)?;
            let reply = process.snapshot(&File::create_new(&path)?)?;
            let number = |fact| reply.number(fact).unwrap_or(0);
            let (lost, unfinished) = (number("lost"), number("unfinished"));
            Ok(UserSide { file, pid: self.pid.0, lost, unfinished, unwritten: 0 })
        };
        match snapshot() {
            Ok(side) => Some(side),
            Err(error) => {
                // It is empty, if it was made at all.
                let _ = fs::remove_file(&path);
                output::say(&format!("no events of the process itself: {error:#}"));
                None
            }
        }
    }
}

fn how(status: &ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
