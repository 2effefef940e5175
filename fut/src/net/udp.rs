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
    /// A UDP socket, as [`std::net::UdpSocket`].
    UdpSocket(net::UdpSocket), "fut::net::UdpSocket"
}

time_limits!(UdpSocket);

impl UdpSocket {
    /// A socket at the first of the addresses where that is possible.
    ///
    /// # Errors
    /// When it is possible at none, or the kernel refuses to wait for it.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn bind(addr: impl ToSocketAddrs) -> io::Result<UdpSocket> {
        const CALL: &str = "fut::net::UdpSocket::bind";
        here(CALL);
        let socket = first_of(&addr, net::UdpSocket::bind)?;
        Socket::new(socket, CALL).map(UdpSocket)
    }

    /// From now on, sends there and receives from there only.
    ///
    /// # Errors
    /// Of the look-up or the kernel.
    pub fn connect(&self, addr: impl ToSocketAddrs) -> io::Result<()> {
        first_of(&addr, |address| self.0.std().connect(address))
    }

    /// Sends a datagram to where it is connected.
    ///
    /// # Errors
    /// Of the kernel; `TimedOut` at the limit.
    ///
    /// # Panics
    /// Outside of a runtime, when it would block.
    #[track_caller]
    pub fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.0.write("fut::net::UdpSocket::send", |std| std.send(buf))
    }

    /// Sends a datagram to the first of the addresses.
    ///
    /// # Errors
    /// Of the look-up or the kernel; `TimedOut` at the limit.
    ///
    /// # Panics
    /// Outside of a runtime, when it would block.
    #[track_caller]
    pub fn send_to(&self, buf: &[u8], addr: impl ToSocketAddrs) -> io::Result<usize> {
        let Some(to) = addr.resolve()?.into_iter().next() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no addresses to send data to"));
        };
        self.0.write("fut::net::UdpSocket::send_to", |std| std.send_to(buf, to))
    }

    /// Receives a datagram from where it is connected; what does not fit is lost.
    ///
    /// # Errors
    /// Of the kernel; `TimedOut` at the limit.
    ///
    /// # Panics
    /// Outside of a runtime, when it would block.
    #[track_caller]
    pub fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read("fut::net::UdpSocket::recv", |std| std.recv(buf))
    }

    /// Receives a datagram, and where it comes from; what does not fit is lost.
    ///
    /// # Errors
    /// As [`UdpSocket::recv`].
    ///
    /// # Panics
    /// Outside of a runtime, when it would block.
    #[track_caller]
    pub fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.read("fut::net::UdpSocket::recv_from", |std| std.recv_from(buf))
    }

    /// As [`UdpSocket::recv`], and the datagram stays for the next call.
    ///
    /// # Errors
    /// As [`UdpSocket::recv`].
    ///
    /// # Panics
    /// Outside of a runtime, when it would block.
    #[track_caller]
    pub fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read("fut::net::UdpSocket::peek", |std| std.peek(buf))
    }

    /// As [`UdpSocket::recv_from`], and the datagram stays for the next call.
    ///
    /// # Errors
    /// As [`UdpSocket::recv`].
    ///
    /// # Panics
    /// Outside of a runtime, when it would block.
    #[track_caller]
    pub fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.read("fut::net::UdpSocket::peek_from", |std| std.peek_from(buf))
    }

    /// Its own address.
    ///
    /// # Errors
    /// Of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().local_addr()
    }

    /// Where it is connected to.
    ///
    /// # Errors
    /// Of the kernel.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.std().peer_addr()
    }

    /// Whether it may send to broadcast addresses (`SO_BROADCAST`).
    ///
    /// # Errors
    /// Of the kernel.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        self.0.std().set_broadcast(broadcast)
    }
}
