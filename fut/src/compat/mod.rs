//! Asynchronous crates on user threads: their traits for the sockets of [`net`](crate::net).
//!
//! A user thread runs a future with [`block_on`](crate::block_on), and is blocked while the future is not ready. So
//! what an asynchronous runtime calls a task is here a user thread with a future, and its waits are in the trace
//! ([`WaitKind::Future`](crate::WaitKind)). Within a future, the blocking methods of a socket must not be used: they
//! would block the whole thread.
//!
//! | feature | what it adds |
//! |---|---|
//! | `futures-io` | `futures_io::{AsyncRead, AsyncWrite}` for [`TcpStream`], [`UnixStream`], and shared references to them |
//! | `tokio` | `tokio::io::{AsyncRead, AsyncWrite}` for the same; no runtime of tokio is needed |
//! | `hyper` | `hyper::rt::{Read, Write}` for the same; [`Executor`] and [`Timer`] |
//!
//! [`Sleep`] is a timer for futures.
//!
//! Rules that hold for all of these traits:
//!
//! - Time limits of a socket (`set_read_timeout`) do not apply: use [`Sleep`].
//! - Of several futures that wait for one direction of a socket, only the one polled last is woken. Blocking calls and
//!   a future may wait for the same direction; then all are woken.
//! - A socket belongs to the runtime of the user thread that made it. Any thread may poll it.
//!
//! TLS needs none of this: `rustls::Stream` works with any type that implements [`Read`](std::io::Read) and [`Write`],
//! as the streams of this crate do.

#[cfg(feature = "futures-io")]
mod futures_io;
#[cfg(feature = "hyper")]
mod hyper;
mod sleep;
#[cfg(feature = "tokio")]
mod tokio;

#[cfg(feature = "hyper")]
pub use self::hyper::{Executor, Timer};
pub use sleep::{Sleep, sleep, sleep_until};

use std::{
    io::{self, Write},
    mem::MaybeUninit,
    net::Shutdown,
    os::fd::AsFd,
    task::{Context, Poll},
};

use rustix::net::RecvFlags;

use crate::net::{TcpStream, UnixStream};

/// A stream that futures read and write.
trait PolledStream {
    /// Reads into `buffer`; returns the number of bytes written to its start, 0 at the end of the stream.
    fn poll_read_into(
        &self,
        context: &Context<'_>,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>>;
    fn poll_write_from(&self, context: &Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;
    fn poll_write_from_all(
        &self,
        context: &Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>>;
    /// Ends the direction of writing.
    fn end_writing(&self) -> io::Result<()>;
}

fn receive(socket: impl AsFd, buffer: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    let ((read, _), _) = rustix::net::recv(socket, buffer, RecvFlags::empty())?;
    Ok(read.len())
}

macro_rules! polled {
    ($stream:ident, $can_be_drained:literal) => {
        impl PolledStream for $stream {
            fn poll_read_into(
                &self,
                context: &Context<'_>,
                buffer: &mut [MaybeUninit<u8>],
            ) -> Poll<io::Result<usize>> {
                let room = buffer.len();
                let drains = |read: &usize| $can_be_drained && *read > 0 && *read < room;
                self.0.poll_read(context, drains, |std| receive(std, buffer))
            }

            fn poll_write_from(&self, context: &Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
                self.0.poll_write(context, |mut std| std.write(bytes))
            }

            fn poll_write_from_all(
                &self,
                context: &Context<'_>,
                slices: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.0.poll_write(context, |mut std| std.write_vectored(slices))
            }

            fn end_writing(&self) -> io::Result<()> {
                match self.0.std().shutdown(Shutdown::Write) {
                    // The other side has closed.
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
                    done => done,
                }
            }
        }
    };
}

polled!(TcpStream, true);
// A short read does not mean that nothing is left: a read ends before a message of another sender, and after one with
// descriptors (unix(7)).
polled!(UnixStream, false);
