//! Connecting without blocking, which the standard library does not support.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr as UnixAddr, UnixStream},
    },
};

use rustix::{
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, ipproto, socket_with},
};

/// A TCP socket whose connection is in progress. It becomes writable when the connection is established or has failed.
pub(super) fn begin_tcp(address: &SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    match connect(&socket, address) {
        // After `EINTR`, the kernel continues to connect.
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

/// Whether it is connected; `WouldBlock` while the connection is in progress.
pub(super) fn is_connected(stream: &TcpStream) -> io::Result<()> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error),
    }
}

/// A connected Unix socket. The kernel connects at once, except when the listener's backlog is full. Then the call
/// blocks. It is made on an LWP for blocking calls in this case, because no event reports when there is room.
pub(super) fn unix(address: &UnixAddr) -> io::Result<UnixStream> {
    let to = match (address.as_pathname(), address.as_abstract_name()) {
        (Some(path), _) => SocketAddrUnix::new(path)?,
        (None, Some(name)) => SocketAddrUnix::new_abstract_name(name)?,
        (None, None) => return Err(Errno::CONNREFUSED.into()),
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &to) {
        Ok(()) => Ok(UnixStream::from(socket)),
        Err(Errno::AGAIN) => crate::blocking(|| UnixStream::connect_addr(address)),
        Err(error) => Err(error.into()),
    }
}
