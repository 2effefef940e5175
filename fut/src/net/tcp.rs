//! TCP.

use std::{
    io,
    iter::FusedIterator,
    net::{self, Shutdown, SocketAddr},
    time::Duration,
};

use super::{
    address::{ToSocketAddrs, first_of},
    connect,
    socket::{Socket, socket, stream, time_limits},
    tcp_receive::Received,
};
use crate::runtime::{Limit, here};

socket! {
    /// A TCP socket that listens, like [`std::net::TcpListener`].
    TcpListener(net::TcpListener), "fut::net::TcpListener"
}

socket! {
    /// A TCP connection, like [`std::net::TcpStream`].
    ///
    /// `&TcpStream` reads and writes as well, so that one user thread can read while another writes.
    TcpStream(net::TcpStream), "fut::net::TcpStream"
}

time_limits!(TcpStream);
stream!(TcpStream, "fut::net::TcpStream", read_or_wait);

impl TcpListener {
    /// Listens at the first of the addresses to which it can bind.
    ///
    /// # Errors
    /// If it can bind to none of them, or the socket cannot be registered with the reactor.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn bind(addr: impl ToSocketAddrs) -> io::Result<TcpListener> {
        const CALL: &str = "fut::net::TcpListener::bind";
        here(CALL);
        let listener = first_of(&addr, net::TcpListener::bind)?;
        Socket::new(listener, CALL).map(TcpListener)
    }

    /// Accepts the next connection, and returns it with the peer's address. Blocks the user thread until there is one.
    ///
    /// # Errors
    /// The errors of the kernel; some, such as `ConnectionAborted`, concern one connection only, and the next call may
    /// succeed.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        const CALL: &str = "fut::net::TcpListener::accept";
        let (stream, from) = self.0.read(CALL, net::TcpListener::accept)?;
        Ok((TcpStream(Socket::new(stream, CALL)?), from))
    }

    /// An endless iterator over accepted connections.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming(self)
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().local_addr()
    }
}

/// The connections of a [`TcpListener`], in the order in which they are accepted.
#[derive(Debug)]
#[must_use]
pub struct Incoming<'a>(&'a TcpListener);

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<io::Result<TcpStream>> {
        Some(self.0.accept().map(|(stream, _)| stream))
    }
}

impl FusedIterator for Incoming<'_> {}

impl TcpStream {
    /// Connects to the first of the addresses that accepts. Names are looked up on an LWP for blocking calls.
    ///
    /// # Errors
    /// If it can connect to none of them, or the socket cannot be registered with the reactor.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn connect(addr: impl ToSocketAddrs) -> io::Result<TcpStream> {
        const CALL: &str = "fut::net::TcpStream::connect";
        here(CALL);
        first_of(&addr, |address| connect_within(&address, Limit::None, CALL))
    }

    /// Like [`connect`](TcpStream::connect), with one address and a time limit.
    ///
    /// # Errors
    /// The errors of `connect`; `TimedOut`; `InvalidInput` for a limit of zero.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn connect_timeout(addr: &SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        const CALL: &str = "fut::net::TcpStream::connect_timeout";
        here(CALL);
        if timeout.is_zero() {
            let expected = "cannot set a 0 duration timeout: expected more";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, expected));
        }
        connect_within(addr, Limit::Within(timeout), CALL)
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().peer_addr()
    }

    /// The local address.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().local_addr()
    }

    /// Shuts down one direction, or both. Calls of user threads that wait for it return.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.std().shutdown(how)
    }

    /// Whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.0.std().set_nodelay(nodelay)
    }

    /// Whether `TCP_NODELAY` is set.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.0.std().nodelay()
    }

    /// Reads without removing the data from the socket.
    ///
    /// # Errors
    /// The errors of reading.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read("fut::net::TcpStream::peek", |std| std.peek(buf))
    }
}

impl TcpStream {
    #[track_caller]
    fn read_or_wait(&self, name: &'static str, buf: &mut [u8]) -> io::Result<usize> {
        let asks = self.0.asks_what_is_left();
        let read = self.0.read_stream(name, |read: &Received| read.is_drained, |std| asks.read(std, buf));
        read.map(|read| read.len)
    }
}

#[track_caller]
fn connect_within(address: &SocketAddr, limit: Limit, call: &'static str) -> io::Result<TcpStream> {
    let socket = Socket::new(connect::begin_tcp(address)?, call)?;
    socket.write_within(limit, call, connect::is_connected)?;
    Ok(TcpStream(socket))
}
