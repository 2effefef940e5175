//! UDP.

use std::{
    io,
    net::{self, SocketAddr},
};

use super::{
    address::{ToSocketAddrs, first_of},
    socket::{Socket, socket, time_limits},
};
use crate::runtime::here;

socket! {
    /// A UDP socket, like [`std::net::UdpSocket`].
    UdpSocket(net::UdpSocket), "fut::net::UdpSocket"
}

time_limits!(UdpSocket);

impl UdpSocket {
    /// Makes a socket, and binds it to the first of the addresses for which this succeeds.
    ///
    /// # Errors
    /// If it can bind to none of them, or the socket cannot be registered with the reactor.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn bind(addr: impl ToSocketAddrs) -> io::Result<UdpSocket> {
        const CALL: &str = "fut::net::UdpSocket::bind";
        here(CALL);
        let socket = first_of(&addr, net::UdpSocket::bind)?;
        Socket::new(socket, CALL).map(UdpSocket)
    }

    /// Connects the socket. From now on it sends only to this address, and receives only from it.
    ///
    /// # Errors
    /// The errors of the look-up and the kernel.
    pub fn connect(&self, addr: impl ToSocketAddrs) -> io::Result<()> {
        first_of(&addr, |address| self.0.std().connect(address))
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
        self.0.write("fut::net::UdpSocket::send", |std| std.send(buf))
    }

    /// Sends a datagram to the first of the addresses.
    ///
    /// # Errors
    /// The errors of the look-up and the kernel; `TimedOut` at the time limit.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn send_to(&self, buf: &[u8], addr: impl ToSocketAddrs) -> io::Result<usize> {
        let Some(to) = addr.resolve()?.into_iter().next() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no addresses to send data to"));
        };
        self.0.write("fut::net::UdpSocket::send_to", |std| std.send_to(buf, to))
    }

    /// Receives a datagram from the connected address. Bytes that do not fit into `buf` are lost.
    ///
    /// # Errors
    /// The errors of the kernel; `TimedOut` at the time limit.
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read("fut::net::UdpSocket::recv", |std| std.recv(buf))
    }

    /// Receives a datagram, and returns the address of the sender. Bytes that do not fit into `buf` are lost.
    ///
    /// # Errors
    /// Like [`UdpSocket::recv`].
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.read("fut::net::UdpSocket::recv_from", |std| std.recv_from(buf))
    }

    /// Like [`UdpSocket::recv`], without removing the datagram.
    ///
    /// # Errors
    /// Like [`UdpSocket::recv`].
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read("fut::net::UdpSocket::peek", |std| std.peek(buf))
    }

    /// Like [`UdpSocket::recv_from`], without removing the datagram.
    ///
    /// # Errors
    /// Like [`UdpSocket::recv`].
    ///
    /// # Panics
    /// If it would block outside a runtime.
    #[track_caller]
    pub fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.read("fut::net::UdpSocket::peek_from", |std| std.peek_from(buf))
    }

    /// The local address.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().local_addr()
    }

    /// The connected address.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().peer_addr()
    }

    /// Whether it may send to broadcast addresses (`SO_BROADCAST`).
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        self.0.std().set_broadcast(broadcast)
    }
}
