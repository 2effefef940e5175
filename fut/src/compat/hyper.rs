//! The traits of hyper 1.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use hyper::rt::{self, Read, ReadBufCursor, Write};

use super::{PolledStream, Sleep, sleep, sleep_until};
use crate::{
    Builder, block_on,
    net::{TcpStream, UnixStream},
};

macro_rules! traits {
    ($($stream:ty),*) => { $(
        impl Read for $stream {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                mut buffer: ReadBufCursor<'_>,
            ) -> Poll<io::Result<()>> {
                // SAFETY: nothing is de-initialised: the kernel writes bytes.
                let room = unsafe { buffer.as_mut() };
                let read = ready!(self.poll_read_into(context, room))?;
                // SAFETY: the kernel has written this number of bytes.
                unsafe { buffer.advance(read) };
                Poll::Ready(Ok(()))
            }
        }

        impl Write for $stream {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.poll_write_from(context, bytes)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                slices: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.poll_write_from_all(context, slices)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(self.end_writing())
            }
        }
    )* };
}

traits!(TcpStream, &TcpStream, UnixStream, &UnixStream);

/// Runs each future of hyper on its own user thread, named `hyper`, in the runtime of the thread that calls the
/// executor.
///
/// # Panics
/// Outside a runtime.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Executor;

impl Executor {
    /// Returns the executor; all values are alike.
    pub fn new() -> Executor {
        Executor
    }
}

impl<F> rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, future: F) {
        drop(Builder::new().name("hyper").spawn(|| {
            block_on(future);
        }));
    }
}

/// The timers of the runtime of the calling user thread.
///
/// # Panics
/// Outside a runtime.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Timer;

impl Timer {
    /// Returns the timer; all values are alike.
    pub fn new() -> Timer {
        Timer
    }
}

impl rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(sleep(duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(sleep_until(deadline))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep>() {
            Some(mut ours) => ours.reset(deadline),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

impl rt::Sleep for Sleep {}
