//! Child processes, with the names of `std::process`. Waiting for one blocks the user thread, but not its LWP.
//!
//! ```
//! use fut::process::Command;
//!
//! let runtime = fut::Runtime::builder().lwps(1).build()?;
//! let output = runtime.run(|| Command::new("echo").arg("hello").output())?;
//! assert_eq!(output.stdout, b"hello\n");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The end of a child is an event of its pidfd (Linux 5.3), so SIGCHLD is left to the program. As in the standard
//! library, a child continues when its [`Child`] is dropped.

mod pipe;

use std::{
    ffi::OsStr,
    io::{self, Read},
    os::fd::OwnedFd,
    path::Path,
    process,
    process::{ExitStatus, Output, Stdio},
    time::Instant,
};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::{blocking, net::Readiness, runtime::here, scope};
pub use pipe::{ChildStderr, ChildStdin, ChildStdout};

/// A command to run, like [`std::process::Command`].
#[derive(Debug)]
pub struct Command {
    command: process::Command,
    streams: SetStreams,
}

/// Which of the command's standard streams were set. The standard library does not reveal that.
#[derive(Clone, Copy, Debug, Default)]
struct SetStreams {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    /// The standard library may have set others.
    is_unknown: bool,
}

impl From<process::Command> for Command {
    fn from(command: process::Command) -> Command {
        Command { command, streams: SetStreams { is_unknown: true, ..SetStreams::default() } }
    }
}

impl Command {
    /// A command that runs `program`, without arguments.
    pub fn new(program: impl AsRef<OsStr>) -> Command {
        Command { command: process::Command::new(program), streams: SetStreams::default() }
    }

    /// Adds an argument.
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Command {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(&mut self, args: impl IntoIterator<Item = A>) -> &mut Command {
        self.command.args(args);
        self
    }

    /// Sets a variable in the environment of the command.
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Command {
        self.command.env(key, value);
        self
    }

    /// Sets the working directory of the command.
    pub fn current_dir(&mut self, dir: impl AsRef<Path>) -> &mut Command {
        self.command.current_dir(dir);
        self
    }

    /// Sets the standard input of the command.
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Command {
        self.command.stdin(stdin);
        self.streams.stdin = true;
        self
    }

    /// Sets the standard output of the command.
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Command {
        self.command.stdout(stdout);
        self.streams.stdout = true;
        self
    }

    /// Sets the standard error of the command.
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Command {
        self.command.stderr(stderr);
        self.streams.stderr = true;
        self
    }

    /// The command of the standard library, for all other options.
    pub fn as_std_mut(&mut self) -> &mut process::Command {
        self.streams.is_unknown = true;
        &mut self.command
    }

    /// Starts the process. The call itself takes as long as `fork` and `exec` do.
    ///
    /// # Errors
    /// The errors of the standard library. If the kernel provides no pidfd: the process was started in this case, and is
    /// killed.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn(&mut self) -> io::Result<Child> {
        here("fut::process::Command::spawn");
        Child::new(self.command.spawn()?)
    }

    /// Runs the command to its end. It uses the standard streams of this process, unless others were set.
    ///
    /// # Errors
    /// Like [`spawn`](Command::spawn).
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn status(&mut self) -> io::Result<ExitStatus> {
        self.spawn()?.wait()
    }

    /// Runs the command to its end, and returns its output. The standard input is empty unless it was set. An output
    /// that was set is not returned.
    ///
    /// If this command was made by the standard library, or was changed through [`as_std_mut`](Command::as_std_mut),
    /// only the standard library knows which streams were set. Then it runs the command, in [`blocking`], which takes
    /// an LWP.
    ///
    /// # Errors
    /// Like [`spawn`](Command::spawn); those of reading.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn output(&mut self) -> io::Result<Output> {
        if self.streams.is_unknown {
            here("fut::process::Command::output");
            return blocking(|| self.command.output());
        }
        self.default_streams(Stdio::null, Stdio::piped);
        let child = self.spawn();
        // The defaults of `spawn` and `status`.
        self.default_streams(Stdio::inherit, Stdio::inherit);
        child?.wait_with_output()
    }

    /// Sets the streams that were not set.
    fn default_streams(&mut self, input: fn() -> Stdio, output: fn() -> Stdio) {
        if !self.streams.stdin {
            self.command.stdin(input());
        }
        if !self.streams.stdout {
            self.command.stdout(output());
        }
        if !self.streams.stderr {
            self.command.stderr(output());
        }
    }
}

/// A child process, like [`std::process::Child`].
#[derive(Debug)]
pub struct Child {
    child: process::Child,
    /// Readable when the child has ended.
    end: Readiness<OwnedFd>,
    /// Its standard input, if it is a pipe.
    pub stdin: Option<ChildStdin>,
    /// Its standard output, if it is a pipe.
    pub stdout: Option<ChildStdout>,
    /// Its standard error, if it is a pipe.
    pub stderr: Option<ChildStderr>,
}

impl Child {
    fn new(mut child: process::Child) -> io::Result<Child> {
        let parts = (|| {
            let pid = Pid::from_raw(child.id() as i32).ok_or(io::ErrorKind::InvalidData)?;
            let end = Readiness::new(pidfd_open(pid, PidfdFlags::empty())?)?;
            let stdin = child.stdin.take().map(ChildStdin::new).transpose()?;
            let stdout = child.stdout.take().map(ChildStdout::new).transpose()?;
            let stderr = child.stderr.take().map(ChildStderr::new).transpose()?;
            Ok((end, stdin, stdout, stderr))
        })();
        match parts {
            Ok((end, stdin, stdout, stderr)) => Ok(Child { child, end, stdin, stdout, stderr }),
            Err(error) => {
                // No thread could wait for the child.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGKILL to the child. Does nothing if it has ended and was waited for.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    /// Closes the child's standard input, and blocks the user thread until the child has ended.
    ///
    /// # Errors
    /// The errors of the kernel; an error if the runtime has ended.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            self.end.wait_readable()?;
        }
    }

    /// Like [`wait`](Child::wait), until the deadline. The child's standard input stays open.
    ///
    /// # Errors
    /// `TimedOut`; the errors of [`wait`](Child::wait).
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn wait_until(&mut self, deadline: Instant) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            self.end.wait_readable_until(deadline)?;
        }
    }

    /// How the child has ended; `None` while it runs.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Closes the child's standard input, reads its output, and waits for its end.
    ///
    /// # Errors
    /// The errors of the kernel, and of reading.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        drop(self.stdin.take());
        let (out, err) = (self.stdout.take(), self.stderr.take());
        // Both are read at the same time: a full pipe would block the child.
        let (stdout, stderr) = scope(|scope| {
            let errors = scope.spawn(|| read_all(err));
            let stdout = read_all(out);
            (stdout, errors.join())
        });
        let stderr = stderr.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(Output { status: self.wait()?, stdout: stdout?, stderr: stderr? })
    }
}

fn read_all(from: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        from.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
