//! Unix sockets.

use std::{
    io,
    iter::FusedIterator,
    net::Shutdown,
    os::unix::net::{self, SocketAddr},
    path::Path,
    time::{Duration, Instant},
};

use super::{
    connect,
    socket::{Socket, socket, stream, time_limits},
};
use crate::runtime::{Direction, Limit, here};

socket! {
    /// A Unix socket that listens, like [`std::os::unix::net::UnixListener`].
    UnixListener(net::UnixListener), "fut::net::UnixListener"
}

socket! {
    /// A connection of Unix sockets, like [`std::os::unix::net::UnixStream`].
    ///
    /// `&UnixStream` reads and writes as well, so that one user thread can read while another writes.
    UnixStream(net::UnixStream), "fut::net::UnixStream"
}

socket! {
    /// A Unix socket for datagrams, like [`std::os::unix::net::UnixDatagram`].
    UnixDatagram(net::UnixDatagram), "fut::net::UnixDatagram"
}

time_limits!(UnixStream);
time_limits!(UnixDatagram);
stream!(UnixStream, "fut::net::UnixStream", read_or_wait);

impl UnixStream {
    #[track_caller]
    fn read_or_wait(&self, name: &'static str, buf: &mut [u8]) -> io::Result<usize> {
        // A short read does not mean that nothing is left: a read ends before a message of another sender, and after
        // one with descriptors (unix(7)).
        self.0.read(name, |mut std| io::Read::read(&mut std, buf))
    }
}

impl UnixListener {
    /// Listens at `path`, which it creates.
    ///
    /// # Errors
    /// The errors of the kernel; an error if the runtime has ended.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixListener> {
        const CALL: &str = "fut::net::UnixListener::bind";
        here(CALL);
        Socket::new(net::UnixListener::bind(path)?, CALL).map(UnixListener)
    }

    /// Listens at an address, which may be abstract.
    ///
    /// # Errors
    /// Like [`UnixListener::bind`].
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn bind_addr(addr: &SocketAddr) -> io::Result<UnixListener> {
        const CALL: &str = "fut::net::UnixListener::bind_addr";
        here(CALL);
        Socket::new(net::UnixListener::bind_addr(addr)?, CALL).map(UnixListener)
    }

    /// Accepts the next connection, and returns it with the peer's address. Blocks the user thread until there is one.
    ///
    /// # Errors
    /// The errors of the kernel.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        const CALL: &str = "fut::net::UnixListener::accept";
        let (stream, from) = self.0.read(CALL, net::UnixListener::accept)?;
        Ok((UnixStream(Socket::new(stream, CALL)?), from))
    }

    /// An endless iterator over accepted connections.
    pub fn incoming(&self) -> UnixIncoming<'_> {
        UnixIncoming(self)
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().local_addr()
    }
}

/// The connections of a [`UnixListener`], in the order in which they are accepted.
#[derive(Debug)]
#[must_use]
pub struct UnixIncoming<'a>(&'a UnixListener);

impl Iterator for UnixIncoming<'_> {
    type Item = io::Result<UnixStream>;

    fn next(&mut self) -> Option<io::Result<UnixStream>> {
        Some(self.0.accept().map(|(stream, _)| stream))
    }
}

impl FusedIterator for UnixIncoming<'_> {}

impl UnixStream {
    /// Connects to the listener at `path`. When its backlog is full, the call continues on an LWP for blocking calls.
    ///
    /// # Errors
    /// The errors of the kernel; an error if the runtime has ended.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn connect(path: impl AsRef<Path>) -> io::Result<UnixStream> {
        const CALL: &str = "fut::net::UnixStream::connect";
        here(CALL);
        Socket::new(connect::unix(&SocketAddr::from_pathname(path)?)?, CALL).map(UnixStream)
    }

    /// Connects to the listener at an address, which may be abstract.
    ///
    /// # Errors
    /// Like [`UnixStream::connect`].
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn connect_addr(addr: &SocketAddr) -> io::Result<UnixStream> {
        const CALL: &str = "fut::net::UnixStream::connect_addr";
        here(CALL);
        Socket::new(connect::unix(addr)?, CALL).map(UnixStream)
    }

    /// Two sockets that are connected to each other.
    ///
    /// # Errors
    /// The errors of the kernel; an error if the runtime has ended.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        const CALL: &str = "fut::net::UnixStream::pair";
        here(CALL);
        let (one, other) = net::UnixStream::pair()?;
        Ok((UnixStream(Socket::new(one, CALL)?), UnixStream(Socket::new(other, CALL)?)))
    }

    /// The local address.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().local_addr()
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().peer_addr()
    }

    /// Shuts down one direction, or both. Calls of user threads that wait for it return.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.std().shutdown(how)
    }
}

/// Interval at which [`UnixDatagram::send_to`] retries while the receiver's queue is full.
const RECEIVER_FULL: Duration = Duration::from_millis(1);

impl UnixDatagram {
    /// A socket at `path`, which it creates.
    ///
    /// # Errors
    /// The errors of the kernel; an error if the runtime has ended.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixDatagram> {
        const CALL: &str = "fut::net::UnixDatagram::bind";
        here(CALL);
        Socket::new(net::UnixDatagram::bind(path)?, CALL).map(UnixDatagram)
    }

    /// A socket without an address.
    ///
    /// # Errors
    /// The errors of the kernel; an error if the runtime has ended.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn unbound() -> io::Result<UnixDatagram> {
        const CALL: &str = "fut::net::UnixDatagram::unbound";
        here(CALL);
        Socket::new(net::UnixDatagram::unbound()?, CALL).map(UnixDatagram)
    }

    /// Two sockets that are connected to each other.
    ///
    /// # Errors
    /// The errors of the kernel; an error if the runtime has ended.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        const CALL: &str = "fut::net::UnixDatagram::pair";
        here(CALL);
        let (one, other) = net::UnixDatagram::pair()?;
        Ok((UnixDatagram(Socket::new(one, CALL)?), UnixDatagram(Socket::new(other, CALL)?)))
    }

    /// Connects the socket: from now on it sends to and receives from this address only.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.0.std().connect(path)
    }

    /// Sends a datagram to the connected address.
    ///
    /// # Errors
    /// The errors of the kernel; `TimedOut` at the time limit.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.0.write("fut::net::UnixDatagram::send", |std| std.send(buf))
    }

    /// Sends a datagram to `path`. While the receiver's queue is full, it retries every millisecond: if the sender is
    /// not connected to the receiver, the kernel does not report when there is room.
    ///
    /// # Errors
    /// The errors of the kernel; `TimedOut` at the time limit.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn send_to(&self, buf: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        const CALL: &str = "fut::net::UnixDatagram::send_to";
        let path = path.as_ref();
        let started = Instant::now();
        let deadline = self.0.timeout(Direction::Write).and_then(|limit| started.checked_add(limit));
        loop {
            let look_again = Instant::now() + RECEIVER_FULL;
            let until = deadline.map_or(look_again, |deadline| look_again.min(deadline));
            match self.0.write_within(Limit::Until(until), CALL, |std| std.send_to(buf, path)) {
                Err(error)
                    if error.kind() == io::ErrorKind::TimedOut
                        && deadline.is_none_or(|deadline| Instant::now() < deadline) => {}
                done => return done,
            }
        }
    }

    /// Receives a datagram; bytes that do not fit into `buf` are lost.
    ///
    /// # Errors
    /// The errors of the kernel; `TimedOut` at the time limit.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read("fut::net::UnixDatagram::recv", |std| std.recv(buf))
    }

    /// Receives a datagram, and returns the sender's address; bytes that do not fit into `buf` are lost.
    ///
    /// # Errors
    /// Like [`UnixDatagram::recv`].
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.read("fut::net::UnixDatagram::recv_from", |std| std.recv_from(buf))
    }

    /// The local address.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().local_addr()
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().peer_addr()
    }

    /// Shuts down one direction, or both. Calls of user threads that wait for it return.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.std().shutdown(how)
    }
}
