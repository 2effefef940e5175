//! The control thread of the traced process: accepts connections and answers requests.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, ErrorKind},
    mem,
    net::Shutdown,
    os::{
        fd::AsRawFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::PathBuf,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};

use super::{
    answer,
    reply::Reply,
    request::{MAX_REQUEST, Request},
    socket_folder, wire,
};
use crate::{environment, service_thread, session::Session};

/// Environment variable: with the value `0`, this process does not listen for requests.
pub const ENV_CONTROL: &str = "FUT_CONTROL";

/// Time limits for receiving a request and for sending an answer.
const REQUEST_WITHIN: Duration = Duration::from_secs(2);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Maximum number of simultaneous clients. Each takes one of the program's descriptors, and 4 KiB of memory.
const MOST_CLIENTS: usize = 16;
/// Limit of the bytes in unsent answers. Above it, requests are refused.
const MOST_UNSENT: usize = 16 << 20;
/// A process whose limit of descriptors is lower than this does not listen.
const LEAST_DESCRIPTORS: u64 = 64;
/// Pause after `accept` has failed for lack of descriptors or memory.
const NAP: Duration = Duration::from_millis(100);

/// Whether this process can be controlled from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// The process has not begun to record.
    NotStarted,
    /// `FUT_CONTROL` is 0.
    SwitchedOff,
    /// The process listens on the socket with this path.
    Listening(PathBuf),
    /// The process does not listen, for this reason.
    Failed(String),
}

/// The result of `start`, with the socket, which a forked child has to close. Never freed: there is one for each
/// session.
#[derive(Debug)]
struct Started {
    state: State,
    listener: Option<(i32, (u64, u64))>,
}

static STARTED: AtomicPtr<Started> = AtomicPtr::new(ptr::null_mut());

fn started() -> Option<&'static Started> {
    // Acquire: pairs with the Release in `start`.
    // SAFETY: the pointer is null, or to a value leaked in `start`.
    unsafe { STARTED.load(Ordering::Acquire).as_ref() }
}

/// Whether this process can be controlled from outside, and if not, for what reason.
pub fn state() -> State {
    started().map_or(State::NotStarted, |started| started.state.clone())
}

/// Starts the control thread. If that fails, the program continues without it.
pub(crate) fn start(session: &'static Session) {
    let started = if environment::variable(ENV_CONTROL).is_some_and(|value| value == "0") {
        Started { state: State::SwitchedOff, listener: None }
    } else {
        listen(session)
            .unwrap_or_else(|error| Started { state: State::Failed(error.to_string()), listener: None })
    };
    // Release: pairs with the Acquire in `started`.
    STARTED.store(Box::into_raw(Box::new(started)), Ordering::Release);
}

/// Called in a forked child, where the thread and the socket are those of the parent. If the child kept the socket
/// open, the socket would outlive the parent, and no thread would answer.
pub(crate) fn forget() {
    if let Some((fd, file)) = started().and_then(|started| started.listener) {
        wire::close_if(fd, file);
    }
    STARTED.store(ptr::null_mut(), Ordering::Release);
}

fn listen(session: &'static Session) -> io::Result<Started> {
    // If the limit of descriptors is low, all of them are left to the program.
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    if most < LEAST_DESCRIPTORS {
        let why = format!("expected a limit of at least {LEAST_DESCRIPTORS} descriptors, found {most}");
        return Err(io::Error::other(why));
    }
    let (listener, path) = socket_folder::listen(session.pid.0)?;
    let fd = listener.as_raw_fd();
    let file = wire::identity(fd).ok_or_else(io::Error::last_os_error)?;
    let since = SystemTime::now();
    let body = move || {
        serve(listener, file, |asked| {
            let (request, sent) = asked?;
            answer::answer(&request, sent, session, since)
        })
    };
    if let Err(error) = service_thread::spawn("fut-control", body) {
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    Ok(Started { state: State::Listening(path), listener: Some((fd, file)) })
}

/// A request of a permitted client, with the file passed with it; or why it is invalid.
type ReceivedRequest = Result<(Request, Option<File>), String>;

/// Answers requests until the process ends. It never waits for one client. So silent, slow or numerous clients delay
/// the others only by the time for computing the answers that come before theirs.
fn serve(
    listener: UnixListener,
    file: (u64, u64),
    answer: impl Fn(ReceivedRequest) -> Result<Reply, String>,
) {
    // Another process may share the socket (a child made by a raw `clone`), and accept the connection first.
    let _ = listener.set_nonblocking(true);
    let mut clients: VecDeque<Client> = VecDeque::new();
    loop {
        let mut polled = vec![polled(listener.as_raw_fd(), libc::POLLIN)];
        polled.extend(clients.iter().map(Client::polled));
        let first_end = clients.iter().map(|client| client.until).min();
        let within = first_end.map(|end| end.saturating_duration_since(Instant::now()));
        if wire::poll(&mut polled, within).is_err() {
            thread::sleep(NAP);
        }
        // The program may have closed all its descriptors, and reused their numbers for other files.
        if wire::identity(listener.as_raw_fd()) != Some(file) {
            break;
        }
        for client in mem::take(&mut clients) {
            let unsent = clients.iter().map(Client::unsent).sum();
            clients.extend(client.advance(unsent, &answer));
        }
        match listener.accept() {
            Ok((stream, _)) => {
                if clients.len() == MOST_CLIENTS {
                    // A regular client has sent its request by now and got its answer.
                    let oldest = clients.iter().position(Client::is_receiving).unwrap_or(0);
                    clients.remove(oldest).into_iter().for_each(Client::reject);
                }
                let unsent = clients.iter().map(Client::unsent).sum();
                clients.extend(Client::new(stream).and_then(|client| client.advance(unsent, &answer)));
            }
            Err(error) if is_passing(&error) => thread::sleep(NAP),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(_) => break,
        }
    }
    // The descriptors of these clients may belong to other files now, so they must not be closed.
    clients.into_iter().for_each(mem::forget);
    mem::forget(listener);
}

fn is_passing(error: &io::Error) -> bool {
    let passing = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::ECONNABORTED];
    error.raw_os_error().is_some_and(|code| passing.contains(&code))
}

fn polled(fd: i32, events: libc::c_short) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

/// One connection: receives a request, then sends the answer.
struct Client {
    stream: UnixStream,
    /// Identity of the socket's file (device and inode): see `serve`.
    file: (u64, u64),
    /// Deadline of the current phase.
    until: Instant,
    phase: Phase,
}

/// The state of a connection.
enum Phase {
    /// The request is being received.
    Receiving(Incoming),
    /// The answer is being sent.
    Sending { answer: Vec<u8>, sent: usize },
}

impl Client {
    /// `None` for a connection that is already closed.
    fn new(stream: UnixStream) -> Option<Client> {
        let file = wire::identity(stream.as_raw_fd())?;
        Some(Client {
            stream,
            file,
            until: Instant::now() + REQUEST_WITHIN,
            phase: Phase::Receiving(Incoming::default()),
        })
    }

    fn polled(&self) -> libc::pollfd {
        let events = if self.is_receiving() { libc::POLLIN } else { libc::POLLOUT };
        polled(self.stream.as_raw_fd(), events)
    }

    fn is_receiving(&self) -> bool {
        matches!(self.phase, Phase::Receiving(_))
    }

    /// Number of bytes of the client's answer that are still unsent.
    fn unsent(&self) -> usize {
        if let Phase::Sending { answer, sent } = &self.phase { answer.len() - sent } else { 0 }
    }

    /// Continues as far as possible without waiting; `None` when the connection is finished. `unsent` is the number of
    /// bytes that are still unsent to other clients.
    fn advance(
        mut self,
        unsent: usize,
        answer: impl Fn(ReceivedRequest) -> Result<Reply, String>,
    ) -> Option<Client> {
        if wire::identity(self.stream.as_raw_fd()) != Some(self.file) {
            // The program has closed the descriptor, and its number may belong to another file now.
            mem::forget(self);
            return None;
        }
        if let Phase::Receiving(incoming) = &mut self.phase {
            let asked = check_peer(&self.stream).and_then(|()| incoming.receive(&self.stream));
            let asked = match asked {
                Ok(None) if Instant::now() < self.until => return Some(self),
                Ok(None) => Err(incoming.too_late()),
                Ok(Some(line)) => Request::parse(&line).map(|request| (request, incoming.file.take())),
                Err(why) => Err(why),
            };
            let reply = if unsent > MOST_UNSENT {
                Err("too many answers to other clients are unsent: try again later".into())
            } else {
                answer(asked)
            };
            self.phase = Phase::Sending { answer: Reply::encode(&reply).into_bytes(), sent: 0 };
            self.until = Instant::now() + ANSWER_WITHIN;
        }
        self.send()
    }

    /// Sends as much as the socket accepts. Errors are ignored: the client has closed the connection.
    fn send(mut self) -> Option<Client> {
        let Phase::Sending { answer, sent } = &mut self.phase else { return Some(self) };
        while *sent < answer.len() {
            match wire::send(&self.stream, &answer[*sent..], None) {
                Ok(len) => *sent += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < self.until => {
                    return Some(self);
                }
                Err(_) => break,
            }
        }
        // `shutdown` closes the connection even if a child forked meanwhile shares it.
        let _ = self.stream.shutdown(Shutdown::Both);
        None
    }

    /// Rejects this client, to make room for another one.
    fn reject(mut self) {
        let reply = Err(format!("request: rejected: more than {MOST_CLIENTS} clients at a time"));
        self.phase = Phase::Sending { answer: Reply::encode(&reply).into_bytes(), sent: 0 };
        let _ = self.advance(0, |_| Ok(Reply::default()));
    }
}

/// An error unless the peer is the same user or root.
fn check_peer(stream: &UnixStream) -> Result<(), String> {
    let peer = wire::peer(stream).map_err(|error| format!("cannot read the user of the peer: {error}"))?;
    let own = wire::effective_uid();
    if peer.uid == own || peer.uid == 0 {
        return Ok(());
    }
    Err(format!("user {} is not allowed: expected user {own} or root", peer.uid))
}

/// The part of a request that has been received.
#[derive(Default)]
struct Incoming {
    bytes: Vec<u8>,
    file: Option<File>,
}

impl Incoming {
    /// Receives the available bytes. Returns the line, without its newline, when it is complete and nothing follows it.
    /// `None` if the rest has not arrived yet.
    fn receive(&mut self, stream: &UnixStream) -> Result<Option<Vec<u8>>, String> {
        let mut part = [0; MAX_REQUEST];
        // Each iteration receives at least one byte, or is the last one.
        while self.bytes.len() < MAX_REQUEST {
            let received = match wire::receive(stream, &mut part[self.bytes.len()..]) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(format!("request: {error}")),
            };
            let filled = self.bytes.len();
            for descriptor in received.descriptors {
                if self.file.replace(File::from(descriptor)).is_some() {
                    return Err("request: expected one descriptor at most, found more".into());
                }
            }
            if received.len == 0 {
                return Err(format!(
                    "request: expected a line, found the end of the stream after {filled} bytes"
                ));
            }
            self.bytes.extend_from_slice(&part[filled..filled + received.len]);
            if let Some(at) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let after = self.bytes.len() - at - 1;
                if after > 0 {
                    return Err(format!("request: expected one line, found {after} bytes after it"));
                }
                self.bytes.truncate(at);
                return Ok(Some(mem::take(&mut self.bytes)));
            }
        }
        Err(format!(
            "request: expected a line of at most {MAX_REQUEST} bytes, found no newline in the first {MAX_REQUEST}"
        ))
    }

    fn too_late(&self) -> String {
        let filled = self.bytes.len();
        format!("request: expected a line within 2 s, found {filled} bytes without a newline")
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::Shutdown,
    };

    use super::*;

    /// Result of receiving these bytes. Afterwards the client closes the connection, or sends nothing more.
    fn line_of(bytes: &[u8], closes: bool) -> Result<Vec<u8>, String> {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(bytes).unwrap();
        if closes {
            client.shutdown(Shutdown::Write).unwrap();
        }
        let mut incoming = Incoming::default();
        incoming.receive(&server)?.ok_or_else(|| incoming.too_late())
    }

    #[test]
    fn a_line_is_read_to_its_newline() {
        assert_eq!(line_of(b"fut-control 1 list\n", false), Ok(b"fut-control 1 list".to_vec()));
        assert_eq!(line_of(b"\n", false), Ok(Vec::new()));
        let longest = [&[b'x'; MAX_REQUEST - 1][..], b"\n"].concat();
        assert_eq!(line_of(&longest, false).map(|line| line.len()), Ok(MAX_REQUEST - 1));
    }

    #[test]
    fn bytes_that_are_not_one_line_are_an_error_within_the_time_limit() {
        for (bytes, closes, expected) in [
            (&b""[..], false, "within 2 s, found 0 bytes"),
            (b"fut-control 1 li", false, "within 2 s, found 16 bytes"),
            (b"", true, "found the end of the stream after 0 bytes"),
            (b"fut-control 1 li", true, "found the end of the stream after 16 bytes"),
            (b"fut-control 1 list\nmore", true, "4 bytes after it"),
            (b"\n\n", true, "1 bytes after it"),
            (&[b'x'; 2 * MAX_REQUEST], false, "at most 4096 bytes"),
        ] {
            let error = line_of(bytes, closes).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn random_bytes_are_not_a_request() {
        // Knuth's multiplier: the bytes are the same in every run.
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
    fn a_listener_whose_descriptor_was_reused_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("a.sock")).unwrap();
        let other = File::open(folder.path()).unwrap();
        let (fd, file) = (listener.as_raw_fd(), wire::identity(other.as_raw_fd()).unwrap());
        // The connection makes `serve` check the descriptor, which no longer refers to the socket.
        drop(UnixStream::connect(folder.path().join("a.sock")).unwrap());
        serve(listener, file, |_| panic!("no request was sent"));
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
        let (client, server) = UnixStream::pair().unwrap();
        wire::send(&client, b"line\n", Some(std::os::fd::AsFd::as_fd(&sent))).unwrap();
        let mut incoming = Incoming::default();
        assert_eq!(incoming.receive(&server), Ok(Some(b"line".to_vec())));
        incoming.file.expect("came with it").write_all(b"written").unwrap();
        let mut text = String::new();
        File::open(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "written");
    }
}
