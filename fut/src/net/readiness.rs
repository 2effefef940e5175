//! Waiting for descriptors that are not sockets of this crate.

use std::{
    fmt, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::ioctl_fionbio,
};

use crate::runtime::{Direction, Limit, RegisteredFd};

/// The condition to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interest {
    /// Something to read, an error, or the other side has closed.
    Readable,
    /// Room to write, an error, or the other side has closed.
    Writable,
}

impl Interest {
    fn direction(self) -> Direction {
        match self {
            Interest::Readable => Direction::Read,
            Interest::Writable => Direction::Write,
        }
    }
}

/// A descriptor that user threads can wait for: a pipe, an eventfd, a timerfd, a pidfd, a terminal, a socket of another
/// library. Several threads may wait for the same descriptor, in both directions.
///
/// - [`io`](Readiness::io) is the usual way: it makes the call, and waits only if the call returns `WouldBlock`. So the
///   descriptor **must be in non-blocking mode**; otherwise the call blocks the LWP. See
///   [`set_nonblocking`](Readiness::set_nonblocking).
/// - [`wait_readable`](Readiness::wait_readable) and its variants return when a call would not block. They poll the
///   kernel each time, so they work in either mode, and they may be called before all data was read. But between their
///   return and this thread's call, another thread may make the call.
///
/// The descriptor is registered edge-triggered: the kernel reports only changes to the reactor. Callers need not know
/// this: a wait begins only after a call has returned `WouldBlock`.
///
/// ```
/// use std::{io::{PipeReader, Read, Write}, os::fd::AsFd};
///
/// use fut::net::{Interest, Readiness};
///
/// let runtime = fut::Runtime::builder().lwps(1).build()?;
/// runtime.run(|| -> std::io::Result<()> {
///     let (reader, mut writer) = std::io::pipe()?;
///     let reader = Readiness::new(reader)?;
///     reader.set_nonblocking(true)?;
///     let read = fut::spawn(move || {
///         let mut byte = [0];
///         reader.io(Interest::Readable, |mut pipe: &PipeReader| pipe.read(&mut byte)).map(|_| byte[0])
///     });
///     fut::yield_now();
///     writer.write_all(&[42])?;
///     assert_eq!(read.join().unwrap()?, 42);
///     Ok(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Readiness<T: AsFd>(RegisteredFd<T>);

impl<T: AsFd> Readiness<T> {
    /// Registers a descriptor with the reactor of the calling user thread's runtime. This does not change its mode.
    ///
    /// # Errors
    /// `Unsupported` for descriptors that the kernel cannot wait for: regular files and directories. `AlreadyExists`
    /// for a descriptor that is already registered in this runtime. An error if the runtime has ended.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn new(io: T) -> io::Result<Readiness<T>> {
        RegisteredFd::new(io, "fut::net::Readiness::new").map(Readiness)
    }

    /// The owner of the descriptor.
    pub fn get_ref(&self) -> &T {
        self.0.io()
    }

    /// Deregisters the descriptor. This does not change its mode.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Switches non-blocking mode on or off. The mode belongs to the open file description: it applies to all
    /// duplicates of the descriptor, including those in other processes.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        Ok(ioctl_fionbio(self.get_ref(), nonblocking)?)
    }

    /// Repeats `call` until it does not return `WouldBlock`. The user thread is blocked between the calls.
    ///
    /// # Errors
    /// The errors of `call`.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn io<R>(&self, interest: Interest, call: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.0.retry(interest.direction(), Limit::None, "fut::net::Readiness::io", call)
    }

    /// Like [`io`](Readiness::io), until the deadline. The call is made at least once.
    ///
    /// # Errors
    /// The errors of `call`; `TimedOut`.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn io_until<R>(
        &self,
        interest: Interest,
        deadline: Instant,
        call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.0.retry(interest.direction(), Limit::Until(deadline), "fut::net::Readiness::io_until", call)
    }

    /// Blocks the user thread until a call that reads would not block.
    ///
    /// # Errors
    /// If the kernel reports an error.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn wait_readable(&self) -> io::Result<()> {
        self.wait(Interest::Readable, Limit::None, "fut::net::Readiness::wait_readable")
    }

    /// The same, until the deadline.
    ///
    /// # Errors
    /// `TimedOut`; if the kernel reports an error.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn wait_readable_until(&self, deadline: Instant) -> io::Result<()> {
        let limit = Limit::Until(deadline);
        self.wait(Interest::Readable, limit, "fut::net::Readiness::wait_readable_until")
    }

    /// Blocks the user thread until a call that writes would not block.
    ///
    /// # Errors
    /// If the kernel reports an error.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn wait_writable(&self) -> io::Result<()> {
        self.wait(Interest::Writable, Limit::None, "fut::net::Readiness::wait_writable")
    }

    /// The same, until the deadline.
    ///
    /// # Errors
    /// `TimedOut`; if the kernel reports an error.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn wait_writable_until(&self, deadline: Instant) -> io::Result<()> {
        let limit = Limit::Until(deadline);
        self.wait(Interest::Writable, limit, "fut::net::Readiness::wait_writable_until")
    }

    #[track_caller]
    fn wait(&self, interest: Interest, limit: Limit, name: &'static str) -> io::Result<()> {
        self.0.retry(interest.direction(), limit, name, |io| is_ready(io.as_fd(), interest))
    }
}

/// `WouldBlock` if a call would block.
fn is_ready(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<()> {
    let flags = match interest {
        Interest::Readable => PollFlags::IN | PollFlags::PRI,
        Interest::Writable => PollFlags::OUT,
    };
    match poll(&mut [PollFd::from_borrowed_fd(fd, flags)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

impl<T: AsFd> AsFd for Readiness<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.get_ref().as_fd()
    }
}

impl<T: AsFd> AsRawFd for Readiness<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl<T: AsFd + fmt::Debug> fmt::Debug for Readiness<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Readiness").field(self.get_ref()).finish()
    }
}
