//! Beginning and ending a recording. Under `sigmund record` it begins when the library is loaded, otherwise with
//! `fut_setup`.

use std::{
    ffi::{OsString, c_char, c_int, c_uint, c_void},
    io, mem,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    process,
    sync::{
        Mutex, MutexGuard, TryLockError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use fut::{
    Init, Recording, RecordingSummary, SwitchError, dropped_before_setup, environment, keys, shm::Geometry,
};

use crate::{
    declare::bytes,
    own_events::{SETUP, declare_own_events},
    probes::fire,
    trace_file::{MovedAside, absolute, is_same_file, move_to},
};

/// `FUT_ENABLE`, `FUT_DISABLE` and `FUT_SETMASK` of fut.h.
const ENABLE: c_int = 0xCE03;
const DISABLE: c_int = 0xCE04;
const SETMASK: c_int = 0xCE05;

/// Bytes of a packet.
const PACKET_BYTES: u64 = fut::shm::PACKET_LEN as u64;

/// The state set by `fut_setup`, `fut_set_filename` and `fut_endup`.
struct Begun {
    /// The name given by the program.
    path: Option<PathBuf>,
    own: Option<OwnRecording>,
    /// In a forked child: the trace of its parent.
    parents: Option<PathBuf>,
}

/// The only recording of this process, unless `sigmund record` records it.
struct OwnRecording {
    /// The process that began it. A forked child has a copy of this value, but not the thread of the drain.
    pid: u32,
    /// `None` after its end.
    recording: Option<Recording>,
    /// The file, independent of the current folder.
    trace: PathBuf,
}

static BEGUN: Mutex<Begun> = Mutex::new(Begun { path: None, own: None, parents: None });
/// The process that locked `BEGUN` last, or loaded this library.
static LOCKED_BY: AtomicU32 = AtomicU32::new(0);

/// Locks `BEGUN`. A forked child may inherit the lock from a thread that does not exist in the child. Then this returns
/// `None` after a second. It waits for so long because a thread of the child may have locked `BEGUN`, and not yet stored
/// the child in `LOCKED_BY`.
fn begun() -> Option<MutexGuard<'static, Begun>> {
    let here = process::id();
    for _ in 0..1000 {
        let locked = if LOCKED_BY.load(Ordering::Relaxed) == here {
            // If it is locked, then by a thread of this process.
            BEGUN.lock().map_err(TryLockError::Poisoned)
        } else {
            BEGUN.try_lock()
        };
        let mut begun = match locked {
            Err(TryLockError::WouldBlock) => {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            Ok(begun) => begun,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        LOCKED_BY.store(here, Ordering::Relaxed);
        begun.leave_parent(here);
        return Some(begun);
    }
    None
}

impl Begun {
    /// In a forked child: forgets the recording of the parent, which continues. Neither its file nor its thread belongs
    /// to this process.
    fn leave_parent(&mut self, here: u32) {
        if let Some(parents) = self.own.take_if(|own| own.pid != here) {
            mem::forget(parents.recording);
            self.parents = Some(parents.trace);
        }
    }
}

/// Number of records lost in the recording that has ended.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Runs when the library is loaded, before `main`. It runs so early that the constructors of a program that is linked
/// with the static library are traced, too.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    LOCKED_BY.store(process::id(), Ordering::Relaxed);
    if let Err(error) = declare_own_events() {
        fut::__warn(format_args!("libfut's own events are not declared: {error}"));
    }
    match fut::init() {
        Init::NotAsked => fut::__count_before_setup(),
        // `init` has reported the reason.
        Init::Failed(_) | Init::Recording | Init::AlreadyRecording => {}
    }
}

/// Starts recording to the file named by [`fut_set_filename`].
///
/// `longs` is the size of each LWP's buffer in words of 8 bytes (0: 4 MiB). `keymask` contains the keys that are on.
/// `thread` is ignored: LWPs are distinguished automatically. Under `sigmund record` the process is already recorded,
/// and this only sets the keys. Returns 0, or a negative error number.
#[unsafe(no_mangle)]
pub extern "C" fn fut_setup(longs: u64, keymask: c_uint, thread: c_uint) -> i64 {
    let _ = thread;
    let dropped = dropped_before_setup();
    if environment::variable(fut::ENV_ARENA_DIR).is_some() {
        // A child made by a raw `clone` does not record yet. `init` reports an error itself.
        let _ = fut::init();
    } else if let Err(failure) = begin(longs) {
        return failure.refused("fut_setup").into();
    }
    // The program must not change a mask that the user has set from outside.
    if !fut::__keymask_is_given()
        && let Err(error) = set_c_keys(keymask)
    {
        return Failure::from(error).refused("fut_setup").into();
    }
    fire(SETUP, (keymask, dropped));
    0
}

fn begin(longs: u64) -> Result<(), Failure> {
    let refused = |number, reason: &str| Err(Failure { number, reason: reason.into() });
    let Some(mut begun) = begun() else {
        return refused(
            libc::EIO,
            "this process was forked while another thread began or ended the recording",
        );
    };
    match &begun.own {
        Some(OwnRecording { recording: Some(_), .. }) => {
            return refused(libc::EALREADY, "this process already records");
        }
        Some(_) => {
            return refused(libc::EALREADY, "this process has recorded already, which is possible once");
        }
        None => {}
    }
    let path = begun.path.get_or_insert_with(default_path);
    let path = absolute(path).map_err(Failure::at(path))?;
    if begun.parents.as_ref().is_some_and(|parents| *parents == path || is_same_file(parents, &path)) {
        let reason = format!(
            "{}: the trace of the process that forked this one: call fut_set_filename",
            path.display()
        );
        return refused(libc::EBUSY, &reason);
    }
    let packets = match longs.saturating_mul(8) / PACKET_BYTES {
        0 if longs == 0 => Geometry::default().packets,
        packets => packets.next_power_of_two().clamp(2, 65536) as u32,
    };
    // An older trace of the same name is replaced, like in FxT, but only if the recording begins.
    let older = MovedAside::new(&path).map_err(Failure::at(&path))?;
    let recording = match Recording::start(&path, Geometry { packets, ..Geometry::default() }) {
        Ok(recording) => recording,
        Err(error) => {
            older.move_back();
            return Err(Failure::at(&path)(error));
        }
    };
    older.remove();
    begun.own = Some(OwnRecording { pid: process::id(), recording: Some(recording), trace: path });
    // SAFETY: the function has the right signature, and this library is never unloaded.
    unsafe { libc::atexit(at_exit) };
    Ok(())
}

/// FxT's own default. `…_unknown` for a set-user-ID program, which reads no variables.
fn default_path() -> PathBuf {
    let user = environment::variable("USER")
        .and_then(|user| user.into_string().ok())
        .filter(|user| !user.is_empty() && !user.contains('/'));
    Path::new("/tmp").join(format!("prof_file_user_{}", user.as_deref().unwrap_or("unknown")))
}

/// Sets the name of the trace, before `fut_setup`. It has no effect on a running recording.
///
/// # Safety
/// `filename` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fut_set_filename(filename: *const c_char) {
    // SAFETY: the caller passes a C string.
    let path = PathBuf::from(OsString::from_vec(unsafe { bytes(filename) }));
    let Some(mut begun) = begun() else { return };
    if begun.own.is_none() && !path.as_os_str().is_empty() {
        begun.path = Some(path);
    }
}

/// Ends recording and completes the trace. If `filename` is not the name of the trace, the trace is moved there.
/// Returns 0, or a negative error number. Under `sigmund record` this only switches the keys of C off, and the recorder
/// continues.
///
/// # Safety
/// `filename` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fut_endup(filename: *const c_char) -> i64 {
    // SAFETY: the caller passes a C string or null.
    let to = PathBuf::from(OsString::from_vec(unsafe { bytes(filename) }));
    let switched = set_c_keys(0).map_err(Failure::from);
    match end(&to).and(switched) {
        Ok(()) => 0,
        Err(failure) => failure.refused("fut_endup").into(),
    }
}

fn end(to: &Path) -> Result<(), Failure> {
    // `None`: this is a forked child, and the recording belongs to the parent.
    let Some(mut begun) = begun() else { return Ok(()) };
    let Some(own) = &mut begun.own else { return Ok(()) };
    if let Some(recording) = own.recording.take() {
        fut::note_modules();
        let (RecordingSummary { lost, unwritten, .. }, written) = recording.close();
        LOST.store(lost.saturating_add(unwritten), Ordering::Relaxed);
        written.map_err(Failure::at(&own.trace))?;
    }
    if to.as_os_str().is_empty() {
        return Ok(());
    }
    let to = absolute(to).map_err(Failure::at(to))?;
    move_to(&own.trace, &to).map_err(Failure::at(&to))?;
    own.trace = to;
    Ok(())
}

/// Completes the trace of a program that does not call `fut_endup`.
extern "C" fn at_exit() {
    if let Err(error) = end(Path::new("")) {
        fut::__warn(format_args!("the trace is not complete: {}", error.reason));
    }
}

/// Ends recording if it is still running. Returns 0, or a negative error number.
#[unsafe(no_mangle)]
pub extern "C" fn fut_done() -> c_int {
    // SAFETY: a null pointer is allowed.
    unsafe { fut_endup(std::ptr::null()) as c_int }
}

/// Switches keys of C: on (`FUT_ENABLE`), off (`FUT_DISABLE`), or exactly these on (`FUT_SETMASK`). Returns 0, or a
/// negative error number without changing anything: `-EPERM` if nothing is recorded, `-EINVAL` for an invalid `how`. In
/// a process that `sigmund record` cannot record, the result is the same as in a recorded one.
#[unsafe(no_mangle)]
pub extern "C" fn fut_keychange(how: c_int, keymask: c_uint, thread: c_uint) -> c_int {
    let _ = thread;
    if !fut::is_recording() {
        let is_asked = environment::variable(fut::ENV_ARENA_DIR).is_some();
        return match how {
            ENABLE | DISABLE | SETMASK if is_asked => 0,
            _ if is_asked => -libc::EINVAL,
            _ => -libc::EPERM,
        };
    }
    let keys_of_c = u64::from(keymask) << 32;
    let changed = match how {
        ENABLE => keys::change(keys_of_c, 0),
        DISABLE => keys::change(0, keys_of_c),
        SETMASK => set_c_keys(keymask),
        _ => return -libc::EINVAL,
    };
    match changed {
        Ok(()) => 0,
        Err(error) => Failure::from(error).refused("fut_keychange"),
    }
}

/// Sets the keys of C. The keys of Rust do not change.
fn set_c_keys(keymask: c_uint) -> Result<(), SwitchError> {
    keys::change(u64::from(keymask) << 32, keys::C_PROGRAM)
}

/// Why a call failed: the error number, and the reason for stderr.
struct Failure {
    number: c_int,
    reason: String,
}

impl Failure {
    /// Adds the file to an error.
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Failure {
        move |error| Failure { reason: format!("{}: {error}", path.display()), ..Failure::from(error) }
    }

    /// Reports the reason on stderr, and returns the negative number.
    fn refused(&self, function: &str) -> c_int {
        fut::__warn(format_args!("{function}: {}", self.reason));
        -self.number
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure { number: error.raw_os_error().unwrap_or(libc::EIO), reason: error.to_string() }
    }
}

impl From<SwitchError> for Failure {
    fn from(error: SwitchError) -> Failure {
        io::Error::from(error).into()
    }
}

/// Number of events dropped before recording began; at most 65536 are counted.
#[unsafe(no_mangle)]
pub extern "C" fn fut_dropped_before_setup() -> u64 {
    dropped_before_setup()
}

/// Number of records lost in the recording that `fut_endup` ended, including those that could not be written.
#[unsafe(no_mangle)]
pub extern "C" fn fut_lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Records libraries loaded by `dlopen`. A normal end of the program does so, too.
#[unsafe(no_mangle)]
pub extern "C" fn fut_note_modules() {
    fut::note_modules();
}

/// The clock of the probes, in ticks.
#[unsafe(no_mangle)]
pub extern "C" fn fut_getstamp() -> u64 {
    fut::clock::ticks()
}

const _: () = assert!(size_of::<*const c_void>() == 8, "records hold addresses in 64 bits");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_of_a_thread_that_a_forked_child_does_not_have_is_not_waited_for_for_ever() {
        assert!(begun().is_some());
        let held = begun().expect("nobody has it");
        // Like in a child: `BEGUN` was locked by another process.
        LOCKED_BY.store(process::id() + 1, Ordering::Relaxed);
        assert!(begun().is_none());
        drop(held);
        assert!(begun().is_some());
    }
}
