//! Snapshots without an explicit call: on a signal, and on a panic.
//!
//! A signal handler may not open files, allocate or lock. So the handler only writes a word to an eventfd, on which a
//! thread waits.

use std::{
    fs::File,
    io::{self, Read},
    mem,
    os::fd::{AsRawFd, FromRawFd},
    path::{Path, PathBuf},
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI32, AtomicU32, Ordering},
    },
};

use super::FlightRecorder;
use crate::{service_thread, warning::warn};

/// Maximum number of snapshots on panics.
const PANICS: u32 = 8;

/// Signals for faults of the program.
const FAULTS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// The eventfd on which the thread waits; -1 for none.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// The folder for snapshots on signals.
static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);
static NUMBER: AtomicU32 = AtomicU32::new(1);

/// Called in a forked child, where the thread and the eventfd are those of the parent.
pub(super) fn forget() {
    WAKE.store(-1, Ordering::Relaxed);
}

pub(super) fn on_signal(recorder: FlightRecorder, signal: i32, folder: &Path) -> io::Result<()> {
    // After a fault in the program, the handler would return to the faulty instruction, again and again.
    if FAULTS.contains(&signal) {
        let message =
            format!("expected a signal that is sent to the program, found that of a fault, {signal}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut place = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    *place = Some(folder.to_path_buf());
    if WAKE.load(Ordering::Relaxed) == -1 {
        start_thread(recorder)?;
    }
    drop(place);
    // SAFETY: plain data, for which zeros are valid.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = wake as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // The stack of a user thread may be too small for the frame of a signal.
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler is async-signal-safe and never unloaded; the old action is not requested.
    let done = unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn start_thread(recorder: FlightRecorder) -> io::Result<()> {
    // SAFETY: takes no pointer.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and has no other owner.
    let mut wakes = unsafe { File::from_raw_fd(fd) };
    let fd = wakes.as_raw_fd();
    let body = move || {
        // The thread ends with the process.
        while wakes.read_exact(&mut [0; 8]).is_ok() {
            let folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(folder) = folder {
                take(recorder, &folder);
            }
        }
    };
    service_thread::spawn("fut-snapshot", body)?;
    super::last_thread::look_for_end_of_main();
    WAKE.store(fd, Ordering::Relaxed);
    Ok(())
}

extern "C" fn wake(_: libc::c_int) {
    // In a child made by a raw `clone`, the thread belongs to the parent.
    if !crate::probe::slots_are_of_this_process() {
        return;
    }
    let fd = WAKE.load(Ordering::Relaxed);
    // SAFETY: returns the address of this thread's `errno`.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is valid as long as the thread exists.
    let before = unsafe { errno.read() };
    let one = 1_u64.to_ne_bytes();
    // SAFETY: `one` is eight bytes; `write` is async-signal-safe. An invalid descriptor is only an error.
    unsafe { libc::write(fd, one.as_ptr().cast(), one.len()) };
    // SAFETY: as above. The interrupted code must not see this handler's `errno`.
    unsafe { errno.write(before) };
}

pub(super) fn on_panic(recorder: FlightRecorder, folder: &Path) {
    let folder = folder.to_path_buf();
    let taken = AtomicU32::new(0);
    let next = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if taken.fetch_add(1, Ordering::Relaxed) < PANICS {
            take(recorder, &folder);
        }
        next(info);
    }));
}

/// Takes a snapshot. There is no caller for an error, so a failure is reported on standard error.
fn take(recorder: FlightRecorder, folder: &Path) {
    // A forked child has inherited the hook and the rings of its parent.
    if !recorder.is_of_this_process() {
        return;
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("snapshot-{}-{number}.fut", std::process::id()));
    if let Err(error) = recorder.snapshot(&path) {
        warn(format_args!("no snapshot: {}: {error}", path.display()));
    }
}
