//! Ends the process when all threads of the program have ended.
//!
//! Usually `main` returns, and the process ends. If the main thread ends by `pthread_exit`, the process lives until
//! its last thread has ended, and glibc calls `exit(0)` on that thread (`start_thread`, nptl/pthread_create.c). With
//! service threads of this library, the last thread of the program is not the last one of the process.
//!
//! 1. When the main thread ends, the destructor of `lwp_end` starts the thread `fut-last`. A program whose main thread
//!    returns from `main` never has this thread.
//! 2. `fut-last` compares the number of threads with that of service threads, after pauses of 1 ms, 2 ms and so on to
//!    100 ms. When only they and the ended main thread (state `Z`) are left, it calls `exit(0)`.
//! 3. The destructor is called only if the main thread has a value for its key. The main thread gets one when it starts
//!    the session, or attaches. Until then, in a session that was started by another thread, `fut-last` looks every
//!    100 ms whether the main thread has ended.
//!
//! Without `/proc` the process lives on. So it does if the main thread has ended by the system call `exit`, without the
//! C library.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use crate::{service_thread, warning::warn};

/// Longest pause.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Whether the end of the main thread will be noticed, or has been.
static NOTICED: AtomicBool = AtomicBool::new(false);
static MAIN_HAS_ENDED: AtomicBool = AtomicBool::new(false);
/// Whether there is a thread `fut-last`.
static LOOKING: AtomicBool = AtomicBool::new(false);

/// Called in a forked child, whose main thread is the one that has forked.
pub(super) fn forget() {
    for state in [&NOTICED, &MAIN_HAS_ENDED, &LOOKING] {
        state.store(false, Ordering::Relaxed);
    }
}

/// Whether the calling thread is the main thread of its process. Async-signal-safe.
pub(super) fn is_main() -> bool {
    // SAFETY: takes no arguments and cannot fail.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    // SAFETY: as above.
    tid == libc::c_long::from(unsafe { libc::getpid() })
}

/// Called when the main thread has got a value for the key of `lwp_end`. Async-signal-safe.
pub(super) fn main_is_watched() {
    NOTICED.store(true, Ordering::Relaxed);
}

/// Called when service threads may have been started.
pub(super) fn look_for_end_of_main() {
    let may_have_ended = !NOTICED.load(Ordering::Relaxed) || MAIN_HAS_ENDED.load(Ordering::SeqCst);
    if may_have_ended && service_thread::any() {
        look(LOOK_EVERY);
    }
}

/// Called by the destructor of `lwp_end` on the main thread, which is about to end.
pub(super) fn main_ends() {
    MAIN_HAS_ENDED.store(true, Ordering::SeqCst);
    // A child made by a raw `clone` has none of its parent's service threads.
    if super::is_on() && service_thread::any() {
        look(Duration::from_millis(1));
    }
}

/// Starts `fut-last`.
fn look(first_pause: Duration) {
    look_with(first_pause, service_thread::blocked_signals());
}

/// `signals` are those that exit handlers run with blocked.
fn look_with(first_pause: Duration, signals: libc::sigset_t) {
    if LOOKING.swap(true, Ordering::SeqCst) {
        return;
    }
    let body = move || {
        let mut pause = first_pause;
        while !NOTICED.load(Ordering::Relaxed) || MAIN_HAS_ENDED.load(Ordering::SeqCst) {
            thread::sleep(pause);
            pause = LOOK_EVERY.min(2 * pause);
            if program_has_ended() {
                service_thread::block_signals(&signals);
                // SAFETY: no thread of the program is left that could call it, too.
                unsafe { libc::exit(0) };
            }
        }
        LOOKING.store(false, Ordering::SeqCst);
        // The main thread may have ended just before; then it has started no thread like this.
        if MAIN_HAS_ENDED.load(Ordering::SeqCst) {
            look_with(first_pause, signals);
        }
    };
    if let Err(error) = service_thread::spawn("fut-last", body) {
        LOOKING.store(false, Ordering::SeqCst);
        warn(format_args!("this process will not end with its last thread: {error}"));
    }
}

/// Whether all threads but the service threads have ended.
fn program_has_ended() -> bool {
    let only_ours_are_left = |ours| {
        let threads = fs::read("/proc/self/stat").ok().and_then(|stat| threads_after_main(&stat));
        threads == Some(ours + 1)
    };
    service_thread::while_running(only_ours_are_left) == Some(true)
}

/// The number of threads of a process whose main thread has ended. `stat` is its file in `/proc` (proc_pid_stat(5)).
fn threads_after_main(stat: &[u8]) -> Option<usize> {
    // The name may contain blanks and parentheses.
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace();
    // Field 3 is the state, field 20 the number of threads.
    fields.next().filter(|state| *state == "Z")?;
    fields.nth(16)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_threads_counts_only_after_the_main_thread_has_ended() {
        let stat = |state: &str| {
            format!("7 (a) Z b) {state} 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 3 0 100 0 0\n").into_bytes()
        };
        assert_eq!(threads_after_main(&stat("Z")), Some(3));
        assert_eq!(threads_after_main(&stat("S")), None);
        assert_eq!(threads_after_main(b"7 (a"), None);
        assert_eq!(threads_after_main(b"7 (a) Z 1"), None);
        assert!(!program_has_ended());
    }
}
