//! The server: a thread of the recorder that hands out arenas, and the recorder's handle of each process's arena.

use std::{
    borrow::Borrow,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::fs::{OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    fs::{FlockOperation, flock},
    io::Errno,
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
        SocketType, accept_with, bind, listen, sendmsg, socket_with,
    },
    process::{Pid as KernelPid, PidfdFlags, Resource, getrlimit, pidfd_open},
};
use sigmund_model::{Lwp, Pid};

use super::{GREETING, MAX_ANSWER, REFUSAL, SOCKET, lwps_in_namespace};
use crate::shm::{Arena, Geometry, Mode};

/// Connections that may wait to be accepted. The kernel uses its own limit (`net.core.somaxconn`) if that is lower.
const BACKLOG: i32 = 4096;
/// Arenas that one process may have at a time: its current one, and those from before each `exec`, until the `exec` is
/// noticed.
const MOST_OF_ONE_PROCESS: usize = 64;
/// Pause when no descriptor is left, or when a poll fails.
const NAP: Duration = Duration::from_millis(10);

/// Hands out sealed arenas to the processes that ask for one. It does so on its own thread.
///
/// A process can destroy the events in its own arena, and nothing else: the memory can neither shrink nor grow, and its
/// contents are not trusted. The thread never waits for a process: it answers each connection and closes it.
///
/// ```
/// use fut::{drain::{ArenaServer, Drain}, shm::{Geometry, Mode}};
///
/// let folder = tempfile::tempdir()?;
/// let server = ArenaServer::start(folder.path(), Geometry::default(), Mode::Discard, None)?;
/// // Processes that are started now with FUT_ARENA_DIR naming this folder, and their children, ask here.
/// for arena in server.take() {
///     let trace = folder.path().join(format!("user-{}.fut", arena.peer()));
///     let drain = Drain::new(arena, &trace)?;
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ArenaServer {
    socket: PathBuf,
    new: Receiver<ProcessArena>,
    unrecorded: Arc<Mutex<Unrecorded>>,
    /// An eventfd, written to make the thread end.
    stop: OwnedFd,
    thread: Option<thread::JoinHandle<()>>,
}

/// The processes that asked for an arena and got none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unrecorded {
    /// Number of these processes.
    pub processes: u64,
    /// The reason for the first of them.
    pub why: Option<String>,
}

/// The arena of another process, as held by its recorder.
#[derive(Debug)]
pub struct ProcessArena {
    arena: Arena,
    /// The same memory, through an open file description other than that of the process.
    memory: File,
    peer: Pid,
    /// A pidfd, readable when the process has ended; `None` if the process had already ended when it was opened.
    process: Option<OwnedFd>,
    /// If the process is in another PID namespace: its LWPs at the time of its request, with their numbers there and
    /// here.
    in_namespace: Option<Vec<(Lwp, Lwp)>>,
    /// By this, the thread that hands out arenas notices whether this one still exists.
    held: Arc<()>,
}

impl ArenaServer {
    /// Listens in `folder`, which has to exist and should not be writable for others. Only `owner` may connect, or the
    /// user of this process if there is no `owner`. Root always may.
    ///
    /// # Errors
    /// If the socket or the thread cannot be created.
    pub fn start(
        folder: &Path,
        geometry: Geometry,
        mode: Mode,
        owner: Option<u32>,
    ) -> io::Result<ArenaServer> {
        // Fail now rather than at each request.
        Arena::for_another(geometry, mode, Pid(0)).map_err(io::Error::other)?;
        let socket = folder.join(SOCKET);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new(&socket)?)?;
        let own = rustix::process::geteuid().as_raw();
        let prepared = fs::set_permissions(&socket, Permissions::from_mode(0o600))
            .and_then(|()| {
                owner.map_or(Ok(()), |owner| std::os::unix::fs::lchown(&socket, Some(owner), None))
            })
            .and_then(|()| Ok(listen(&listener, BACKLOG)?));
        let started = prepared.and_then(|()| {
            let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
            let (sender, new) = channel();
            let unrecorded = Arc::new(Mutex::new(Unrecorded::default()));
            let giver = ArenaListener {
                geometry,
                mode,
                users: [0, own, owner.unwrap_or(own)],
                given: Vec::new(),
                new: sender,
                unrecorded: Arc::clone(&unrecorded),
                spare: spare(),
            };
            let until = stop.try_clone()?;
            let body = move || giver.serve(&listener, &until);
            let thread = thread::Builder::new().name("fut-arenas".into()).spawn(body)?;
            Ok(ArenaServer { socket: socket.clone(), new, unrecorded, stop, thread: Some(thread) })
        });
        started.inspect_err(|_: &io::Error| _ = fs::remove_file(&socket))
    }

    /// Stops handing out arenas. Arenas that were handed out can still be taken.
    pub fn stop(&mut self) {
        // This write cannot block: the eventfd's count is far below its maximum.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
            let _ = fs::remove_file(&self.socket);
        }
    }

    /// The arenas that were handed out since the last call.
    pub fn take(&self) -> impl Iterator<Item = ProcessArena> + '_ {
        self.new.try_iter()
    }

    /// The processes that got no arena so far.
    pub fn unrecorded(&self) -> Unrecorded {
        self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ArenaServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The state of the thread.
struct ArenaListener {
    geometry: Geometry,
    mode: Mode,
    /// The users that may connect.
    users: [u32; 3],
    /// The processes that got an arena, and whether the recorder still holds it.
    given: Vec<(u32, Weak<()>)>,
    new: Sender<ProcessArena>,
    unrecorded: Arc<Mutex<Unrecorded>>,
    /// A spare descriptor. It is closed when none is left, so that a client can be answered with that error.
    spare: Option<File>,
}

impl ArenaListener {
    /// Answers requests until `stop` is readable.
    fn serve(mut self, listener: &OwnedFd, stop: &OwnedFd) {
        block_signals();
        loop {
            let mut wait = [PollFd::new(listener, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            if poll(&mut wait, None).is_err() {
                thread::sleep(NAP);
                continue;
            }
            if !wait[1].revents().is_empty() {
                return;
            }
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(connection) => self.answer(&connection),
                Err(Errno::MFILE | Errno::NFILE) => self.refuse_without_descriptors(listener),
                // The client has closed the connection already.
                Err(_) => {}
            }
        }
    }

    fn answer(&mut self, connection: &OwnedFd) {
        let made = peer(connection).and_then(|(pid, uid)| {
            self.check(pid, uid)?;
            self.make(pid)
        });
        match made {
            Ok((arena, theirs)) => {
                self.given.push((arena.peer.0, Arc::downgrade(&arena.held)));
                // The arena goes to the recorder first, so that the recorder holds every arena that a process has.
                let _ = self.new.send(arena);
                if let Err(error) = send(connection, GREETING, Some(&theirs)) {
                    self.count(&format!("it closed the connection before it got its arena: {error}"));
                }
            }
            Err(error) => self.refuse(connection, &error.to_string()),
        }
    }

    fn check(&mut self, pid: Pid, uid: u32) -> io::Result<()> {
        if !self.users.contains(&uid) {
            return Err(io::Error::other(format!("the recorder does not record processes of user {uid}")));
        }
        self.given.retain(|(_, held)| held.strong_count() > 0);
        let most = most_arenas();
        if self.given.len() >= most {
            return Err(io::Error::other(format!(
                "the recorder holds {most} arenas, the most that its limit of descriptors allows"
            )));
        }
        if self.given.iter().filter(|(given, _)| *given == pid.0).count() >= MOST_OF_ONE_PROCESS {
            return Err(io::Error::other(format!("process {pid} already has {MOST_OF_ONE_PROCESS} arenas")));
        }
        Ok(())
    }

    /// Makes an arena, and the descriptor of its memory for the process.
    fn make(&self, peer: Pid) -> io::Result<(ProcessArena, File)> {
        let (arena, memory) = Arena::for_another(self.geometry, self.mode, peer).map_err(io::Error::other)?;
        let again = format!("/proc/self/fd/{}", memory.as_raw_fd());
        let theirs = OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(again)?;
        flock(&theirs, FlockOperation::NonBlockingLockExclusive)?;
        let process = match KernelPid::from_raw(peer.0 as i32).map(|pid| pidfd_open(pid, PidfdFlags::empty()))
        {
            Some(Ok(process)) => Some(process),
            // The process has already ended, or has no number here. Then only the lock shows when it ends.
            Some(Err(Errno::SRCH | Errno::INVAL)) | None => None,
            Some(Err(error)) => return Err(error.into()),
        };
        // The process waits for the answer, so it still exists.
        let in_namespace = lwps_in_namespace(peer);
        Ok((ProcessArena { arena, memory, peer, process, in_namespace, held: Arc::new(()) }, theirs))
    }

    fn refuse(&self, connection: &OwnedFd, why: &str) {
        self.count(why);
        let answer = format!("{GREETING}{REFUSAL}{why}");
        // An error means that the process has closed the connection, and needs no answer.
        let _ = send(connection, &answer[..answer.floor_char_boundary(MAX_ANSWER)], None);
    }

    fn refuse_without_descriptors(&mut self, listener: &OwnedFd) {
        self.spare = None;
        match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(connection) => self.refuse(&connection, "the recorder has no descriptor left"),
            Err(_) => thread::sleep(NAP),
        }
        self.spare = spare();
    }

    fn count(&self, why: &str) {
        let mut unrecorded = self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner);
        unrecorded.processes += 1;
        unrecorded.why.get_or_insert_with(|| why.into());
    }
}

impl ProcessArena {
    /// The process that requested the arena, by its number in the PID namespace of this process; 0 if it has none
    /// there.
    pub fn peer(&self) -> Pid {
        self.peer
    }

    /// The process, by its number in its own PID namespace. Known once it has begun to record.
    pub fn pid(&self) -> Pid {
        self.arena.pid()
    }

    /// If the process is in a PID namespace other than that of this process: the LWPs that it had at its request, each
    /// with its number there and its number here.
    pub fn in_namespace(&self) -> Option<&[(Lwp, Lwp)]> {
        self.in_namespace.as_deref()
    }

    /// Whether there is something to drain: the process has written its description. A process that ends before has
    /// recorded nothing.
    pub fn has_begun(&self) -> bool {
        self.arena.is_published() || self.arena.rings().next().is_some()
    }

    /// Whether nothing more will be recorded: the process has ended, or has become another program (`exec`).
    pub fn has_ended(&self) -> bool {
        self.process_has_ended() || self.is_unmapped()
    }

    fn process_has_ended(&self) -> bool {
        let Some(process) = &self.process else { return false };
        matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&Timespec::default())), Ok(1))
    }

    /// Whether no process has the memory mapped or is about to receive it.
    fn is_unmapped(&self) -> bool {
        flock(&self.memory, FlockOperation::NonBlockingLockShared).is_ok()
    }
}

impl Borrow<Arena> for ProcessArena {
    fn borrow(&self) -> &Arena {
        &self.arena
    }
}

impl Drop for ProcessArena {
    fn drop(&mut self) {
        // Forked children have inherited the mapping. They do not record into it, but they keep its memory allocated.
        if self.process_has_ended() && !self.is_unmapped() {
            self.arena.discard_records();
        }
    }
}

/// The process at the other end of a connection: its number, which is 0 if it is not visible in the PID namespace of
/// this process, and its effective user.
fn peer(connection: &OwnedFd) -> io::Result<(Pid, u32)> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let place = (&raw mut found).cast();
    // SAFETY: `place` is valid for writing `len` bytes, the size that the option requires.
    let done = unsafe { libc::getsockopt(connection.as_raw_fd(), level, option, place, &raw mut len) };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok((Pid(u32::try_from(found.pid).unwrap_or(0)), found.uid))
}

/// Maximum number of arenas that a recorder holds at a time. Each needs three descriptors: memory, process and user
/// trace.
fn most_arenas() -> usize {
    const EACH: u64 = 3;
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    // The other descriptors are for recording the kernel, and for everything else.
    let others = (limit / 8).max(64);
    usize::try_from(limit.saturating_sub(others) / EACH).unwrap_or(usize::MAX)
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

fn send(connection: &OwnedFd, answer: &str, memory: Option<&File>) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let memory: Vec<_> = memory.into_iter().map(AsFd::as_fd).collect();
    if !memory.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&memory));
    }
    sendmsg(connection, &[IoSlice::new(answer.as_bytes())], &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// Blocks all signals for the calling thread. Other threads of the recorder handle them.
fn block_signals() {
    // SAFETY: a signal set is plain bits, which are filled in next.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `all` is ours.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: `all` is filled in; the old set is not requested.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut()) };
}
