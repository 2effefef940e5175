//! System calls on sockets that the standard library lacks. Only [`wait`] and [`poll`] block.

use std::{
    ffi::OsStr,
    io::{self, ErrorKind},
    mem,
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    path::Path,
    time::{Duration, Instant},
};

/// The peer, as reported by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) pid: u32,
    pub(super) uid: u32,
}

/// Maximum number of descriptors that one message carries (`SCM_MAX_FD`, include/net/scm.h). With room for fewer, the
/// kernel would install some of them, and report the rest only by `MSG_CTRUNC`.
const MOST_DESCRIPTORS: usize = 253;
/// Words for one control message with that number of descriptors, aligned as such a message must be.
const CONTROL_WORDS: usize = (mem::size_of::<libc::cmsghdr>() + MOST_DESCRIPTORS * 4).div_ceil(8);
/// How often a wait checks for cancellation, if no signal interrupts it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(super) fn effective_uid() -> u32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Longest path of a socket, in bytes.
pub(super) fn longest_path() -> usize {
    mem::size_of::<libc::sockaddr_un>() - mem::offset_of!(libc::sockaddr_un, sun_path) - 1
}

/// Connects without waiting for a process that does not accept: then the error is `WouldBlock`. The stream is
/// non-blocking.
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    let (address, len) = address(path.as_os_str())?;
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes no pointer.
    let fd = checked(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    // SAFETY: the descriptor was just made, and has no other owner.
    let stream = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: `address` is a valid address of `len` bytes.
    checked(unsafe { libc::connect(fd, (&raw const address).cast(), len) })?;
    Ok(stream)
}

fn address(path: &OsStr) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: plain data, for which zeros are valid.
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

/// The process at the other end. It has connected, or it listens.
pub(super) fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = mem::size_of::<libc::ucred>() as libc::socklen_t;
    let fd = stream.as_raw_fd();
    // SAFETY: `found` is valid for writing `len` bytes, the size that the option requires.
    checked(unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut found).cast(), &raw mut len)
    })?;
    Ok(Peer { pid: found.pid as u32, uid: found.uid })
}

/// Identity (device, inode) of the file that a descriptor refers to, if it is open.
pub(super) fn identity(fd: RawFd) -> Option<(u64, u64)> {
    // SAFETY: plain data, for which zeros are valid.
    let mut found: libc::stat = unsafe { mem::zeroed() };
    // SAFETY: `found` is valid for writing; an invalid descriptor is only an error.
    let done = unsafe { libc::fstat(fd, &raw mut found) };
    (done == 0).then_some((found.st_dev, found.st_ino))
}

/// Closes a descriptor that this process inherited, if the descriptor still refers to that file.
pub(super) fn close_if(fd: RawFd, file: (u64, u64)) {
    if identity(fd) == Some(file) {
        // SAFETY: this is the descriptor that the caller names. After `fork`, the thread that used it does not exist in
        // the child.
        unsafe { libc::close(fd) };
    }
}

/// The result of one `receive` call.
pub(super) struct Received {
    /// Number of bytes; 0 at the end of the stream.
    pub(super) len: usize,
    /// All descriptors received with these bytes. They are owned: they are closed when this value is dropped.
    pub(super) descriptors: Vec<OwnedFd>,
}

/// Receives the available bytes, and all descriptors passed with them. `WouldBlock` if there is nothing to receive.
pub(super) fn receive(stream: &UnixStream, to: &mut [u8]) -> io::Result<Received> {
    let mut part = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let mut control = [0_u64; CONTROL_WORDS];
    let mut message = message(&mut part, &mut control);
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: `message` points to `to` and `control`, with their lengths; both outlive the call.
    let len = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, flags) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    Ok(Received { len, descriptors: descriptors_in(&message) })
}

/// A message header for these bytes, with `control` as the buffer of control messages.
fn message(part: &mut libc::iovec, control: &mut [u64]) -> libc::msghdr {
    // SAFETY: plain data, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = mem::size_of_val(control);
    message
}

/// Takes every descriptor that the kernel has installed, whatever flags the message has.
fn descriptors_in(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut descriptors = Vec::new();
    // SAFETY: the kernel has filled in `message`, and its control bytes are still valid.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: the pointer is null, or to a header in these bytes, which are aligned for one.
    while let Some(found) = unsafe { header.as_ref() } {
        if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            // SAFETY: computes a length, and accesses no memory.
            let before = unsafe { libc::CMSG_LEN(0) } as usize;
            let count = found.cmsg_len.saturating_sub(before) / mem::size_of::<RawFd>();
            // SAFETY: the header was written by the kernel.
            let data = unsafe { libc::CMSG_DATA(header) }.cast::<RawFd>();
            descriptors.extend((0..count).map(|index| {
                // SAFETY: by its length, the header is followed by more than `index` descriptors, which the kernel
                // wrote.
                let place = unsafe { data.add(index) };
                // SAFETY: as above.
                let fd = unsafe { place.read_unaligned() };
                // SAFETY: the kernel has installed the descriptor for this call, so it has no other owner.
                unsafe { OwnedFd::from_raw_fd(fd) }
            }));
        }
        // SAFETY: `header` is in the control bytes of `message`.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    descriptors
}

/// Sends as many of these bytes as there is room for, and a descriptor with the first of them. `WouldBlock` if there is
/// no room at all.
pub(super) fn send(stream: &UnixStream, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<usize> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: computes a length, and accesses no memory.
    let len = unsafe { libc::CMSG_SPACE(mem::size_of::<RawFd>() as u32) } as usize;
    let mut control = [0_u64; CONTROL_WORDS];
    let words = if fd.is_some() { len.div_ceil(8) } else { 0 };
    let mut message = message(&mut part, &mut control[..words]);
    if let Some(fd) = fd {
        // SAFETY: `message` points to control bytes with their length.
        let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        // SAFETY: the pointer is null, or to the start of `control`, which is aligned and long enough for a header.
        let header = unsafe { header.as_mut() }.ok_or(ErrorKind::InvalidInput)?;
        header.cmsg_level = libc::SOL_SOCKET;
        header.cmsg_type = libc::SCM_RIGHTS;
        // SAFETY: computes a length, and accesses no memory.
        header.cmsg_len = unsafe { libc::CMSG_LEN(mem::size_of::<RawFd>() as u32) } as usize;
        // SAFETY: the header is in `control`.
        let data = unsafe { libc::CMSG_DATA(header) }.cast::<RawFd>();
        // SAFETY: `control` has room for a header and one descriptor.
        unsafe { data.write_unaligned(fd.as_raw_fd()) };
    }
    message.msg_controllen = words * 8;
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: `message` points to `bytes`, which are only read, and to `control`.
    let sent = unsafe { libc::sendmsg(stream.as_raw_fd(), &raw const message, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Waits until there is something to receive, or, with `to_send`, room to send. `TimedOut` at the deadline.
/// `Interrupted` when `is_cancelled` returns true; it is called at the beginning, after every signal, and every 20 ms.
pub(super) fn wait(
    stream: &UnixStream,
    to_send: bool,
    deadline: Instant,
    is_cancelled: &dyn Fn() -> bool,
) -> io::Result<()> {
    let events = if to_send { libc::POLLOUT } else { libc::POLLIN };
    let mut polled = [libc::pollfd { fd: stream.as_raw_fd(), events, revents: 0 }];
    loop {
        if is_cancelled() {
            return Err(ErrorKind::Interrupted.into());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        if poll(&mut polled, Some(left.min(LOOK_EVERY)))? {
            return Ok(());
        }
    }
}

/// Waits until one of these is ready, at most for `within`; `false` after a timeout or a signal.
pub(super) fn poll(polled: &mut [libc::pollfd], within: Option<Duration>) -> io::Result<bool> {
    // Rounded up: a wait of less than a millisecond must not become a busy loop.
    let within = within.map_or(-1, |within| i32::try_from(within.as_millis() + 1).unwrap_or(i32::MAX));
    // SAFETY: the pointer and the length are those of `polled`.
    let found = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, within) };
    match checked(found) {
        Ok(found) => Ok(found > 0),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
    }
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
