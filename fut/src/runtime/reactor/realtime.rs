//! Requests the real-time class for the reactor's LWP, so that the kernel runs it ahead of all ordinary ones.
//!
//! An urgent thread waits for no other thread in the runtime, but its LWP still has to get a CPU. If more LWPs are
//! runnable than there are CPUs, the kernel's fair scheduler lets the woken LWP wait for the slices of others. This was
//! measured as p99 of `examples/reactivity` in 4 runs of 400 messages (EPYC guest, 2 CPUs, Linux 6.18, load average 9;
//! the sender is in the real-time class, so that it does not wait itself):
//!
//! | the reactor's LWP | p99, ms |
//! |---|---|
//! | default | 11 to 32 |
//! | a slice of 100 µs (`sched_runtime`, needs no privilege) | 16 to 114 |
//! | nice −20 | 8 to 26 |
//! | SCHED_FIFO | 0.16 to 1.3 |
//!
//! So only SCHED_FIFO is offered.

use std::io;

/// The lowest real-time priority, which is ahead of all ordinary threads.
const PRIORITY: libc::c_int = 1;

/// Requests the real-time class for the calling thread. Threads that it creates are ordinary ones again.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_NICE and with an RLIMIT_RTPRIO of 0.
pub(super) fn ask() -> io::Result<()> {
    let param = libc::sched_param { sched_priority: PRIORITY };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // Not through the C library: some C libraries refuse, because the kernel applies this call to a thread, but POSIX
    // to a process. SAFETY: `param` is valid during the call; 0 means the calling thread.
    let done = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const param) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
