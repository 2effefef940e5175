//! Starts a program so that it waits until the recording is on.
//!
//! To follow the program, the recorder has to know its pid before its first instruction. So the recorder starts itself
//! as `sigmund hold GATE PROGRAM …`. That process connects to the recorder's socket, waits for a byte, and then becomes
//! the program by `exec`, with the same pid. If the program has to run as another user, `hold` becomes that user first.
//!
//! While anything here waits, signals are handled: a program may be stopped at the gate, or be on a disk that does not
//! answer.

use std::{
    ffi::OsStr,
    io::{ErrorKind, Read, Write},
    os::unix::{
        net::{UnixListener, UnixStream},
        process::CommandExt,
    },
    path::Path,
    process::{Child, Command, ExitStatus},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid as KernelPid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use sigmund_model::Pid;
use sigmund_user::Ids;

use super::{
    schemata,
    signals::{Asked, Signals},
    user,
};
use crate::{
    Found,
    cli::{HoldArgs, RecordArgs},
    output,
};

/// How long the `hold` process may take to reach the gate.
const AT_THE_GATE_WITHIN: Duration = Duration::from_secs(10);
/// Maximum length of the error of `hold` when it cannot execute the program.
const MAX_REASON: usize = 4096;

/// The program, waiting at the gate or started.
pub(super) struct GatedProgram {
    name: String,
    child: Child,
    /// The gate, until the program begins.
    gate: Option<UnixStream>,
    /// The bytes that were received through the gate: the reason why the program cannot begin.
    reason: Vec<u8>,
    asked: u32,
}

/// The effect of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupted {
    /// The program was asked to end, or killed, so it will end soon.
    Ending,
    /// It was killed earlier and has not ended.
    KilledBefore,
}

impl GatedProgram {
    /// Starts the program, which stops at the gate. A signal ends the wait for it.
    pub(super) fn start(args: &RecordArgs, arenas: &Path, signals: &Signals) -> Result<GatedProgram> {
        let run_as = args.user.as_deref().map(user::find).transpose()?;
        let path = arenas.join("gate");
        let listener = UnixListener::bind(&path).with_context(|| path.display().to_string())?;
        listener.set_nonblocking(true)?;
        let myself = std::env::current_exe().context("finding the sigmund program")?;
        let mut command = Command::new(myself);
        command.arg("hold");
        if let Some(user) = &run_as {
            command.arg("--become").arg(user.ids().to_string());
            user::set_environment(user, &mut command);
        }
        command.arg(&path).arg("--").args(&args.program);
        command.env(fut::ENV_ARENA_DIR, arenas);
        command.env(fut::ENV_PACKETS, (args.user_buffer / 64).to_string());
        command.env(fut::ENV_MODE, if args.flight { "overwrite" } else { "discard" });
        if let Some(keys) = schemata::keys(args) {
            command.env(fut::ENV_KEYMASK, keys);
        }
        let child = command.spawn().context("starting the program")?;
        let name = args.program[0].display().to_string();
        let mut held = GatedProgram { name, child, gate: None, reason: Vec::new(), asked: 0 };
        match held.wait_at(&listener, signals) {
            Ok(gate) => held.gate = Some(gate),
            Err(error) => {
                held.kill();
                return Err(error);
            }
        }
        if let Some(user) = &run_as {
            held.name = format!("{} as {}", held.name, user.name());
        }
        Ok(held)
    }

    /// Waits until the program is at the gate.
    fn wait_at(&mut self, listener: &UnixListener, signals: &Signals) -> Result<UnixStream> {
        let started = Instant::now();
        loop {
            match listener.accept() {
                Ok((gate, _)) => {
                    gate.set_nonblocking(true)?;
                    return Ok(gate);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("waiting for the program"),
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the program ended before it started: {status}");
            }
            if signals.next_within(Duration::from_millis(1)).is_some() {
                bail!("stopped before the program started");
            }
            if started.elapsed() > AT_THE_GATE_WITHIN {
                let pid = self.child.id();
                bail!(
                    "process {pid}, which is to execute the program, has not connected within 10 s; it may be stopped"
                );
            }
        }
    }

    /// The name of the program, as it was called.
    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    pub(super) fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    /// Opens the gate.
    pub(super) fn release(&mut self) -> Result<()> {
        // It never blocks, because it is the first byte in an empty buffer.
        self.gate.as_mut().map_or(Ok(()), |gate| gate.write_all(&[1]).context("letting the program start"))
    }

    /// Whether the program has begun.
    ///
    /// # Errors
    /// If it cannot start, e.g. because there is no such program.
    pub(super) fn has_begun(&mut self) -> Result<bool> {
        let Some(gate) = &mut self.gate else { return Ok(true) };
        let mut bytes = [0; 512];
        loop {
            match gate.read(&mut bytes) {
                // When `hold` becomes the program, its end of the socket is closed. If it cannot, it first sends the
                // reason.
                Ok(0) => break,
                Ok(len) if self.reason.len() < MAX_REASON => self.reason.extend(&bytes[..len]),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("watching the program start"),
            }
        }
        self.gate = None;
        if self.reason.is_empty() {
            Ok(true)
        } else {
            Err(anyhow!("{}", String::from_utf8_lossy(&self.reason)))
        }
    }

    /// Whether it has ended. Its pid remains reserved until [`ended`](GatedProgram::ended) returns its status.
    pub(super) fn has_ended(&self) -> Result<bool> {
        let Some(pid) = self.kernel_pid() else { return Ok(false) };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(pid), options).context("waiting for the program")?.is_some())
    }

    /// Its exit status, if it has ended.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("waiting for the program")
    }

    /// The user wants to stop. The first time, the program is asked to end; the second time, it is killed.
    pub(super) fn interrupt(&mut self, asked: Asked) -> Interrupted {
        self.asked += 1;
        let is_again = self.asked > 1;
        output::notice(match self.asked {
            1 => "stopping the program; a second signal kills it",
            _ => "killing the program; one more signal ends the recording at once",
        });
        if is_again || !asked.program_knows {
            self.send(if is_again { Signal::KILL } else { asked.signal });
        }
        if self.asked > 2 { Interrupted::KilledBefore } else { Interrupted::Ending }
    }

    /// The time of the recording is over. A program that has begun continues. A process that has not executed the
    /// program yet is killed.
    ///
    /// # Errors
    /// When the program has not begun.
    pub(super) fn leave(&mut self) -> Result<()> {
        if self.gate.is_none() {
            return Ok(());
        }
        self.kill();
        bail!("{}: not started when the time was over; its disk may not answer", self.name)
    }

    fn kernel_pid(&self) -> Option<KernelPid> {
        i32::try_from(self.child.id()).ok().and_then(KernelPid::from_raw)
    }

    fn send(&self, signal: Signal) {
        if let Some(pid) = self.kernel_pid() {
            // If it has just ended, that is what was wanted. Its pid cannot belong to another process before it was
            // waited for.
            let _ = kill_process(pid, signal);
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        // A process in an uninterruptible sleep in the kernel cannot be killed, so it is not waited for.
        let given_up = Instant::now() + Duration::from_secs(1);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < given_up {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for GatedProgram {
    fn drop(&mut self) {
        // A program that was never let through would wait forever.
        if self.gate.is_some() {
            self.kill();
        }
    }
}

/// `sigmund hold`: waits at the gate, and becomes the program.
pub(crate) fn hold(args: &HoldArgs) -> Result<Found> {
    let mut gate = UnixStream::connect(&args.gate).with_context(|| args.gate.display().to_string())?;
    match gate.read_exact(&mut [0]) {
        Ok(()) => {}
        // The recorder will not start the program. It has reported the reason, or was killed.
        Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
            return Ok(Found::Damaged);
        }
        Err(error) => return Err(error).context("waiting for the recorder"),
    }
    let program: &OsStr = &args.program[0];
    let why = match args.ids.as_ref().map_or(Ok(()), Ids::become_them) {
        Ok(()) => Command::new(program).args(&args.program[1..]).exec(),
        Err(error) => error,
    };
    write!(gate, "cannot start {}: {why}", program.display()).context("reporting to the recorder")?;
    Ok(Found::Damaged)
}
