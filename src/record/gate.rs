//! A program that waits until the recording is on.
//!
//! The recorder has to know the program's pid before its first instruction, to follow it. So it starts itself as
//! `sigmund hold GATE PROGRAM …`, which connects to the recorder's socket, waits for a byte, and becomes the program:
//! same pid, nothing left of it.

use std::{
    ffi::OsStr,
    io::{ErrorKind, Read, Write},
    os::unix::{
        net::{UnixListener, UnixStream},
        process::CommandExt,
    },
    path::Path,
    process::{Child, Command, ExitStatus},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid as KernelPid, Signal, kill_process};
use sigmund_model::Pid;

use super::signals::Asked;
use crate::{
    Found,
    cli::{HoldArgs, RecordArgs},
    output,
};

/// A program at the gate, or behind it.
pub(super) struct Held {
    name: String,
    child: Child,
    gate: Option<UnixStream>,
    interrupted: bool,
}

impl Held {
    /// Starts the program; it stops at the gate.
    pub(super) fn start(args: &RecordArgs, arenas: &Path) -> Result<Held> {
        let path = arenas.join("gate");
        let listener = UnixListener::bind(&path).with_context(|| path.display().to_string())?;
        listener.set_nonblocking(true)?;
        let myself = std::env::current_exe().context("finding the sigmund program")?;
        let mut command = Command::new(myself);
        command.arg("hold").arg(&path).arg("--").args(&args.program);
        command.env(fut::ENV_ARENA_DIR, arenas);
        command.env(fut::ENV_PACKETS, (args.user_buffer / 64).to_string());
        command.env(fut::ENV_MODE, if args.flight { "overwrite" } else { "discard" });
        let mut child = command.spawn().context("starting the program")?;
        let gate = loop {
            match listener.accept() {
                Ok((gate, _)) => break gate,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    thread::sleep(Duration::from_millis(1))
                }
                Err(error) => return Err(error).context("waiting for the program"),
            }
            if let Some(status) = child.try_wait()? {
                bail!("the program ended before it began: {status}");
            }
        };
        let name = args.program[0].display().to_string();
        Ok(Held { name, child, gate: Some(gate), interrupted: false })
    }

    /// The program, as it was called.
    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    pub(super) fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    /// Opens the gate.
    pub(super) fn release(&mut self) -> Result<()> {
        let Some(mut gate) = self.gate.take() else { return Ok(()) };
        gate.write_all(&[1]).context("letting the program start")?;
        // Its end of the socket closes when it becomes the program; before, it says why it cannot.
        let mut why = String::new();
        gate.set_nonblocking(false)?;
        gate.read_to_string(&mut why).context("watching the program start")?;
        if why.is_empty() { Ok(()) } else { Err(anyhow!("{why}")) }
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("waiting for the program")
    }

    /// The user wants to stop: the program is asked once, and killed when asked again.
    pub(super) fn interrupt(&mut self, asked: Asked) {
        let signal = if self.interrupted { Signal::KILL } else { asked.signal };
        output::say(if self.interrupted {
            "killing the program"
        } else {
            "stopping; once more kills the program"
        });
        let pid = i32::try_from(self.child.id()).ok().and_then(KernelPid::from_raw);
        if let Some(pid) = pid.filter(|_| self.interrupted || !asked.program_knows) {
            // If it has just ended, that is what was wanted.
            let _ = kill_process(pid, signal);
        }
        self.interrupted = true;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A program that was never let through would wait for ever.
        if self.gate.take().is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// `sigmund hold`: waits at the gate, and becomes the program.
pub(crate) fn hold(args: &HoldArgs) -> Result<Found> {
    let mut gate = UnixStream::connect(&args.gate).with_context(|| args.gate.display().to_string())?;
    // The recorder that dies lets nobody through.
    gate.read_exact(&mut [0]).context("the recorder is gone")?;
    let program: &OsStr = &args.program[0];
    let error = Command::new(program).args(&args.program[1..]).exec();
    write!(gate, "cannot start {}: {error}", program.display()).context("telling the recorder")?;
    Ok(Found::Damaged)
}
