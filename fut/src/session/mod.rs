//! A session: this process records, into an arena, until it ends.
//!
//! `sigmund record` names a directory in the environment, and [`init`] makes the arena there. Without a recorder,
//! a `Recording` (feature `drain`) does both in one process. Threads attach themselves at their first probe.

mod attach;
mod before;
mod fork;
mod keymask;
mod late;
mod modules;
#[cfg(feature = "drain")]
mod recording;

use std::{
    io,
    path::{Path, PathBuf},
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use sigmund_model::{Pid, Ticks};

#[cfg(feature = "runtime")]
pub(crate) use attach::attach_now;
pub(crate) use attach::{Attached, attach};
pub use before::{count_before_setup, dropped_before_setup};
pub use keymask::{ENV_KEYMASK, ENV_KEYMASK_FILE, KeymaskError, keymask_is_given, parse_keymask};
pub use late::{DeclareError, declare, note_modules};
#[cfg(feature = "drain")]
pub use recording::{Recording, RecordingSummary};

use crate::{
    clock, keys,
    probe::declared,
    shm::{Arena, ArenaError, Geometry},
    span::places,
    trace::{
        PacketHead, PacketKind, encode_clocks, encode_declarations, encode_modules, encode_places,
        encode_text,
    },
};

/// The directory in which `sigmund record` wants the arenas of the processes it records.
pub const ENV_ARENA_DIR: &str = "FUT_ARENA_DIR";
/// Packets of 64 KiB for each LWP, if not 64; a power of two.
pub const ENV_PACKETS: &str = "FUT_PACKETS";

/// The session of this process. A session is never freed: probes of threads that are exiting may still use it.
static SESSION: AtomicPtr<Session> = AtomicPtr::new(ptr::null_mut());

#[derive(Debug)]
pub(crate) struct Session {
    arena: Arena,
    pid: Pid,
}

/// What became of [`init`].
#[derive(Debug)]
#[must_use]
pub enum Init {
    /// Events are recorded from now on.
    Recording,
    /// They were already.
    AlreadyRecording,
    /// Nobody records this process.
    NotAsked,
    /// Somebody wants to, and it is not possible.
    Failed(ArenaError),
}

/// Starts recording if this process runs under `sigmund record`; does nothing otherwise. A
/// [`Runtime`](crate::Runtime) does this itself. Costs nothing when called again.
pub fn init() -> Init {
    if is_on() {
        return Init::AlreadyRecording;
    }
    let Some(dir) = std::env::var_os(ENV_ARENA_DIR) else { return Init::NotAsked };
    match start(Path::new(&dir)) {
        Ok(()) => Init::Recording,
        Err(error) => Init::Failed(error),
    }
}

/// Whether this process has begun to record. It still says so when the recording has ended.
pub fn is_recording() -> bool {
    current().is_some()
}

pub(crate) use is_recording as is_on;

fn current() -> Option<&'static Session> {
    // Acquire: pairs with the Release in `install`.
    let session = SESSION.load(Ordering::Acquire);
    // SAFETY: null, or a session that was leaked in `install`.
    unsafe { session.as_ref() }
}

fn start(dir: &Path) -> Result<(), ArenaError> {
    let pid = Pid(std::process::id());
    let path = dir.join(format!("{pid}.arena"));
    let packets = std::env::var(ENV_PACKETS).ok().and_then(|p| p.parse().ok());
    let geometry =
        Geometry { packets: packets.unwrap_or(Geometry::default().packets), ..Geometry::default() };
    install(Session { arena: arena(&path, geometry, pid)?, pid });
    Ok(())
}

/// The arena file appears under its name when it is whole, so that a recorder never sees half a one.
fn arena(path: &PathBuf, geometry: Geometry, pid: Pid) -> Result<Arena, ArenaError> {
    let unfinished = path.with_extension("new");
    let arena = Arena::create(&unfinished, geometry, pid)?;
    push_metadata(&arena, pid);
    std::fs::rename(&unfinished, path).map_err(|error| ArenaError::Io(path.clone(), error))?;
    Ok(arena)
}

fn install(session: Session) {
    fork::register();
    // Release: pairs with the Acquire in `current`.
    SESSION.store(Box::into_raw(Box::new(session)), Ordering::Release);
    keys::switch(keymask::from_environment().unwrap_or(keys::ALL));
}

/// Forgets the session of the parent, in a child that `fork` made.
fn forget() {
    keys::switch(0);
    SESSION.store(ptr::null_mut(), Ordering::Release);
    crate::probe::clear_current();
}

fn push_metadata(arena: &Arena, pid: Pid) {
    let comm = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let mut declarations = declared();
    declarations.append(&mut late::declared_before());
    let packets = [
        (PacketKind::PROCESS, encode_text(comm.trim_end())),
        (PacketKind::DECLARATIONS, encode_declarations(declarations.iter())),
        (PacketKind::PLACES, encode_places(&places(pid))),
        (PacketKind::MODULES, encode_modules(&modules::gather(pid))),
        (PacketKind::CLOCKS, encode_clocks(&clock::snapshots())),
    ];
    for (kind, payload) in packets {
        let head = PacketHead::about(kind, pid, Ticks(clock::ticks()));
        arena.push_metadata(&head.encode(&payload));
    }
}

/// For callers that want an `io::Error`.
impl From<ArenaError> for io::Error {
    fn from(error: ArenaError) -> io::Error {
        io::Error::other(error.to_string())
    }
}
