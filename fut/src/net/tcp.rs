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
};
use crate::runtime::{Limit, here};

socket! {
    /// A TCP socket that listens, as [`std::net::TcpListener`].
    TcpListener(net::TcpListener), "fut::net::TcpListener"
}

socket! {
    /// A TCP connection, as [`std::net::TcpStream`].
    ///
    /// `&TcpStream` reads and writes as well, so that one user thread can read while another writes.
    TcpStream(net::TcpStream), "fut::net::TcpStream"
}

time_limits!(TcpStream);
stream!(TcpStream, "fut::net::TcpStream");

impl TcpListener {
    /// Listens at the first of the addresses where that is possible.
    ///
    /// # Errors
    /// When it is possible at none, or the kernel refuses to wait for it.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn bind(addr: impl ToSocketAddrs) -> io::Result<TcpListener> {
        const CALL: &str = "fut::net::TcpListener::bind";
        here(CALL);
        let listener = first_of(&addr, net::TcpListener::bind)?;
        Socket::new(listener, CALL).map(TcpListener)
    }

    /// The next connection, and where it comes from. Blocks the user thread until there is one.
    ///
    /// # Errors
    /// Of the kernel; some, such as `ConnectionAborted`, are about one connection, and the next may be fine.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        const CALL: &str = "fut::net::TcpListener::accept";
        let (stream, from) = self.0.read(CALL, net::TcpListener::accept)?;
        Ok((TcpStream(Socket::new(stream, CALL)?), from))
    }

    /// The connections as they come; never ends.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming(self)
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().local_addr()
    }
}

/// The connections of a [`TcpListener`], as they come.
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
    /// Connects with the first of the addresses where that is possible. Names are looked up on an LWP that may block.
    ///
    /// # Errors
    /// When it is possible with none, or the kernel refuses to wait for it.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn connect(addr: impl ToSocketAddrs) -> io::Result<TcpStream> {
        const CALL: &str = "fut::net::TcpStream::connect";
        here(CALL);
        first_of(&addr, |address| connect_within(&address, Limit::None, CALL))
    }

    /// The same, with one address and for at most this time.
    ///
    /// # Errors
    /// As above; `TimedOut`; `InvalidInput` for a limit of zero.
    ///
    /// # Panics
    /// Outside of a runtime.
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

    /// Where it is connected to.
    ///
    /// # Errors
    /// Of the kernel.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().peer_addr()
    }

    /// Its own end.
    ///
    /// # Errors
    /// Of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().local_addr()
    }

    /// Ends one direction, or both. User threads that wait in one come back.
    ///
    /// # Errors
    /// Of the kernel.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.std().shutdown(how)
    }

    /// Whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// Of the kernel.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.0.std().set_nodelay(nodelay)
    }

    /// Whether they are.
    ///
    /// # Errors
    /// Of the kernel.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.0.std().nodelay()
    }

    /// Reads without taking what is read away.
    ///
    /// # Errors
    /// As reading.
    ///
    /// # Panics
    /// Outside of a runtime, when it would block.
    #[track_caller]
    pub fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read("fut::net::TcpStream::peek", |std| std.peek(buf))
    }
}

#[track_caller]
fn connect_within(address: &SocketAddr, limit: Limit, call: &'static str) -> io::Result<TcpStream> {
    let socket = Socket::new(connect::begin_tcp(address)?, call)?;
    socket.write_within(limit, call, connect::is_connected)?;
    Ok(TcpStream(socket))
}
