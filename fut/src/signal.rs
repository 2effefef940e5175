//! Signals as events for user threads, with the names of `tokio::signal`.
//!
//! ```
//! use fut::signal::{Signal, SignalKind};
//!
//! let runtime = fut::Runtime::builder().lwps(1).build()?;
//! runtime.run(|| -> std::io::Result<()> {
//!     let usr1 = Signal::new(SignalKind::user_defined1())?;
//!     // SAFETY: it has a handler.
//!     unsafe { libc::raise(libc::SIGUSR1) };
//!     usr1.recv()
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! 1. The handler of this module writes to the eventfd of each [`Signal`], and does nothing else. Handlers that were
//!    installed before are called as well.
//! 2. Several signals that arrive before one is received count as one event, as the kernel merges them, too.
//! 3. Once there was a [`Signal`] of a kind, the kernel's default action for that kind never happens again in this
//!    process, even after the [`Signal`] was dropped.

use std::{
    io::{self, ErrorKind},
    os::fd::{AsRawFd, OwnedFd},
    time::Instant,
};

use rustix::event::{EventfdFlags, eventfd};
use signal_hook_registry::SigId;

use crate::{
    net::{Interest, Readiness},
    runtime::here,
};

/// A kind of signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignalKind(i32);

macro_rules! kinds {
    ($($(#[$meta:meta])* $name:ident = $number:ident;)*) => {
        impl SignalKind {
            $($(#[$meta])* pub const fn $name() -> SignalKind { SignalKind(libc::$number) })*
        }
    };
}

kinds! {
    /// SIGALRM.
    alarm = SIGALRM;
    /// SIGCHLD: a child process has ended, or was stopped or continued.
    child = SIGCHLD;
    /// SIGHUP: the terminal was closed. Daemons read their configuration again at this signal.
    hangup = SIGHUP;
    /// SIGINT: Ctrl-C.
    interrupt = SIGINT;
    /// SIGPIPE.
    pipe = SIGPIPE;
    /// SIGQUIT.
    quit = SIGQUIT;
    /// SIGTERM: the polite request to end.
    terminate = SIGTERM;
    /// SIGUSR1.
    user_defined1 = SIGUSR1;
    /// SIGUSR2.
    user_defined2 = SIGUSR2;
    /// SIGWINCH: the terminal has another size.
    window_change = SIGWINCH;
}

impl SignalKind {
    /// The kind with this signal number.
    pub const fn from_raw(number: i32) -> SignalKind {
        SignalKind(number)
    }

    /// The signal number.
    pub const fn as_raw_value(self) -> i32 {
        self.0
    }
}

/// Signals of one kind, for the user threads that wait for them.
#[derive(Debug)]
pub struct Signal {
    events: Readiness<OwnedFd>,
    handler: SigId,
}

impl Signal {
    /// Catches signals of this kind from now on.
    ///
    /// # Errors
    /// If no descriptor is left. `InvalidInput` for a signal that cannot or must not be caught: SIGKILL, SIGSTOP,
    /// SIGILL, SIGFPE, SIGSEGV.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn new(kind: SignalKind) -> io::Result<Signal> {
        let _ = here("fut::signal::Signal::new");
        let number = kind.0;
        if signal_hook_registry::FORBIDDEN.contains(&number) || !(1..=64).contains(&number) {
            let text = format!("signal {number}: expected one that can be caught");
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        let events = Readiness::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)?;
        let fd = events.as_raw_fd();
        let process = std::process::id();
        let action = move || {
            // A forked child inherits the handler and the eventfd, and its signals are none of the parent's. SAFETY: getpid is
            // async-signal-safe.
            if u32::try_from(unsafe { libc::getpid() }) != Ok(process) {
                return;
            }
            let one = 1_u64.to_ne_bytes();
            // SAFETY: `one` is valid during the call. `fd` is the descriptor of the eventfd: `drop` removes this action
            // before the eventfd is closed. A signal handler may call write(2).
            let _ = unsafe { libc::write(fd, one.as_ptr().cast(), one.len()) };
        };
        // SAFETY: the action makes only one call, which is async-signal-safe; the library preserves `errno`.
        let handler = unsafe { signal_hook_registry::register(number, action) }?;
        Ok(Signal { events, handler })
    }

    /// Blocks the user thread until a signal arrives. Returns at once if one has arrived since the last call. If
    /// several threads wait, one of them returns.
    ///
    /// # Errors
    /// If the runtime has ended.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn recv(&self) -> io::Result<()> {
        self.events.io(Interest::Readable, take)
    }

    /// Like [`recv`](Signal::recv), until the deadline.
    ///
    /// # Errors
    /// `TimedOut`; the errors of [`recv`](Signal::recv).
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn recv_until(&self, deadline: Instant) -> io::Result<()> {
        self.events.io_until(Interest::Readable, deadline, take)
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        signal_hook_registry::unregister(self.handler);
    }
}

/// Takes the signals that have arrived; `WouldBlock` if none has.
fn take(events: &OwnedFd) -> io::Result<()> {
    rustix::io::read(events, &mut [0; 8])?;
    Ok(())
}

/// Blocks the user thread until SIGINT arrives, which Ctrl-C sends.
///
/// # Errors
/// Like [`Signal::new`] and [`Signal::recv`].
///
/// # Panics
/// Outside a runtime.
#[track_caller]
pub fn ctrl_c() -> io::Result<()> {
    Signal::new(SignalKind::interrupt())?.recv()
}
