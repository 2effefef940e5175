//! Beginning and ending a recording. Under `sigmund record` it begins when the library is loaded, otherwise with
//! `fut_setup`.

use std::{
    ffi::{c_char, c_int, c_uint, c_void},
    fs, io, mem,
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
    declare::text,
    own_events::{SETUP, declare_own_events},
    probes::fire,
};

/// `FUT_ENABLE`, `FUT_DISABLE` and `FUT_SETMASK` of fut.h.
const ENABLE: c_int = 0xCE03;
const DISABLE: c_int = 0xCE04;
const SETMASK: c_int = 0xCE05;

/// Bytes of a packet.
const PACKET_BYTES: u64 = fut::shm::PACKET_LEN as u64;

/// The state set by `fut_setup` and `fut_set_filename`.
struct Begun {
    /// The recording, and the process that began it. A forked child has a copy of this, but not the thread of the
    /// drain.
    recording: Option<(u32, Recording)>,
    path: Option<PathBuf>,
}

static BEGUN: Mutex<Begun> = Mutex::new(Begun { recording: None, path: None });
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
        let begun = match locked {
            Err(TryLockError::WouldBlock) => {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            Ok(begun) => begun,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        LOCKED_BY.store(here, Ordering::Relaxed);
        return Some(begun);
    }
    None
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
    if environment::variable(fut::ENV_ARENA_DIR).is_none()
        && let Err(error) = begin(longs)
    {
        return refused("fut_setup", &error).into();
    }
    // The program must not change a mask that the user has set from outside.
    if !fut::__keymask_is_given()
        && let Err(error) = set_c_keys(keymask)
    {
        return refused("fut_setup", &error.into()).into();
    }
    fire(SETUP, (keymask, dropped));
    0
}

fn begin(longs: u64) -> io::Result<()> {
    let Some(mut begun) = begun() else {
        return Err(io::Error::other(
            "this process was forked while another thread began or ended the recording",
        ));
    };
    if begun.recording.as_ref().is_some_and(|(pid, _)| *pid == process::id()) {
        return Err(io::Error::from_raw_os_error(libc::EALREADY));
    }
    let path = begun.path.get_or_insert_with(default_path).clone();
    make_way(&path)?;
    let packets = match longs.saturating_mul(8) / PACKET_BYTES {
        0 if longs == 0 => Geometry::default().packets,
        packets => packets.next_power_of_two().clamp(2, 65536) as u32,
    };
    let recording = Recording::start(&path, Geometry { packets, ..Geometry::default() })?;
    begun.recording = Some((process::id(), recording));
    // SAFETY: the function has the right signature, and this library is never unloaded.
    unsafe { libc::atexit(at_exit) };
    Ok(())
}

/// Removes an older trace of the same name, like FxT. Only regular files are removed.
fn make_way(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(old) if old.is_file() => fs::remove_file(path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{}: expected a regular file or nothing, found another kind of file", path.display()),
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
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
    let path = PathBuf::from(unsafe { text(filename) });
    let Some(mut begun) = begun() else { return };
    if begun.recording.is_none() && !path.as_os_str().is_empty() {
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
    let to = unsafe { text(filename) };
    let switched = set_c_keys(0).map_err(io::Error::from);
    match end(Path::new(&to)).and(switched) {
        Ok(()) => 0,
        Err(error) => refused("fut_endup", &error).into(),
    }
}

fn end(to: &Path) -> io::Result<()> {
    // `None`: this is a forked child, and the recording belongs to the parent.
    let Some(mut begun) = begun() else { return Ok(()) };
    let Some((pid, recording)) = begun.recording.take() else { return Ok(()) };
    if pid != process::id() {
        // This is the recording of the parent, which continues. Neither its file nor its thread belongs to this
        // process.
        mem::forget(recording);
        return Ok(());
    }
    fut::note_modules();
    let RecordingSummary { lost, .. } = recording.finish()?;
    LOST.store(lost, Ordering::Relaxed);
    let Some(path) = begun.path.as_deref() else { return Ok(()) };
    if to.as_os_str().is_empty() || to == path {
        return Ok(());
    }
    make_way(to)?;
    match fs::rename(path, to) {
        Err(error) if error.raw_os_error() == Some(libc::EXDEV) => {
            // A new file, like the trace itself: a link that was created there meanwhile is not followed.
            io::copy(&mut fs::File::open(path)?, &mut fs::File::create_new(to)?)?;
            fs::remove_file(path)
        }
        renamed => renamed,
    }
}

/// Completes the trace of a program that does not call `fut_endup`.
extern "C" fn at_exit() {
    if let Err(error) = end(Path::new("")) {
        fut::__warn(format_args!("the trace is not complete: {error}"));
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
    let now = (keys::mask() >> 32) as c_uint;
    let changed = match how {
        ENABLE => set_c_keys(now | keymask),
        DISABLE => set_c_keys(now & !keymask),
        SETMASK => set_c_keys(keymask),
        _ => return -libc::EINVAL,
    };
    match changed {
        Ok(()) => 0,
        Err(error) => refused("fut_keychange", &error.into()),
    }
}

/// Sets the keys of C. The keys of Rust do not change.
fn set_c_keys(keymask: c_uint) -> Result<(), SwitchError> {
    keys::set(keys::mask() & !keys::C_PROGRAM | u64::from(keymask) << 32)
}

/// Reports an error on stderr, and returns its negative number.
fn refused(function: &str, error: &io::Error) -> c_int {
    fut::__warn(format_args!("{function}: {error}"));
    -error.raw_os_error().unwrap_or(libc::EIO)
}

/// Number of events dropped before recording began; at most 65536 are counted.
#[unsafe(no_mangle)]
pub extern "C" fn fut_dropped_before_setup() -> u64 {
    dropped_before_setup()
}

/// Number of records lost in the recording that `fut_endup` ended.
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
