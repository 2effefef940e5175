//! Snapshots without a call in the code: on a signal, on a panic.
//!
//! A signal handler may not open files, allocate or lock. So ours writes a word to an eventfd, on which a thread sleeps.

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
    thread,
};

use super::FlightRecorder;
use crate::warning::warn;

/// Snapshots that panics may cause.
const PANICS: u32 = 8;

/// The eventfd on which the thread sleeps; -1 is none.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// Where snapshots on signals go.
static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);
static NUMBER: AtomicU32 = AtomicU32::new(1);

/// In a child that `fork` made: the thread is the parent's, and so is the eventfd.
pub(super) fn forget() {
    WAKE.store(-1, Ordering::Relaxed);
}

pub(super) fn on_signal(recorder: FlightRecorder, signal: i32, folder: &Path) -> io::Result<()> {
    let mut place = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    *place = Some(folder.to_path_buf());
    if WAKE.load(Ordering::Relaxed) == -1 {
        start_thread(recorder)?;
    }
    drop(place);
    // SAFETY: plain data, of which zeros are valid.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = wake as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler does what is allowed in one, and is never unloaded; the old action is not asked for.
    let done = unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn start_thread(recorder: FlightRecorder) -> io::Result<()> {
    // SAFETY: takes no pointer.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and nothing else's.
    let mut wakes = unsafe { File::from_raw_fd(fd) };
    let fd = wakes.as_raw_fd();
    let body = move || {
        // It ends with the process.
        while wakes.read_exact(&mut [0; 8]).is_ok() {
            let folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(folder) = folder {
                take(recorder, &folder);
            }
        }
    };
    thread::Builder::new().name("fut-snapshot".into()).spawn(body)?;
    WAKE.store(fd, Ordering::Relaxed);
    Ok(())
}

extern "C" fn wake(_: libc::c_int) {
    // The thread is that of another process, which made this one by a raw `clone`.
    if !crate::probe::slots_are_of_this_process() {
        return;
    }
    let fd = WAKE.load(Ordering::Relaxed);
    // SAFETY: gives the address of this thread's `errno`.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: valid for as long as the thread lives.
    let before = unsafe { errno.read() };
    let one = 1_u64.to_ne_bytes();
    // SAFETY: `one` is eight bytes; `write` may be called in a signal handler. A bad descriptor is an error, no more.
    unsafe { libc::write(fd, one.as_ptr().cast(), one.len()) };
    // SAFETY: as above. The interrupted code must not see the error of ours.
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

/// A failed snapshot is reported on standard error: it has no caller to return an error to.
fn take(recorder: FlightRecorder, folder: &Path) {
    // A child that `fork` made still has the parent's hook, and its rings.
    if !recorder.is_of_this_process() {
        return;
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("snapshot-{}-{number}.fut", std::process::id()));
    if let Err(error) = recorder.snapshot(&path) {
        warn(format_args!("no snapshot: {}: {error}", path.display()));
    }
}
