//! The client: finds the socket of a process, sends a request and reads the answer.

use std::{
    fmt,
    fs::File,
    io::{self, ErrorKind},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use super::{reply::Reply, request::Request, socket_folder, wire};

/// Time limit for an answer: a stopped process never answers.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Time limit for a snapshot: the process writes it before it answers.
const SNAPSHOT_WITHIN: Duration = Duration::from_secs(300);

/// Limit of an answer, in bytes. Every answer is shorter, since at most 100 000 threads are listed.
const MAX_ANSWER: usize = 32 << 20;
/// Bytes received by one call.
const PART: usize = 64 << 10;

/// A connection to a process that records and accepts requests.
///
/// ```no_run
/// use fut::control::{Process, Request};
///
/// let status = Process::find(1234)?.ask(&Request::Status)?;
/// println!("{:?}", status.fact("mode"));
/// # Ok::<(), fut::control::AskError>(())
/// ```
#[derive(Debug)]
pub struct Process {
    pid: u32,
    stream: UnixStream,
}

/// Why a request failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum AskError {
    /// There is no such process.
    NoSuchProcess(u32),
    /// The process has no control socket.
    NotRecording(u32),
    /// The process belongs to another user.
    NotAllowed {
        /// The process.
        pid: u32,
        /// Its effective user, or its effective user at the start of its recording.
        uid: u32,
    },
    /// The process refused the request.
    Refused {
        /// The process.
        pid: u32,
        /// The reason.
        why: String,
    },
    /// The process did not answer in time.
    Silent(u32),
    /// The caller cancelled the request.
    Cancelled(u32),
    /// The answer of the process violates the protocol.
    Protocol {
        /// The process.
        pid: u32,
        /// What was expected and found.
        found: String,
    },
    /// An I/O error of the socket.
    Io(u32, io::Error),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::NoSuchProcess(pid) => write!(f, "process {pid}: there is no such process"),
            AskError::NotRecording(pid) => write!(
                f,
                "process {pid}: it does not record: start it under `sigmund record`, or let it start a recording of \
                 its own (and without FUT_CONTROL=0)"
            ),
            AskError::NotAllowed { pid, uid } => write!(
                f,
                "process {pid}: it belongs to user {uid}, or did when it began to record: only that user and root \
                 have access"
            ),
            AskError::Refused { pid, why } => write!(f, "process {pid}: {why}"),
            AskError::Silent(pid) => write!(f, "process {pid}: no answer in time: is it stopped?"),
            AskError::Cancelled(pid) => write!(f, "process {pid}: cancelled before the answer"),
            AskError::Protocol { pid, found } => write!(f, "process {pid}: {found}"),
            AskError::Io(pid, error) => write!(f, "process {pid}: {error}"),
        }
    }
}

impl std::error::Error for AskError {}

impl Process {
    /// Finds the control socket of a process, and connects to it.
    ///
    /// # Errors
    /// If there is no such process, it does not record, or it belongs to another user.
    pub fn find(pid: u32) -> Result<Process, AskError> {
        let own = wire::effective_uid();
        if !socket_folder::is_there(pid) {
            socket_folder::folders_of(own, pid).iter().for_each(|folder| socket_folder::remove_left(folder));
            return Err(AskError::NoSuchProcess(pid));
        }
        let theirs = uids(pid);
        let mut denied = None;
        // A process that ran as root when it began to record has its socket in root's folder.
        let mut looked_at = Vec::new();
        for uid in theirs.iter().copied().chain([own, 0]) {
            if looked_at.contains(&uid) {
                continue;
            }
            looked_at.push(uid);
            for folder in socket_folder::folders_of(uid, pid) {
                let path = socket_folder::socket_in(&folder, pid);
                match wire::connect(&path) {
                    Ok(stream) if is_of(&stream, pid, &theirs) => return Ok(Process { pid, stream }),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(AskError::Silent(pid)),
                    // Root does not remove anything from the folder of another user.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused && uid == own => {
                        socket_folder::remove_if_nobody_listens(&path);
                    }
                    // In root's folder, there is no other way to find out whether the process has a socket.
                    Err(error) if error.kind() == ErrorKind::PermissionDenied && theirs.contains(&uid) => {
                        denied = Some(AskError::NotAllowed { pid, uid });
                    }
                    _ => {}
                }
            }
        }
        let foreign = theirs.first().copied().filter(|uid| own != 0 && *uid != own);
        let foreign = foreign.map(|uid| AskError::NotAllowed { pid, uid });
        Err(denied.or(foreign).unwrap_or(AskError::NotRecording(pid)))
    }

    /// Sends the request and waits for the answer, for at most 10 s in all.
    ///
    /// # Errors
    /// If the process refuses (the error contains the reason, and nothing has changed) or does not answer in time.
    pub fn ask(self, request: &Request) -> Result<Reply, AskError> {
        self.ask_within(request, ANSWER_WITHIN, &|| false)
    }

    /// Like [`ask`](Process::ask), with another time limit for request and answer together. `is_cancelled` is called
    /// every 20 ms and after every signal; the wait ends when it returns true. The process may have executed the
    /// request by then, or may still execute it later.
    ///
    /// # Errors
    /// As `ask`; also [`AskError::Cancelled`].
    pub fn ask_within(
        self,
        request: &Request,
        within: Duration,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Reply, AskError> {
        self.converse(request, None, within, is_cancelled)
    }

    /// Makes a flight recorder write the contents of its rings to `file`, which must be empty. The time limit is 300 s.
    ///
    /// # Errors
    /// If the process is not a flight recorder, cannot write the file, or does not answer in time.
    pub fn snapshot(self, file: &File) -> Result<Reply, AskError> {
        self.snapshot_within(file, SNAPSHOT_WITHIN, &|| false)
    }

    /// Like [`snapshot`](Process::snapshot), with another time limit, and cancellable as
    /// [`ask_within`](Process::ask_within) is. The process may continue to write to `file` afterwards.
    ///
    /// # Errors
    /// As `snapshot`; also [`AskError::Cancelled`].
    pub fn snapshot_within(
        self,
        file: &File,
        within: Duration,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Reply, AskError> {
        self.converse(&Request::Snapshot, Some(file.as_fd()), within, is_cancelled)
    }

    fn converse(
        self,
        request: &Request,
        file: Option<BorrowedFd<'_>>,
        within: Duration,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Reply, AskError> {
        let pid = self.pid;
        let line = request.line();
        if line.trim_end_matches('\n').contains(char::is_control) || line.len() > super::request::MAX_REQUEST
        {
            let why = "expected a shorter pattern without control characters".into();
            return Err(AskError::Refused { pid, why });
        }
        let now = Instant::now();
        let limit =
            Limit { deadline: now.checked_add(within).unwrap_or(now + SNAPSHOT_WITHIN), is_cancelled };
        let answer = self.send(line.as_bytes(), file, &limit).and_then(|()| self.read_answer(&limit));
        let answer = answer.map_err(|error| match error.kind() {
            ErrorKind::TimedOut => AskError::Silent(pid),
            ErrorKind::Interrupted => AskError::Cancelled(pid),
            ErrorKind::InvalidData => AskError::Protocol { pid, found: error.to_string() },
            _ => AskError::Io(pid, error),
        })?;
        match Reply::decode(&answer) {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(why)) => Err(AskError::Refused { pid, why }),
            Err(found) => Err(AskError::Protocol { pid, found }),
        }
    }

    /// Sends all bytes, and the descriptor with the first of them.
    fn send(&self, mut bytes: &[u8], mut fd: Option<BorrowedFd<'_>>, limit: &Limit<'_>) -> io::Result<()> {
        while !bytes.is_empty() {
            match wire::send(&self.stream, bytes, fd) {
                Ok(sent) => (bytes, fd) = (&bytes[sent..], None),
                Err(error) => limit.wait_after(error, &self.stream, true)?,
            }
        }
        Ok(())
    }

    fn read_answer(&self, limit: &Limit<'_>) -> io::Result<String> {
        let (mut answer, mut part) = (Vec::new(), vec![0; PART]);
        loop {
            match wire::receive(&self.stream, &mut part) {
                Ok(received) if received.len == 0 => break,
                Ok(received) => answer.extend_from_slice(&part[..received.len]),
                Err(error) => limit.wait_after(error, &self.stream, false)?,
            }
            if answer.len() > MAX_ANSWER {
                let found = format!("expected an answer of at most {MAX_ANSWER} bytes, found a longer one");
                return Err(io::Error::new(ErrorKind::InvalidData, found));
            }
            // The time limit is checked here, too: a process might send without end.
            limit.check()?;
        }
        String::from_utf8(answer).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let found = format!("expected an answer in UTF-8, found something else at byte {at}");
            io::Error::new(ErrorKind::InvalidData, found)
        })
    }
}

/// The time limit of a request and its answer.
struct Limit<'a> {
    deadline: Instant,
    is_cancelled: &'a dyn Fn() -> bool,
}

impl Limit<'_> {
    fn check(&self) -> io::Result<()> {
        if (self.is_cancelled)() {
            return Err(ErrorKind::Interrupted.into());
        }
        if Instant::now() >= self.deadline { Err(ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// Waits if the error is `WouldBlock`; returns other errors.
    fn wait_after(&self, error: io::Error, stream: &UnixStream, to_send: bool) -> io::Result<()> {
        match error.kind() {
            ErrorKind::WouldBlock => wire::wait(stream, to_send, self.deadline, self.is_cancelled),
            ErrorKind::Interrupted => self.check(),
            _ => Err(error),
        }
    }
}

/// Whether the listener is the process itself. Another user might listen, because any user can make a folder in `/tmp`.
fn is_of(stream: &UnixStream, pid: u32, uids: &[u32]) -> bool {
    wire::peer(stream).is_ok_and(|peer| peer.pid == pid && (peer.uid == 0 || uids.contains(&peer.uid)))
}

/// The user ids of a process: effective, real, saved.
fn uids(pid: u32) -> Vec<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    let numbers: Vec<u32> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    [1, 0, 2].into_iter().filter_map(|column| numbers.get(column).copied()).collect()
}
