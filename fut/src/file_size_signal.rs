//! Files that would exceed `RLIMIT_FSIZE`: an error of this library, and not the signal SIGXFSZ, which ends the
//! program.

use std::{mem, ptr};

/// Runs `body` with SIGXFSZ blocked on this thread. A signal that `body` causes is discarded.
#[doc(hidden)]
pub fn without_file_size_signal<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: a signal set is plain bits, which the next call fills in.
    let mut signal: libc::sigset_t = unsafe { mem::zeroed() };
    let (mut before, mut pending) = (signal, signal);
    // SAFETY: `signal` is valid for writing.
    unsafe { libc::sigemptyset(&raw mut signal) };
    // SAFETY: `signal` is initialised, and the signal exists.
    unsafe { libc::sigaddset(&raw mut signal, libc::SIGXFSZ) };
    // SAFETY: `signal` is initialised, and `before` is valid for writing.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signal, &raw mut before) };
    // SAFETY: `pending` is valid for writing.
    unsafe { libc::sigpending(&raw mut pending) };
    let result = body();
    // SAFETY: `pending` was filled in by `sigpending`, or is empty.
    let is_the_programs = unsafe { libc::sigismember(&raw const pending, libc::SIGXFSZ) } == 1;
    if !is_the_programs {
        let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: both pointers are valid; the details of the signal are not requested.
        unsafe { libc::sigtimedwait(&raw const signal, ptr::null_mut(), &raw const no_time) };
    }
    // SAFETY: `before` was filled in above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_pending() -> bool {
        // SAFETY: plain bits, filled in by the next call.
        let mut pending: libc::sigset_t = unsafe { mem::zeroed() };
        // SAFETY: valid for writing.
        unsafe { libc::sigpending(&raw mut pending) };
        // SAFETY: filled in.
        unsafe { libc::sigismember(&raw const pending, libc::SIGXFSZ) == 1 }
    }

    fn raise() {
        // SAFETY: it is blocked.
        unsafe { libc::raise(libc::SIGXFSZ) };
    }

    #[test]
    fn a_signal_that_was_caused_is_discarded_and_one_of_the_program_is_kept() {
        without_file_size_signal(raise);
        assert!(!is_pending());
        without_file_size_signal(|| {
            raise();
            without_file_size_signal(raise);
            assert!(is_pending());
        });
    }
}
