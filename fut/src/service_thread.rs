//! Threads of this library in the traced process, which must not change what the program does.
//!
//! 1. They block all signals, except those of faults in their own code. A signal that the program's threads block, to
//!    wait for it, must not be delivered to a thread that the program does not know.
//! 2. They do not keep the process alive: they are counted here, and `session::last_thread` ends the process when only
//!    they are left.

use std::{
    io, mem, ptr,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

/// Signals of faults. If a thread that blocks them has one, the kernel ends the process without calling its handler.
const FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// Whether this process has ever had such a thread.
static ANY: AtomicBool = AtomicBool::new(false);
/// Number of these threads that are running.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// Number of these threads that have ended.
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// Counts the calling thread. The thread exists before and after it is counted, so there are never fewer threads than
/// are counted.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
        // This comes second: see `while_running`.
        ENDED.fetch_add(1, Ordering::SeqCst);
    }
}

/// Called in a forked child, where these threads do not exist.
pub(crate) fn forget() {
    ANY.store(false, Ordering::Relaxed);
    RUNNING.store(0, Ordering::SeqCst);
}

/// Whether this process has had such threads.
pub(crate) fn any() -> bool {
    ANY.load(Ordering::Relaxed)
}

/// Calls `body` with the number of these threads, which all exist while it runs. A thread that has just been created
/// may not be counted. `None` if one of them has ended meanwhile.
pub(crate) fn while_running<T>(body: impl FnOnce(usize) -> T) -> Option<T> {
    // A thread that ends during `body` is in the number, so its end is not in `ended`: it changes this second.
    let ended = ENDED.load(Ordering::SeqCst);
    let result = body(RUNNING.load(Ordering::SeqCst));
    (ENDED.load(Ordering::SeqCst) == ended).then_some(result)
}

/// Starts a service thread.
///
/// # Errors
/// If no thread can be created.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<thread::JoinHandle<T>> {
    let body = move || {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        let _counted = Counted;
        body()
    };
    let thread = with_signals_blocked(|| thread::Builder::new().name(name.into()).spawn(body))?;
    ANY.store(true, Ordering::Relaxed);
    Ok(thread)
}

/// A thread that is created in `body` inherits the mask of signals.
fn with_signals_blocked<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: a signal set is plain bits, which the next call fills in.
    let mut blocked: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: `blocked` is valid for writing.
    unsafe { libc::sigfillset(&raw mut blocked) };
    for fault in FAULTS {
        // SAFETY: `blocked` is filled in, and the signal exists.
        unsafe { libc::sigdelset(&raw mut blocked, fault) };
    }
    let before = blocked_signals();
    block_signals(&blocked);
    let result = body();
    block_signals(&before);
    result
}

/// The signals that the calling thread blocks.
pub(crate) fn blocked_signals() -> libc::sigset_t {
    // SAFETY: a signal set is plain bits, which the next call fills in.
    let mut blocked: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: no new mask is given; `blocked` is valid for writing.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut blocked) };
    blocked
}

/// Makes the calling thread block these signals, and no others.
pub(crate) fn block_signals(blocked: &libc::sigset_t) {
    // SAFETY: a reference to a signal set; the mask before is not requested.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, blocked, ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_thread_is_counted_and_receives_only_signals_of_its_own_faults() {
        // SAFETY: a reference to a signal set, and the signal exists.
        let blocked = |signal| unsafe { libc::sigismember(&blocked_signals(), signal) == 1 };
        let signals = [libc::SIGTERM, libc::SIGXFSZ, libc::SIGRTMIN(), libc::SIGSEGV];
        let before = signals.map(blocked);
        let found = move || (while_running(|number| number > 0), signals.map(blocked));
        let found = spawn("fut-test", found).unwrap().join().unwrap();
        assert_eq!(found, (Some(true), [true, true, true, false]));
        let ends = || spawn("fut-test", || ()).unwrap().join().unwrap();
        assert_eq!(while_running(|_| ends()), None);
        assert_eq!(signals.map(blocked), before, "the mask of the thread that starts it");
        assert!(any());
    }
}
