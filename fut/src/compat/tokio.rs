//! The traits of tokio.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::PolledStream;
use crate::net::{TcpStream, UnixStream};

macro_rules! traits {
    ($($stream:ty),*) => { $(
        impl AsyncRead for $stream {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                // SAFETY: nothing is de-initialised: the kernel writes bytes.
                let room = unsafe { buffer.unfilled_mut() };
                let read = ready!(self.poll_read_into(context, room))?;
                // SAFETY: the kernel has written this number of bytes.
                unsafe { buffer.assume_init(read) };
                buffer.advance(read);
                Poll::Ready(Ok(()))
            }
        }

        impl AsyncWrite for $stream {
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
