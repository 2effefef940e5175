//! A time limit for writes. The connection of a client that does not read its answers fails, instead of keeping its place.

use std::{
    future::Future,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{self, Sleep},
};

/// A connection whose writes fail when the client has taken nothing for `limit`. A slow client takes something. Reads
/// have no limit here.
pub(super) struct TimedWrites<S> {
    stream: S,
    limit: Duration,
    /// Of the write that waits for the client.
    late: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedWrites<S> {
    pub(super) fn new(stream: S, limit: Duration) -> TimedWrites<S> {
        TimedWrites { stream, limit, late: None }
    }

    /// The outcome of a write; an error if it has waited for too long.
    fn in_time<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.late = None;
            return outcome;
        }
        let limit = self.limit;
        let late = self.late.get_or_insert_with(|| Box::pin(time::sleep(limit)));
        late.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedWrites<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedWrites<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.in_time(cx, outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
        this.in_time(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_flush(cx);
        this.in_time(cx, outcome)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.in_time(cx, outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, io::Read, os::unix::net::UnixStream as StdUnixStream, thread, time::Instant};

    use tokio::net::UnixStream;

    use super::*;

    fn pair(limit: Duration) -> (TimedWrites<UnixStream>, StdUnixStream) {
        let (ours, client) = StdUnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (TimedWrites::new(UnixStream::from_std(ours).unwrap(), limit), client)
    }

    async fn write(to: &mut TimedWrites<UnixStream>) -> io::Result<usize> {
        let bytes = [0; 1 << 16];
        poll_fn(|cx| Pin::new(&mut *to).poll_write(cx, &bytes)).await
    }

    #[tokio::test]
    async fn a_write_to_a_client_that_reads_nothing_fails_after_the_limit() {
        let limit = Duration::from_millis(100);
        let (mut ours, _client) = pair(limit);
        let begun = Instant::now();
        let error = loop {
            if let Err(error) = write(&mut ours).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= limit, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn a_client_that_reads_slowly_gets_everything() {
        let (mut ours, mut client) = pair(Duration::from_secs(2));
        let reader = thread::spawn(move || {
            let (mut bytes, mut all) = (vec![0; 1 << 16], 0);
            loop {
                match client.read(&mut bytes).unwrap() {
                    0 => return all,
                    read => all += read,
                }
                thread::sleep(Duration::from_millis(50));
            }
        });
        let (begun, mut written) = (Instant::now(), 0);
        while begun.elapsed() < Duration::from_secs(3) {
            written += write(&mut ours).await.unwrap();
        }
        drop(ours);
        assert_eq!(reader.join().unwrap(), written);
    }
}
