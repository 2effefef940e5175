//! The client: requests an arena from the recorder.

use std::{
    io::{self, ErrorKind, IoSliceMut},
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags,
        SocketType, connect, recvmsg, socket_with,
    },
};

use super::{GREETING, MAX_ANSWER, REFUSAL};
use crate::shm::{Arena, ArenaError};

/// Time limit for an answer: a stopped recorder never answers.
const WITHIN: Duration = Duration::from_secs(5);
/// Pause when the backlog of the recorder's socket is full.
const NAP: Duration = Duration::from_millis(1);

/// Requests the arena of this process from the recorder that listens on `socket`.
///
/// # Errors
/// If there is no listener, or the recorder refuses or does not answer in time.
pub(crate) fn ask(socket: &Path) -> Result<Arena, ArenaError> {
    let deadline = Instant::now() + WITHIN;
    let unreachable = |error| ArenaError::Unreachable { socket: socket.to_path_buf(), error };
    let (answer, memory) = converse(socket, deadline).map_err(unreachable)?;
    match (answer.strip_prefix(GREETING), memory) {
        (Some(""), Some(memory)) => Arena::received(memory, socket),
        (Some(why), None) if why.starts_with(REFUSAL) => {
            Err(ArenaError::Refused { socket: socket.to_path_buf(), why: why[REFUSAL.len()..].into() })
        }
        (_, memory) => Err(ArenaError::Foreign {
            file: socket.to_path_buf(),
            expected: format!("{GREETING:?} with a descriptor"),
            found: format!("{answer:?} {} one", if memory.is_some() { "with" } else { "without" }),
        }),
    }
}

fn converse(path: &Path, deadline: Instant) -> io::Result<(String, Option<OwnedFd>)> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    loop {
        match connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < deadline => thread::sleep(NAP),
            Err(Errno::AGAIN | Errno::INTR) => return Err(silent()),
            Err(Errno::CONNREFUSED) => {
                return Err(io::Error::new(ErrorKind::ConnectionRefused, "no recorder listens here now"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err(silent()),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        match receive(&socket) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            received => return Ok(received?),
        }
    }
}

fn silent() -> io::Error {
    io::Error::new(
        ErrorKind::TimedOut,
        format!("the recorder has not answered within {} s", WITHIN.as_secs()),
    )
}

fn receive(socket: &OwnedFd) -> Result<(String, Option<OwnedFd>), Errno> {
    let mut bytes = [0; MAX_ANSWER];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut memory = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            memory = descriptors.last();
        }
    }
    Ok((String::from_utf8_lossy(&bytes[..received.bytes]).into_owned(), memory))
}
