//! The system calls on the socket that the standard library does not have, and deadlines for the others.

use std::{
    ffi::OsStr,
    io::{self, ErrorKind, Write},
    mem,
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    path::Path,
    ptr,
    time::{Duration, Instant},
};

/// Who is at the other end, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) pid: u32,
    pub(super) uid: u32,
}

/// Bytes for one control message that carries one descriptor, aligned as such a message must be.
const CONTROL_WORDS: usize = 3;

pub(super) fn effective_uid() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Longest path of a socket, in bytes.
pub(super) fn longest_path() -> usize {
    mem::size_of::<libc::sockaddr_un>() - mem::offset_of!(libc::sockaddr_un, sun_path) - 1
}

/// Connects without waiting for a process that does not accept: `WouldBlock` then.
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    let (address, len) = address(path.as_os_str())?;
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes no pointer.
    let fd = checked(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    // SAFETY: just made, and nobody else's.
    let stream = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: `address` is a valid one, of `len` bytes.
    checked(unsafe { libc::connect(fd, (&raw const address).cast(), len) })?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn address(path: &OsStr) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: plain data, of which zeros are valid.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_bytes();
    if bytes.len() > longest_path() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the path is too long for a socket"));
    }
    for (to, byte) in address.sun_path.iter_mut().zip(bytes) {
        *to = *byte as libc::c_char;
    }
    Ok((address, mem::size_of::<libc::sockaddr_un>() as libc::socklen_t))
}

/// Who connected, or who listened.
pub(super) fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = mem::size_of::<libc::ucred>() as libc::socklen_t;
    let fd = stream.as_raw_fd();
    // SAFETY: `found` is a place of `len` bytes, which the option wants.
    checked(unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut found).cast(), &raw mut len)
    })?;
    Ok(Peer { pid: found.pid as u32, uid: found.uid })
}

/// Which file a descriptor is, if it is one.
pub(super) fn identity(fd: RawFd) -> Option<(u64, u64)> {
    // SAFETY: plain data, of which zeros are valid.
    let mut found: libc::stat = unsafe { mem::zeroed() };
    // SAFETY: `found` is a valid place; a descriptor that is none is an error, no more.
    let done = unsafe { libc::fstat(fd, &raw mut found) };
    (done == 0).then_some((found.st_dev, found.st_ino))
}

/// Closes a descriptor that this process inherited, if it is still that file.
pub(super) fn close_if(fd: RawFd, file: (u64, u64)) {
    if identity(fd) == Some(file) {
        // SAFETY: it is the descriptor we were told of, and whoever used it was a thread that did not survive `fork`.
        unsafe { libc::close(fd) };
    }
}

/// Receives bytes before the deadline, and the descriptor that came with them.
pub(super) fn receive(
    stream: &UnixStream,
    to: &mut [u8],
    deadline: Instant,
) -> io::Result<(usize, Option<OwnedFd>)> {
    stream.set_read_timeout(Some(left(deadline)?))?;
    let mut part = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let mut control = [0_u64; CONTROL_WORDS];
    // SAFETY: plain data, of which zeros are valid.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = mem::size_of_val(&control);
    // SAFETY: `message` points to `to` and `control`, with their lengths, which outlive the call. More descriptors than
    // one find no room, and are closed by the kernel.
    let len = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    Ok((len, descriptor_in(&message)))
}

fn descriptor_in(message: &libc::msghdr) -> Option<OwnedFd> {
    // SAFETY: the kernel filled `message` in, whose control bytes are still there.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: null, or a header in these bytes, which are aligned for one.
    let header = unsafe { header.as_ref() }?;
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
        return None;
    }
    // SAFETY: a header that the kernel wrote.
    let data = unsafe { libc::CMSG_DATA(header) }.cast::<RawFd>();
    // SAFETY: a message of this type holds at least one descriptor.
    let fd = unsafe { data.read_unaligned() };
    // SAFETY: the kernel made it for us.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends all bytes, and a descriptor with the first of them.
pub(super) fn send_with(stream: &mut UnixStream, bytes: &[u8], fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = [0_u64; CONTROL_WORDS];
    // SAFETY: plain data, of which zeros are valid.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = mem::size_of_val(&control);
    // SAFETY: `message` points to control bytes with their length.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: null, or the beginning of `control`, which is aligned and long enough for a header.
    let header = unsafe { header.as_mut() }.ok_or(ErrorKind::InvalidInput)?;
    header.cmsg_level = libc::SOL_SOCKET;
    header.cmsg_type = libc::SCM_RIGHTS;
    // SAFETY: computes, and touches no memory.
    header.cmsg_len = unsafe { libc::CMSG_LEN(mem::size_of::<RawFd>() as u32) } as usize;
    // SAFETY: a header in `control`.
    let data = unsafe { libc::CMSG_DATA(header) }.cast::<RawFd>();
    // SAFETY: `control` has room for a header and one descriptor.
    unsafe { data.write_unaligned(fd.as_raw_fd()) };
    // SAFETY: `message` points to `bytes`, which are only read, and to `control`.
    let sent = unsafe { libc::sendmsg(stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
    stream.write_all(&bytes[sent..])
}

/// Sends all bytes before the deadline.
pub(super) fn send(stream: &mut UnixStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// How long there is until the deadline; never 0, which would mean forever.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left.max(Duration::from_micros(1))) }
}

/// Runs `body` with all signals blocked: a thread that it makes takes none of the program's.
pub(super) fn with_signals_blocked<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: a signal set is plain bits, which are filled in next.
    let mut all: libc::sigset_t = unsafe { mem::zeroed() };
    let mut before = all;
    // SAFETY: `all` is ours.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: `all` is filled in, `before` a valid place.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    let result = body();
    // SAFETY: `before` was filled in by the first call.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    result
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
