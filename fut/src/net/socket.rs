//! The part that all sockets have in common: a registered socket of the standard library, and two time limits.

use std::{
    io,
    os::fd::AsFd,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

#[cfg(feature = "compat")]
use std::task::{Context, Poll};

use super::tcp_receive::AsksWhatIsLeft;
use crate::runtime::{Direction, Limit, RegisteredFd};

/// A registered socket with a time limit for each direction.
#[derive(Debug)]
pub(crate) struct Socket<S: AsFd> {
    source: RegisteredFd<S>,
    /// The time limit of each direction, in ns, or `NO_LIMIT`.
    limits: [AtomicU64; 2],
    /// Used only by TCP streams.
    asks_what_is_left: AsksWhatIsLeft,
}

const NO_LIMIT: u64 = u64::MAX;

impl<S: AsFd> Socket<S> {
    /// Switches `socket` to non-blocking mode and registers it.
    #[track_caller]
    pub(super) fn new(socket: S, call: &'static str) -> io::Result<Socket<S>> {
        let source = RegisteredFd::new(socket, call)?;
        rustix::io::ioctl_fionbio(source.io(), true)?;
        let limits = [AtomicU64::new(NO_LIMIT), AtomicU64::new(NO_LIMIT)];
        Ok(Socket { source, limits, asks_what_is_left: AsksWhatIsLeft::default() })
    }

    /// Deregisters the socket and switches it to blocking mode.
    pub(super) fn into_std(self) -> io::Result<S> {
        let socket = self.source.into_inner();
        rustix::io::ioctl_fionbio(&socket, false)?;
        Ok(socket)
    }

    pub(crate) fn std(&self) -> &S {
        self.source.io()
    }

    pub(super) fn asks_what_is_left(&self) -> &AsksWhatIsLeft {
        &self.asks_what_is_left
    }

    /// Makes `call`. While there is nothing to read, blocks the calling user thread, within the read limit.
    #[track_caller]
    pub(super) fn read<R>(&self, name: &'static str, call: impl FnMut(&S) -> io::Result<R>) -> io::Result<R> {
        self.source.retry(Direction::Read, self.limit(Direction::Read), name, call)
    }

    /// Like [`Socket::read`], for a stream. `drains` decides whether the result of a call means that nothing is left to
    /// read.
    #[track_caller]
    pub(super) fn read_stream<R>(
        &self,
        name: &'static str,
        drains: impl Fn(&R) -> bool,
        call: impl FnMut(&S) -> io::Result<R>,
    ) -> io::Result<R> {
        self.source.retry_unless_drained(Direction::Read, self.limit(Direction::Read), name, drains, call)
    }

    /// Like [`Socket::read`], but blocks while there is no room to write, within the write limit.
    #[track_caller]
    pub(super) fn write<R>(
        &self,
        name: &'static str,
        call: impl FnMut(&S) -> io::Result<R>,
    ) -> io::Result<R> {
        self.source.retry(Direction::Write, self.limit(Direction::Write), name, call)
    }

    /// Like [`Socket::read_stream`], for a future, without a time limit.
    #[cfg(feature = "compat")]
    pub(crate) fn poll_read<R>(
        &self,
        context: &Context<'_>,
        drains: impl Fn(&R) -> bool,
        call: impl FnMut(&S) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.source.poll_unless_drained(context, Direction::Read, drains, call)
    }

    /// Like [`Socket::write`], for a future, without a time limit.
    #[cfg(feature = "compat")]
    pub(crate) fn poll_write<R>(
        &self,
        context: &Context<'_>,
        call: impl FnMut(&S) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.source.poll_unless_drained(context, Direction::Write, |_| false, call)
    }

    /// Like [`Socket::write`], within another limit.
    #[track_caller]
    pub(super) fn write_within<R>(
        &self,
        limit: Limit,
        name: &'static str,
        call: impl FnMut(&S) -> io::Result<R>,
    ) -> io::Result<R> {
        self.source.retry(Direction::Write, limit, name, call)
    }

    fn limit(&self, direction: Direction) -> Limit {
        self.timeout(direction).map_or(Limit::None, Limit::Within)
    }

    pub(super) fn timeout(&self, direction: Direction) -> Option<Duration> {
        let ns = self.limits[direction as usize].load(Ordering::Relaxed);
        (ns != NO_LIMIT).then(|| Duration::from_nanos(ns))
    }

    /// # Errors
    /// A limit of zero, as in the standard library.
    pub(super) fn set_timeout(&self, direction: Direction, timeout: Option<Duration>) -> io::Result<()> {
        if timeout == Some(Duration::ZERO) {
            let expected = "cannot set a 0 duration timeout: expected more, or None for no limit";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, expected));
        }
        let ns = timeout.map_or(NO_LIMIT, |t| u64::try_from(t.as_nanos()).unwrap_or(NO_LIMIT));
        self.limits[direction as usize].store(ns, Ordering::Relaxed);
        Ok(())
    }
}

/// Defines a type around a [`Socket`], with the methods common to all socket types.
macro_rules! socket {
    ($(#[$meta:meta])* $name:ident($std:ty), $path:literal) => {
        $(#[$meta])*
        pub struct $name(pub(crate) crate::net::socket::Socket<$std>);

        impl $name {
            /// Takes over a socket of the standard library, and switches it to non-blocking mode.
            ///
            /// # Errors
            /// If the kernel refuses to wait for the socket, or to switch the mode.
            ///
            /// # Panics
            /// Outside a runtime.
            #[track_caller]
            pub fn from_std(socket: $std) -> std::io::Result<$name> {
                crate::net::socket::Socket::new(socket, concat!($path, "::from_std")).map($name)
            }

            /// Returns the socket for use without this runtime. It is then in blocking mode and has no time limits.
            ///
            /// # Errors
            /// If the kernel refuses to switch the mode.
            pub fn into_std(self) -> std::io::Result<$std> {
                self.0.into_std()
            }

            /// The socket, for calls that do not block. It must stay in non-blocking mode.
            pub fn as_std(&self) -> &$std {
                self.0.std()
            }

            /// Returns and clears the pending error of the socket.
            ///
            /// # Errors
            /// If the kernel reports an error.
            pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
                self.0.std().take_error()
            }

            /// Another handle of the same socket. It has its own time limits, and none at first.
            ///
            /// # Errors
            /// If no descriptor is left.
            ///
            /// # Panics
            /// Outside a runtime.
            #[track_caller]
            pub fn try_clone(&self) -> std::io::Result<$name> {
                let clone = self.0.std().try_clone()?;
                crate::net::socket::Socket::new(clone, concat!($path, "::try_clone")).map($name)
            }
        }

        impl std::os::fd::AsFd for $name {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.0.std().as_fd()
            }
        }

        impl std::os::fd::AsRawFd for $name {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                std::os::fd::AsRawFd::as_raw_fd(self.0.std())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self.0.std(), f)
            }
        }
    };
}

/// The time limits, for types that have them in the standard library.
macro_rules! time_limits {
    ($name:ident) => {
        impl $name {
            /// Sets the time limit of each call that reads; `None` means no limit.
            ///
            /// # Errors
            /// `InvalidInput` for a limit of zero.
            pub fn set_read_timeout(&self, timeout: Option<std::time::Duration>) -> std::io::Result<()> {
                self.0.set_timeout(crate::runtime::Direction::Read, timeout)
            }

            /// Sets the time limit of each call that writes; `None` means no limit.
            ///
            /// # Errors
            /// `InvalidInput` for a limit of zero.
            pub fn set_write_timeout(&self, timeout: Option<std::time::Duration>) -> std::io::Result<()> {
                self.0.set_timeout(crate::runtime::Direction::Write, timeout)
            }

            /// The time limit of calls that read.
            ///
            /// # Errors
            /// None; the signature is that of the standard library.
            pub fn read_timeout(&self) -> std::io::Result<Option<std::time::Duration>> {
                Ok(self.0.timeout(crate::runtime::Direction::Read))
            }

            /// The time limit of calls that write.
            ///
            /// # Errors
            /// None; the signature is that of the standard library.
            pub fn write_timeout(&self) -> std::io::Result<Option<std::time::Duration>> {
                Ok(self.0.timeout(crate::runtime::Direction::Write))
            }
        }
    };
}

/// Implements `Read` and `Write` for a stream and for a shared reference to it. `$read` is a method that reads.
macro_rules! stream {
    ($name:ident, $path:literal, $read:ident) => {
        impl std::io::Read for &$name {
            fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
                self.$read(concat!($path, "::read"), buf)
            }

            fn read_vectored(&mut self, bufs: &mut [std::io::IoSliceMut<'_>]) -> std::io::Result<usize> {
                self.0.read(concat!($path, "::read_vectored"), |mut std| std.read_vectored(bufs))
            }
        }

        impl std::io::Write for &$name {
            fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
                self.0.write(concat!($path, "::write"), |mut std| std.write(buf))
            }

            fn write_vectored(&mut self, bufs: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
                self.0.write(concat!($path, "::write_vectored"), |mut std| std.write_vectored(bufs))
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }

        impl std::io::Read for $name {
            fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
                (&*self).read(buf)
            }

            fn read_vectored(&mut self, bufs: &mut [std::io::IoSliceMut<'_>]) -> std::io::Result<usize> {
                (&*self).read_vectored(bufs)
            }
        }

        impl std::io::Write for $name {
            fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
                (&*self).write(buf)
            }

            fn write_vectored(&mut self, bufs: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
                (&*self).write_vectored(bufs)
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
    };
}

pub(super) use {socket, stream, time_limits};
