//! The thread in the traced process that answers.

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
use crate::{environment, session::Session};

/// `0`: this process cannot be asked or changed from outside.
pub const ENV_CONTROL: &str = "FUT_CONTROL";

/// How long a request may take to arrive, and an answer to be taken.
const REQUEST_WITHIN: Duration = Duration::from_secs(2);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Clients that are listened to at one time: as many descriptors of the program's, and 4 KiB for each.
const MOST_CLIENTS: usize = 16;
/// Bytes of answers that may wait for clients to take them; then no more are computed.
const MOST_UNSENT: usize = 16 << 20;
/// A process that may have fewer descriptors does not listen.
const LEAST_DESCRIPTORS: u64 = 64;
/// When no descriptor or memory is left for a connection.
const NAP: Duration = Duration::from_millis(100);

/// Whether this process can be controlled from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It does not record yet.
    NotStarted,
    /// `FUT_CONTROL` is 0.
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

/// Begins to listen, if possible. Otherwise the program continues without.
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

/// In a child that `fork` made: the thread and the socket are the parent's. Should the child keep the socket open, it
/// would outlive the parent, and no thread would answer.
pub(crate) fn forget() {
    if let Some((fd, file)) = started().and_then(|started| started.listener) {
        wire::close_if(fd, file);
    }
    STARTED.store(ptr::null_mut(), Ordering::Release);
}

fn listen(session: &'static Session) -> io::Result<Started> {
    // Where a program may have few descriptors, they are all its own.
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    if most < LEAST_DESCRIPTORS {
        let why = format!("the process may have {most} descriptors only, and {LEAST_DESCRIPTORS} are needed");
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
    let made = wire::with_signals_blocked(|| thread::Builder::new().name("fut-control".into()).spawn(body));
    if let Err(error) = made {
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    Ok(Started { state: State::Listening(path), listener: Some((fd, file)) })
}

/// A request of a permitted client, and the file that came with it; or why it is not a request.
type Asked = Result<(Request, Option<File>), String>;

/// Answers whoever asks, until the process ends. Nobody is waited for: clients that are silent, slow or many cost the
/// others nothing but the time of the answers that are before theirs.
fn serve(listener: UnixListener, file: (u64, u64), answer: impl Fn(Asked) -> Result<Reply, String>) {
    // Another process that has it, too (a child by a raw `clone`), may be faster than we are.
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
        // A program may close all its descriptors, and give their numbers to files of its own.
        if wire::identity(listener.as_raw_fd()) != Some(file) {
            break;
        }
        for client in mem::take(&mut clients) {
            let unsent = clients.iter().map(Client::unsent).sum();
            clients.extend(client.go_on(unsent, &answer));
        }
        match listener.accept() {
            Ok((stream, _)) => {
                if clients.len() == MOST_CLIENTS {
                    // Whoever means it has sent the request by now, and was answered.
                    let oldest = clients.iter().position(Client::is_asking).unwrap_or(0);
                    clients.remove(oldest).into_iter().for_each(Client::turn_away);
                }
                let unsent = clients.iter().map(Client::unsent).sum();
                clients.extend(Client::new(stream).and_then(|client| client.go_on(unsent, &answer)));
            }
            Err(error) if is_passing(&error) => thread::sleep(NAP),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(_) => break,
        }
    }
    // They are not ours to close any more.
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

/// One connection: a request, then an answer.
struct Client {
    stream: UnixStream,
    /// Which file it is: see `serve`.
    file: (u64, u64),
    /// When it has had time enough.
    until: Instant,
    turn: Turn,
}

/// Whose turn it is.
enum Turn {
    /// The client's: it sends its request.
    Asks(Incoming),
    /// The client's, to take the rest of its answer.
    Takes { answer: Vec<u8>, sent: usize },
}

impl Client {
    /// `None` for a connection that is gone.
    fn new(stream: UnixStream) -> Option<Client> {
        let file = wire::identity(stream.as_raw_fd())?;
        Some(Client {
            stream,
            file,
            until: Instant::now() + REQUEST_WITHIN,
            turn: Turn::Asks(Incoming::default()),
        })
    }

    fn polled(&self) -> libc::pollfd {
        let events = if self.is_asking() { libc::POLLIN } else { libc::POLLOUT };
        polled(self.stream.as_raw_fd(), events)
    }

    fn is_asking(&self) -> bool {
        matches!(self.turn, Turn::Asks(_))
    }

    /// Bytes of its answer that are still here.
    fn unsent(&self) -> usize {
        if let Turn::Takes { answer, sent } = &self.turn { answer.len() - sent } else { 0 }
    }

    /// Does what can be done without waiting; `None` when the conversation is over. `unsent` bytes wait for other clients.
    fn go_on(mut self, unsent: usize, answer: impl Fn(Asked) -> Result<Reply, String>) -> Option<Client> {
        if wire::identity(self.stream.as_raw_fd()) != Some(self.file) {
            // Somebody has closed it for us, and its number may be another file's.
            mem::forget(self);
            return None;
        }
        if let Turn::Asks(incoming) = &mut self.turn {
            let asked = may_ask(&self.stream).and_then(|()| incoming.receive(&self.stream));
            let asked = match asked {
                Ok(None) if Instant::now() < self.until => return Some(self),
                Ok(None) => Err(incoming.too_late()),
                Ok(Some(line)) => Request::parse(&line).map(|request| (request, incoming.file.take())),
                Err(why) => Err(why),
            };
            let reply = if unsent > MOST_UNSENT {
                Err("too many answers wait for others to take them: ask again".into())
            } else {
                answer(asked)
            };
            self.turn = Turn::Takes { answer: Reply::encode(&reply).into_bytes(), sent: 0 };
            self.until = Instant::now() + ANSWER_WITHIN;
        }
        self.send()
    }

    /// Sends what there is room for. A client that does not receive its answer has gone; the error is dropped.
    fn send(mut self) -> Option<Client> {
        let Turn::Takes { answer, sent } = &mut self.turn else { return Some(self) };
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
        // Also where a child that was forked meanwhile has the connection, too.
        let _ = self.stream.shutdown(Shutdown::Both);
        None
    }

    /// Makes room for another client.
    fn turn_away(mut self) {
        let reply = Err(format!("request: expected a line at once, found more than {MOST_CLIENTS} clients"));
        self.turn = Turn::Takes { answer: Reply::encode(&reply).into_bytes(), sent: 0 };
        let _ = self.go_on(0, |_| Ok(Reply::default()));
    }
}

/// Only the same user and root.
fn may_ask(stream: &UnixStream) -> Result<(), String> {
    let peer = wire::peer(stream).map_err(|error| format!("nobody knows who asks: {error}"))?;
    let own = wire::effective_uid();
    if peer.uid == own || peer.uid == 0 {
        return Ok(());
    }
    Err(format!("user {} may not: only user {own} and root may", peer.uid))
}

/// What has arrived of a request.
#[derive(Default)]
struct Incoming {
    bytes: Vec<u8>,
    file: Option<File>,
}

impl Incoming {
    /// Receives what is there. The line, without its newline, when it is whole and nothing is after it; `None` if the rest
    /// has not arrived yet.
    fn receive(&mut self, stream: &UnixStream) -> Result<Option<Vec<u8>>, String> {
        let mut part = [0; MAX_REQUEST];
        // Each turn takes a byte at least, or is the last.
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
                return Err(format!("request: expected a line, found its end after {filled} bytes"));
            }
            self.bytes.extend_from_slice(&part[filled..filled + received.len]);
            if let Some(at) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let behind = self.bytes.len() - at - 1;
                if behind > 0 {
                    return Err(format!("request: expected one line, found {behind} bytes behind it"));
                }
                self.bytes.truncate(at);
                return Ok(Some(mem::take(&mut self.bytes)));
            }
        }
        Err(format!("request: expected a line of at most {MAX_REQUEST} bytes, found no newline in them"))
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

    /// What the server makes of these bytes, after which the client is silent or closes.
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
        // Whoever watches the number sees that it is not the socket any more, as soon as it is looked at.
        drop(UnixStream::connect(folder.path().join("a.sock")).unwrap());
        serve(listener, file, |_| panic!("nobody asks"));
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
