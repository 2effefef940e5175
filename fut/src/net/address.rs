//! Address arguments. The trait of the standard library does not specify whether a look-up may block. This module makes
//! look-ups that may block on an LWP for blocking calls, and all others directly.

use std::{
    io,
    net::{
        IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, ToSocketAddrs as StdToSocketAddrs,
    },
};

use crate::blocking;

/// Like [`std::net::ToSocketAddrs`], for the same types. Cannot be implemented outside this crate.
pub trait ToSocketAddrs: sealed::Resolve {}

impl<A: sealed::Resolve + ?Sized> ToSocketAddrs for A {}

mod sealed {
    use super::*;

    pub trait Resolve {
        /// The addresses. Names are looked up on an LWP for blocking calls.
        fn resolve(&self) -> io::Result<Vec<SocketAddr>>;
    }
}

pub(super) use sealed::Resolve;

macro_rules! known_at_once {
    ($($ty:ty),*) => { $(
        impl Resolve for $ty {
            fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
                Ok(self.to_socket_addrs()?.collect())
            }
        }
    )* };
}

known_at_once! {
    SocketAddr, SocketAddrV4, SocketAddrV6, (IpAddr, u16), (Ipv4Addr, u16), (Ipv6Addr, u16), [SocketAddr]
}

impl<const N: usize> Resolve for [SocketAddr; N] {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(self.to_vec())
    }
}

impl Resolve for str {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        match self.parse() {
            Ok(address) => Ok(vec![address]),
            Err(_) => blocking(|| Ok(self.to_socket_addrs()?.collect())),
        }
    }
}

impl Resolve for (&str, u16) {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        match self.0.parse::<IpAddr>() {
            Ok(ip) => Ok(vec![SocketAddr::new(ip, self.1)]),
            Err(_) => blocking(|| Ok(self.to_socket_addrs()?.collect())),
        }
    }
}

impl Resolve for String {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        self.as_str().resolve()
    }
}

impl Resolve for (String, u16) {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        (self.0.as_str(), self.1).resolve()
    }
}

impl<A: Resolve + ?Sized> Resolve for &A {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        (**self).resolve()
    }
}

/// Calls `try_one` for one address after the other, and returns the first success.
///
/// # Errors
/// The error of the look-up. If no address succeeds, the error of the last one; `InvalidInput` if there is no address.
pub(super) fn first_of<R>(
    addresses: &impl ToSocketAddrs,
    mut try_one: impl FnMut(SocketAddr) -> io::Result<R>,
) -> io::Result<R> {
    let mut last = None;
    for address in addresses.resolve()? {
        match try_one(address) {
            Ok(done) => return Ok(done),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "could not resolve to any addresses: expected at least one",
        )
    }))
}
