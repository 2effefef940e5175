//! The thread in the traced process that answers.

use std::{
    fs::File,
    io::{self, ErrorKind},
    mem,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::PathBuf,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};

use super::{
    answer, place,
    reply::Reply,
    request::{MAX_REQUEST, Request},
    wire,
};
use crate::session::Session;

/// `0`: this process cannot be asked or changed from outside.
pub const ENV_CONTROL: &str = "FUT_CONTROL";

/// How long a request may take to arrive, and an answer to be taken.
const REQUEST_WITHIN: Duration = Duration::from_secs(2);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// When no descriptor or memory is left for a connection.
const NAP: Duration = Duration::from_millis(100);

/// Whether this process can be controlled from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It does not record yet.
    NotStarted,
    /// `FUT_CONTROL` says 0.
    SwitchedOff,
    /// It listens on this socket.
    Listening(PathBuf),
    /// It cannot, and this is why.
    Failed(String),
}

/// What became of the start, and the socket for a child that must close it. Never freed: there is one for each session.
#[derive(Debug)]
struct Started {
    state: State,
    listener: Option<(i32, (u64, u64))>,
}

static STARTED: AtomicPtr<Started> = AtomicPtr::new(ptr::null_mut());

fn started() -> Option<&'static Started> {
    // Acquire: pairs with the Release in `start`.
    // SAFETY: null, or leaked in `start`.
    unsafe { STARTED.load(Ordering::Acquire).as_ref() }
}

/// Whether this process can be controlled from outside, and if not, why.
pub fn state() -> State {
    started().map_or(State::NotStarted, |started| started.state.clone())
}

/// Begins to listen, if it can. The program goes on without if not.
pub(crate) fn start(session: &'static Session) {
    let started = if std::env::var_os(ENV_CONTROL).is_some_and(|value| value == "0") {
        Started { state: State::SwitchedOff, listener: None }
    } else {
        listen(session)
            .unwrap_or_else(|error| Started { state: State::Failed(error.to_string()), listener: None })
    };
    // Release: pairs with the Acquire in `started`.
    STARTED.store(Box::into_raw(Box::new(started)), Ordering::Release);
}

/// In a child that `fork` made: the thread and the socket are the parent's. Should the child keep the socket open, it
/// would outlive the parent, and nobody would answer.
pub(crate) fn forget() {
    if let Some((fd, file)) = started().and_then(|started| started.listener) {
        wire::close_if(fd, file);
    }
    STARTED.store(ptr::null_mut(), Ordering::Release);
}

fn listen(session: &'static Session) -> io::Result<Started> {
    let (listener, path) = place::listen(session.pid.0)?;
    let fd = listener.as_raw_fd();
    let file = wire::identity(fd).ok_or_else(io::Error::last_os_error)?;
    let since = SystemTime::now();
    let body = move || serve(listener, file, |stream| converse(stream, session, since));
    let made = wire::with_signals_blocked(|| thread::Builder::new().name("fut-control".into()).spawn(body));
    if let Err(error) = made {
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    Ok(Started { state: State::Listening(path), listener: Some((fd, file)) })
}

/// Answers one connection after the other, until the process ends.
fn serve(listener: UnixListener, file: (u64, u64), converse: impl Fn(UnixStream)) {
    // A program may close all its descriptors, and give their numbers to files of its own.
    while wire::identity(listener.as_raw_fd()) == Some(file) {
        match listener.accept() {
            Ok((stream, _)) => converse(stream),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if is_passing(&error) => thread::sleep(NAP),
            Err(_) => break,
        }
    }
    // It is not ours to close any more.
    mem::forget(listener);
}

fn is_passing(error: &io::Error) -> bool {
    let passing = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::ECONNABORTED];
    error.raw_os_error().is_some_and(|code| passing.contains(&code))
}

/// One request, one answer. Whoever does not take it has gone; there is nobody to tell.
fn converse(mut stream: UnixStream, session: &'static Session, since: SystemTime) {
    let answer = match asked(&stream) {
        Ok((request, file)) => answer::answer(&request, file, session, since),
        Err(why) => Err(why),
    };
    let _ = wire::send(&mut stream, Reply::encode(&answer).as_bytes(), Instant::now() + ANSWER_WITHIN);
}

/// What somebody who may ask has asked, and the file that came with it.
fn asked(stream: &UnixStream) -> Result<(Request, Option<File>), String> {
    let peer = wire::peer(stream).map_err(|error| format!("nobody knows who asks: {error}"))?;
    let own = wire::effective_uid();
    if peer.uid != own && peer.uid != 0 {
        return Err(format!("user {} may not: only user {own} and root may", peer.uid));
    }
    let (line, file) = read_line(stream, Instant::now() + REQUEST_WITHIN)?;
    Ok((Request::parse(&line)?, file))
}

/// Reads one line, without its newline, and nothing behind it.
fn read_line(stream: &UnixStream, deadline: Instant) -> Result<(Vec<u8>, Option<File>), String> {
    let mut bytes = [0; MAX_REQUEST];
    let mut filled = 0;
    let mut file: Option<OwnedFd> = None;
    while filled < MAX_REQUEST {
        let (len, descriptor) = match wire::receive(stream, &mut bytes[filled..], deadline) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(format!(
                    "request: expected a line within 2 s, found {filled} bytes without a newline"
                ));
            }
            Err(error) => return Err(format!("request: {error}")),
        };
        file = file.or(descriptor);
        if len == 0 {
            return Err(format!("request: expected a line, found its end after {filled} bytes"));
        }
        let newline = bytes[filled..filled + len].iter().position(|byte| *byte == b'\n');
        filled += len;
        if let Some(at) = newline.map(|at| filled - len + at) {
            if at + 1 < filled {
                return Err(format!("request: expected one line, found {} bytes behind it", filled - at - 1));
            }
            return Ok((bytes[..at].to_vec(), file.map(File::from)));
        }
    }
    Err(format!("request: expected a line of at most {MAX_REQUEST} bytes, found no newline in them"))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::Shutdown,
    };

    use super::*;

    /// What the server makes of these bytes, behind which the client is silent or closes.
    fn line_of(bytes: &[u8], closes: bool) -> Result<Vec<u8>, String> {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(bytes).unwrap();
        if closes {
            client.shutdown(Shutdown::Write).unwrap();
        }
        read_line(&server, Instant::now() + Duration::from_millis(30)).map(|(line, _)| line)
    }

    #[test]
    fn a_line_is_read_to_its_newline() {
        assert_eq!(line_of(b"fut-control 1 list\n", false), Ok(b"fut-control 1 list".to_vec()));
        assert_eq!(line_of(b"\n", false), Ok(Vec::new()));
        let longest = [&[b'x'; MAX_REQUEST - 1][..], b"\n"].concat();
        assert_eq!(line_of(&longest, false).map(|line| line.len()), Ok(MAX_REQUEST - 1));
    }

    #[test]
    fn what_is_no_line_is_an_error_in_time() {
        for (bytes, closes, expected) in [
            (&b""[..], false, "within 2 s, found 0 bytes"),
            (b"fut-control 1 li", false, "within 2 s, found 16 bytes"),
            (b"", true, "found its end after 0 bytes"),
            (b"fut-control 1 li", true, "found its end after 16 bytes"),
            (b"fut-control 1 list\nmore", true, "4 bytes behind it"),
            (b"\n\n", true, "1 bytes behind it"),
            (&[b'x'; 2 * MAX_REQUEST], false, "at most 4096 bytes"),
        ] {
            let error = line_of(bytes, closes).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn bytes_that_somebody_made_up_are_no_request() {
        // A multiplier of Knuth's: the bytes are the same in every run.
        let mut x = 42_u64;
        let mut byte = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 56) as u8
        };
        for len in 0..400 {
            let mut bytes: Vec<u8> = (0..len).map(|_| byte()).collect();
            if len % 2 == 0 {
                bytes.splice(0..0, *b"fut-control 1 ");
            }
            let line = line_of(&bytes, true);
            assert!(line.and_then(|line| Request::parse(&line)).is_err(), "{bytes:?}");
            bytes.retain(|byte| *byte != b'\n');
            assert!(Request::parse(&bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_listener_whose_number_another_file_has_got_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("a.sock")).unwrap();
        let other = File::open(folder.path()).unwrap();
        let (fd, file) = (listener.as_raw_fd(), wire::identity(other.as_raw_fd()).unwrap());
        serve(listener, file, |_| panic!("nobody connects"));
        assert!(wire::identity(fd).is_some(), "still open");
        wire::close_if(fd, file);
        assert!(wire::identity(fd).is_some(), "not that file");
        wire::close_if(fd, wire::identity(fd).unwrap());
    }

    #[test]
    fn a_descriptor_travels_with_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let sent = File::create_new(&path).unwrap();
        let (mut client, server) = UnixStream::pair().unwrap();
        wire::send_with(&mut client, b"line\n", std::os::fd::AsFd::as_fd(&sent)).unwrap();
        let (line, file) = read_line(&server, Instant::now() + REQUEST_WITHIN).unwrap();
        assert_eq!(line, b"line");
        file.expect("came with it").write_all(b"written").unwrap();
        let mut text = String::new();
        File::open(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "written");
    }
}
