//! Asking the kernel to let the reactor's LWP run ahead of all ordinary ones.
//!
//! An urgent thread waits for nobody in the runtime, but its LWP still has to get a CPU. Where more LWPs want to run
//! than there are CPUs, the kernel's fair scheduler lets the woken one wait for slices of others. What that comes to, as
//! p99 of `examples/reactivity` in 4 runs of 400 messages (EPYC guest, 2 CPUs, Linux 6.18, load average 9; the sender of
//! the real-time class, so that it is not the sender that waits):
//!
//! | the reactor's LWP | p99, ms |
//! |---|---|
//! | as any | 11 to 32 |
//! | a slice of 100 µs (`sched_runtime`, needs no privilege) | 16 to 114 |
//! | nice −20 | 8 to 26 |
//! | SCHED_FIFO | 0.16 to 1.3 |
//!
//! So the last one is offered, and nothing else.

use std::io;

/// The lowest of the real-time priorities is ahead of all ordinary threads.
const PRIORITY: libc::c_int = 1;

/// For the calling thread. Threads that it makes are ordinary ones again.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_NICE and with an RLIMIT_RTPRIO of 0.
pub(super) fn ask() -> io::Result<()> {
    let param = libc::sched_param { sched_priority: PRIORITY };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // Not through the C library: some refuse, because the call is about a thread and POSIX wants a process.
    // SAFETY: `param` is there during the call; 0 is the calling thread.
    let done = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const param) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
