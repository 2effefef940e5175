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
//! 1. The handler writes to the eventfd of each [`Signal`], which is the one thing it does. Handlers that were there before
//!    are called as well.
//! 2. Signals that arrive before the last one was received are one event, as the kernel merges them.
//! 3. From the first [`Signal`] of a kind on, the kernel's default action for it never happens again in this process, also
//!    after the [`Signal`] was dropped.

use std::{
    io::{self, ErrorKind},
    os::fd::{AsRawFd, OwnedFd},
    time::Instant,
};

use rustix::event::{EventfdFlags, eventfd};
use signal_hook_registry::SigId;

use crate::net::{Interest, Readiness};

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
    /// SIGHUP: the terminal was closed; for a daemon, to read its configuration again.
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
    /// Of any number.
    pub const fn from_raw(number: i32) -> SignalKind {
        SignalKind(number)
    }

    /// Its number.
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
    /// When no descriptor is left; `InvalidInput` for a signal that cannot or must not be caught: SIGKILL, SIGSTOP,
    /// SIGILL, SIGFPE, SIGSEGV.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn new(kind: SignalKind) -> io::Result<Signal> {
        let number = kind.0;
        if signal_hook_registry::FORBIDDEN.contains(&number) || !(1..=64).contains(&number) {
            let text = format!("signal {number}: expected one that can be caught");
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        let events = Readiness::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)?;
        let fd = events.as_raw_fd();
        let action = move || {
            let one = 1_u64.to_ne_bytes();
            // SAFETY: `one` is valid during the call. The descriptor is that of the eventfd: `drop` removes this action
            // before it is closed. write(2) may be called by a handler.
            let _ = unsafe { libc::write(fd, one.as_ptr().cast(), one.len()) };
        };
        // SAFETY: the action makes one call that is async-signal-safe; the library keeps `errno`.
        let handler = unsafe { signal_hook_registry::register(number, action) }?;
        Ok(Signal { events, handler })
    }

    /// Blocks the user thread until a signal arrives; at once if one has arrived since the last call. Of several threads
    /// that wait, one returns.
    ///
    /// # Errors
    /// When the runtime has ended.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn recv(&self) -> io::Result<()> {
        self.events.io(Interest::Readable, take)
    }

    /// As [`recv`](Signal::recv), until the deadline.
    ///
    /// # Errors
    /// `TimedOut`; as [`recv`](Signal::recv).
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

/// `WouldBlock` if none has arrived.
fn take(events: &OwnedFd) -> io::Result<()> {
    rustix::io::read(events, &mut [0; 8])?;
    Ok(())
}

/// Blocks the user thread until SIGINT arrives, which Ctrl-C sends.
///
/// # Errors
/// As [`Signal::new`] and [`Signal::recv`].
///
/// # Panics
/// Outside a runtime.
#[track_caller]
pub fn ctrl_c() -> io::Result<()> {
    Signal::new(SignalKind::interrupt())?.recv()
}
