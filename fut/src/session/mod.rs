//! A session: the process records to an arena until it ends.
//!
//! `sigmund record` names a directory in the environment, and [`init`] requests the arena there. Two types record
//! without a recorder: a `Recording` (feature `drain`) records and drains in one process; a `FlightRecorder` keeps the
//! last events in memory until a snapshot is taken. Threads attach themselves at their first probe.

mod attach;
mod before;
mod error;
#[cfg(feature = "drain")]
mod flight;
mod fork;
mod keymask;
mod last_thread;
mod late;
mod lwp_end;
mod modules;
mod own_arena;
#[cfg(feature = "drain")]
mod recording;
#[cfg(feature = "drain")]
mod snapshots;
mod starting;
mod stay_loaded;
mod unrecorded;

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
pub(crate) use stay_loaded::stay_loaded;

use self::starting::Starting;
use crate::{
    clock, control, environment,
    file_size_signal::without_file_size_signal,
    keys,
    probe::{
        declared, find_cpu_numbers, measure_costs, prepare_slots, slots_are_of_this_process, start_recording,
    },
    service_thread,
    shm::{Arena, ArenaError},
    span::places,
    trace::{
        Declaration, PacketHead, PacketKind, ProbeCosts, encode_clocks, encode_costs, encode_declarations,
        encode_modules, encode_places, encode_text,
    },
};

/// Environment variable: the directory in which `sigmund record` listens, and hands arenas to the processes that it
/// records. Without a listener, a process creates its arena in this directory itself, as a file. A drain of such a file
/// has to trust the process.
pub const ENV_ARENA_DIR: &str = "FUT_ARENA_DIR";
/// Environment variable: number of packets of 64 KiB for each LWP, a power of two; 64 by default. Ignored if a recorder
/// listens.
pub const ENV_PACKETS: &str = "FUT_PACKETS";

/// Environment variable: the mode of full buffers, `overwrite` or `discard` (default). Ignored if a recorder listens.
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

/// The result of [`init`].
#[derive(Debug)]
#[must_use]
pub enum Init {
    /// Events are recorded from now on.
    Recording,
    /// Events were already recorded.
    AlreadyRecording,
    /// This process is not to be recorded.
    NotAsked,
    /// This process is to be recorded, but cannot record. It continues unrecorded. The reason is printed once on
    /// stderr.
    Failed(StartError),
}

/// Starts recording if this process runs under `sigmund record`, and does nothing otherwise. A
/// [`Runtime`](crate::Runtime) does this itself. Repeated calls are cheap. If several threads call it at the same time,
/// one starts the session, and the others wait for it.
pub fn init() -> Init {
    if is_on() {
        return Init::AlreadyRecording;
    }
    let Some(dir) = environment::variable(ENV_ARENA_DIR) else { return Init::NotAsked };
    let _starting = Starting::take();
    if is_on() {
        return Init::AlreadyRecording;
    }
    leave_parent();
    match without_file_size_signal(|| start(Path::new(&dir))) {
        Ok(()) => Init::Recording,
        Err(error) => {
            unrecorded::report_once(&error);
            Init::Failed(error)
        }
    }
}

/// The costs of recording in this process, measured at its start; `None` if it has never recorded.
pub fn costs() -> Option<ProbeCosts> {
    current().map(|session| session.costs)
}

/// Whether this process has begun to record. Stays true after the recording has ended.
fn is_on() -> bool {
    current().is_some()
}

/// The session of this process. `None` in a child made by a raw `clone` or `_Fork`: such a child must not write to its
/// parent's arena.
fn current() -> Option<&'static Session> {
    // Acquire: pairs with the Release in `install`.
    let session = SESSION.load(Ordering::Acquire);
    // SAFETY: the pointer is null, or to a session that was leaked in `install`.
    unsafe { session.as_ref() }.filter(|_| slots_are_of_this_process())
}

fn start(dir: &Path) -> Result<(), StartError> {
    let pid = Pid(std::process::id());
    let session = Session::begin(pid, true, |describe| own_arena::arena_in(dir, pid, describe))?;
    let file = session.arena.path().to_path_buf();
    install(session).inspect_err(|_| {
        // The arena will stay empty. If removing it fails, a drain finds an arena without used rings.
        if file.extension().is_some_and(|extension| extension == "arena") {
            let _ = std::fs::remove_file(&file);
        }
    })
}

impl Session {
    /// Begins a session. `make` makes the arena; it must call the function that it gets before a recorder reads the
    /// arena. That function writes the description of the process to the arena.
    fn begin(
        pid: Pid,
        has_recorder: bool,
        make: impl FnOnce(&dyn Fn(&Arena)) -> Result<Arena, ArenaError>,
    ) -> Result<Session, StartError> {
        let costs = measure_costs();
        let mut declarations = declared()?;
        declarations.append(&mut declared_late());
        let arena = make(&|arena| push_metadata(arena, pid, &declarations, &costs))?;
        Ok(Session { arena, pid, costs, has_recorder })
    }
}

fn install(session: Session) -> Result<(), StartError> {
    stay_loaded().map_err(StartError::Unloadable)?;
    fork::register();
    find_cpu_numbers();
    prepare_slots().map_err(StartError::Slots)?;
    if !lwp_end::prepare() {
        return Err(ArenaError::Io(
            session.arena.path().to_path_buf(),
            io::Error::from_raw_os_error(libc::EAGAIN),
        )
        .into());
    }
    // If the main thread is about to end, that is not noticed.
    if last_thread::is_main() && lwp_end::watch() {
        last_thread::main_is_watched();
    }
    // Release: pairs with the Acquire in `current`.
    SESSION.store(Box::into_raw(Box::new(session)), Ordering::Release);
    let mask = keymask::from_environment().unwrap_or(keys::DEFAULT);
    start_recording(mask).map_err(|error| {
        SESSION.store(ptr::null_mut(), Ordering::Release);
        StartError::from(error)
    })?;
    if let Some(session) = current() {
        session.arena.publish(session.pid);
        control::start(session);
        last_thread::look_for_end_of_main();
    }
    Ok(())
}

/// Called in a child made by a raw `clone` or `_Fork`, before it starts its own session. Does the work of the `fork`
/// handler.
fn leave_parent() {
    // Acquire: pairs with the Release in `install`; the slots were marked before.
    if !SESSION.load(Ordering::Acquire).is_null() && !slots_are_of_this_process() {
        forget();
    }
}

/// Called in a forked child. Forgets the session of the parent. The state of the probes does not change.
fn forget() {
    unrecorded::is_child_of(SESSION.swap(ptr::null_mut(), Ordering::AcqRel));
    crate::probe::clear_current();
    starting::forget();
    service_thread::forget();
    last_thread::forget();
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
