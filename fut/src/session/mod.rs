//! A session: this process records, into an arena, until it ends.
//!
//! `sigmund record` names a directory in the environment, and [`init`] makes the arena there. Without a recorder,
//! a `Recording` (feature `drain`) does both in one process, and a `FlightRecorder` keeps the last events in memory until
//! somebody wants them. Threads attach themselves at their first probe.

mod attach;
mod before;
mod error;
#[cfg(feature = "drain")]
mod flight;
mod fork;
mod keymask;
mod late;
mod lwp_end;
mod modules;
#[cfg(feature = "drain")]
mod recording;
#[cfg(feature = "drain")]
mod snapshots;

use std::{
    io,
    path::Path,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use sigmund_model::{Pid, Ticks};

#[cfg(feature = "runtime")]
pub(crate) use attach::attach_now;
pub(crate) use attach::{Attached, attach};
pub use before::{count_before_setup, dropped_before_setup};
pub use error::StartError;
#[cfg(feature = "drain")]
pub use flight::FlightRecorder;
pub use keymask::{ENV_KEYMASK, ENV_KEYMASK_FILE, KeymaskError, keymask_is_given, parse_keymask};
pub(crate) use late::declared_late;
pub use late::{DeclareError, declare, note_modules};
#[cfg(feature = "drain")]
pub use recording::{Recording, RecordingSummary};

use crate::{
    clock, control, keys,
    probe::{declared, find_cpu_numbers, measure_costs, start_recording},
    shm::{Arena, ArenaError, Geometry, Mode},
    span::places,
    trace::{
        Declaration, PacketHead, PacketKind, ProbeCosts, encode_clocks, encode_costs, encode_declarations,
        encode_modules, encode_places, encode_text,
    },
};

/// The directory in which `sigmund record` wants the arenas of the processes it records.
pub const ENV_ARENA_DIR: &str = "FUT_ARENA_DIR";
/// Packets of 64 KiB for each LWP, if not 64; a power of two.
pub const ENV_PACKETS: &str = "FUT_PACKETS";

/// What a full buffer does: `discard`, if it does not say `overwrite`.
pub const ENV_MODE: &str = "FUT_MODE";

/// The session of this process. A session is never freed: probes of threads that are exiting may still use it.
static SESSION: AtomicPtr<Session> = AtomicPtr::new(ptr::null_mut());

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) arena: Arena,
    pub(crate) pid: Pid,
    costs: ProbeCosts,
    /// Whether `sigmund record` has the arena mapped.
    pub(crate) has_recorder: bool,
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
    Failed(StartError),
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

/// What recording costs this process, measured when it began to; `None` when it has never recorded.
pub fn costs() -> Option<ProbeCosts> {
    current().map(|session| session.costs)
}

/// Whether this process has begun to record. It still says so when the recording has ended.
fn is_on() -> bool {
    current().is_some()
}

fn current() -> Option<&'static Session> {
    // Acquire: pairs with the Release in `install`.
    let session = SESSION.load(Ordering::Acquire);
    // SAFETY: null, or a session that was leaked in `install`.
    unsafe { session.as_ref() }
}

fn start(dir: &Path) -> Result<(), StartError> {
    let pid = Pid(std::process::id());
    let path = dir.join(format!("{pid}.arena"));
    let mode = mode(&path)?;
    let packets = std::env::var(ENV_PACKETS).ok().and_then(|p| p.parse().ok());
    let geometry =
        Geometry { packets: packets.unwrap_or(Geometry::default().packets), ..Geometry::default() };
    install(Session::begin(&path, geometry, mode, pid, true)?).inspect_err(|_| {
        // Nothing will ever be in it. Should it stay, the recorder finds an arena without a ring.
        let _ = std::fs::remove_file(&path);
    })
}

fn mode(arena: &Path) -> Result<Mode, ArenaError> {
    match std::env::var(ENV_MODE).as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("discard") => Ok(Mode::Discard),
        Ok("overwrite") => Ok(Mode::Overwrite),
        other => Err(ArenaError::Foreign {
            file: arena.to_path_buf(),
            expected: format!("{ENV_MODE} to be discard or overwrite"),
            found: format!("{other:?}"),
        }),
    }
}

impl Session {
    /// Makes the arena, and measures what is said in it.
    fn begin(
        path: &Path,
        geometry: Geometry,
        mode: Mode,
        pid: Pid,
        has_recorder: bool,
    ) -> Result<Session, StartError> {
        let costs = measure_costs();
        Ok(Session { arena: arena(path, geometry, mode, pid, &costs)?, pid, costs, has_recorder })
    }
}

/// The arena file appears under its name when it is whole, so that a recorder never sees half a one. A process that became
/// another program by `exec` has had that name before; if the recorder has not seen the first one yet, it keeps it, and
/// this one gets a number.
fn arena(
    path: &Path,
    geometry: Geometry,
    mode: Mode,
    pid: Pid,
    costs: &ProbeCosts,
) -> Result<Arena, StartError> {
    let mut declarations = declared()?;
    declarations.append(&mut declared_late());
    let io_error = |error| ArenaError::Io(path.to_path_buf(), error);
    let unfinished = path.with_extension("new");
    // Of a program that did not live to finish it.
    let _ = std::fs::remove_file(&unfinished);
    let arena = Arena::create(&unfinished, geometry, mode, pid)?;
    push_metadata(&arena, pid, &declarations, costs);
    let mut named = Err(io::ErrorKind::AlreadyExists.into());
    for number in 1..100 {
        let path =
            if number == 1 { path.to_path_buf() } else { path.with_extension(format!("{number}.arena")) };
        // Unlike renaming, it fails if the name is taken.
        named = std::fs::hard_link(&unfinished, &path);
        if !matches!(&named, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
    }
    std::fs::remove_file(&unfinished).map_err(io_error)?;
    named.map_err(io_error)?;
    Ok(arena)
}

fn install(session: Session) -> Result<(), StartError> {
    fork::register();
    find_cpu_numbers();
    if !lwp_end::prepare() {
        return Err(ArenaError::Io(
            session.arena.path().to_path_buf(),
            io::Error::from_raw_os_error(libc::EAGAIN),
        )
        .into());
    }
    // Release: pairs with the Acquire in `current`.
    SESSION.store(Box::into_raw(Box::new(session)), Ordering::Release);
    let mask = keymask::from_environment().unwrap_or(keys::DEFAULT);
    start_recording(mask).map_err(|error| {
        SESSION.store(ptr::null_mut(), Ordering::Release);
        StartError::from(error)
    })?;
    if let Some(session) = current() {
        control::start(session);
    }
    Ok(())
}

/// Forgets the session of the parent, in a child that `fork` made. Its probes are as they were in the parent.
fn forget() {
    SESSION.store(ptr::null_mut(), Ordering::Release);
    crate::probe::clear_current();
    control::forget();
    #[cfg(feature = "drain")]
    snapshots::forget();
}

fn push_metadata(arena: &Arena, pid: Pid, declarations: &[Declaration], costs: &ProbeCosts) {
    let comm = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let packets = [
        (PacketKind::PROCESS, encode_text(comm.trim_end())),
        (PacketKind::DECLARATIONS, encode_declarations(declarations.iter())),
        (PacketKind::PLACES, encode_places(&places(pid))),
        (PacketKind::MODULES, encode_modules(&modules::gather(pid))),
        (PacketKind::COSTS, encode_costs(costs)),
        (PacketKind::CLOCKS, encode_clocks(&clock::snapshots())),
    ];
    for (kind, payload) in packets {
        let head = PacketHead::about(kind, pid, Ticks(clock::ticks()));
        arena.push_metadata(&head.encode(&payload));
    }
}
