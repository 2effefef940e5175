//! The side that asks: finds the socket of a process, and reads its answer.

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

/// How long a process may take to answer: one that is stopped never does.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// A snapshot is written before it is answered.
const SNAPSHOT_WITHIN: Duration = Duration::from_secs(300);

/// Longer than any answer: threads are 100 000 at most.
const MAX_ANSWER: usize = 32 << 20;
/// Bytes that are received at once.
const PART: usize = 64 << 10;

/// A process that can be asked.
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

/// Why a process could not be asked, or has refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum AskError {
    /// There is no such process.
    NoSuchProcess(u32),
    /// There is no socket of it.
    NotRecording(u32),
    /// It belongs to another user.
    NotAllowed {
        /// The process.
        pid: u32,
        /// Whose it is, or was when it began to record.
        uid: u32,
    },
    /// It refused, with a reason.
    Refused {
        /// The process.
        pid: u32,
        /// The reason.
        why: String,
    },
    /// It did not answer in time.
    Silent(u32),
    /// Whoever asked does not want to wait any longer.
    Cancelled(u32),
    /// It does not speak as it should.
    Protocol {
        /// The process.
        pid: u32,
        /// What was expected and found.
        found: String,
    },
    /// The socket failed.
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
                "process {pid}: it belongs to user {uid}, or did when it began to record: only they and root may ask it"
            ),
            AskError::Refused { pid, why } => write!(f, "process {pid}: {why}"),
            AskError::Silent(pid) => write!(f, "process {pid}: it does not answer: is it stopped?"),
            AskError::Cancelled(pid) => write!(f, "process {pid}: cancelled before it answered"),
            AskError::Protocol { pid, found } => write!(f, "process {pid}: {found}"),
            AskError::Io(pid, error) => write!(f, "process {pid}: {error}"),
        }
    }
}

impl std::error::Error for AskError {}

impl Process {
    /// Finds a process that records, and connects to it.
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
        // A process that was root's when it began to record has its socket there.
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
                    // In the folder of another user, root removes nothing.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused && uid == own => {
                        socket_folder::remove_if_nobody_listens(&path);
                    }
                    // Of root's folder nothing else can say whether the process has a socket there.
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

    /// Asks, and waits for the answer: 10 s in all, however it arrives.
    ///
    /// # Errors
    /// If the process refuses (the error has the reason, and nothing has changed) or does not answer.
    pub fn ask(self, request: &Request) -> Result<Reply, AskError> {
        self.ask_within(request, ANSWER_WITHIN, &|| false)
    }

    /// As [`ask`](Process::ask), with another limit for the conversation as a whole. `is_cancelled` is asked every 20 ms
    /// and after every signal; when it says so, the wait ends. What was asked may have been done by then, or be done later.
    ///
    /// # Errors
    /// As `ask`, and when it was cancelled.
    pub fn ask_within(
        self,
        request: &Request,
        within: Duration,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Reply, AskError> {
        self.converse(request, None, within, is_cancelled)
    }

    /// Has a flight recorder write what its rings hold to `file`, which is empty: 300 s in all.
    ///
    /// # Errors
    /// When the process is no flight recorder, cannot write the file, or does not answer.
    pub fn snapshot(self, file: &File) -> Result<Reply, AskError> {
        self.snapshot_within(file, SNAPSHOT_WITHIN, &|| false)
    }

    /// As [`snapshot`](Process::snapshot), with another limit, and a way to cancel it: see
    /// [`ask_within`](Process::ask_within). The process may continue writing to `file` afterwards.
    ///
    /// # Errors
    /// As `snapshot`, and when it was cancelled.
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
            let why = "a pattern has no control characters, and is shorter than that".into();
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
            // Whoever always has more to send must not keep us from looking at the clock.
            limit.check()?;
        }
        String::from_utf8(answer).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let found = format!("expected an answer in UTF-8, found something else at byte {at}");
            io::Error::new(ErrorKind::InvalidData, found)
        })
    }
}

/// How long a conversation may last.
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

    /// Waits, if the error says that there is something to wait for.
    fn wait_after(&self, error: io::Error, stream: &UnixStream, to_send: bool) -> io::Result<()> {
        match error.kind() {
            ErrorKind::WouldBlock => wire::wait(stream, to_send, self.deadline, self.is_cancelled),
            ErrorKind::Interrupted => self.check(),
            _ => Err(error),
        }
    }
}

/// Whether the process itself listens there: a folder in `/tmp` could be anybody's.
fn is_of(stream: &UnixStream, pid: u32, uids: &[u32]) -> bool {
    wire::peer(stream).is_ok_and(|peer| peer.pid == pid && (peer.uid == 0 || uids.contains(&peer.uid)))
}

/// The users that a process acts for: effective, real, saved.
fn uids(pid: u32) -> Vec<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    let numbers: Vec<u32> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    [1, 0, 2].into_iter().filter_map(|column| numbers.get(column).copied()).collect()
}
