//! The pair of fences of rules 1 and 2 of [`super`].
//!
//! LWPs often make threads ready, but rarely go to sleep, which costs a system call anyway. So if the kernel has
//! `membarrier`, the light fence is only a compiler fence. The heavy one is then a system call that makes all running
//! threads of the process execute a fence (membarrier(2), PRIVATE_EXPEDITED; Linux 4.14).

use crate::model_check::atomic::{Ordering, fence};

/// The pair of fences of rules 1 and 2.
#[derive(Clone, Copy, Debug)]
pub(in crate::runtime) enum Fences {
    /// Both are fence instructions.
    Symmetric,
    /// The light one is a compiler fence, the heavy one a system call.
    #[cfg(not(loom))]
    Asymmetric,
}

impl Fences {
    /// The best pair that this kernel supports.
    #[cfg(not(loom))]
    pub(in crate::runtime) fn of_this_kernel() -> Fences {
        let is_registered = membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED);
        if is_registered { Fences::Asymmetric } else { Fences::Symmetric }
    }

    #[cfg(loom)]
    pub(in crate::runtime) fn of_this_kernel() -> Fences {
        Fences::Symmetric
    }

    #[inline]
    pub(super) fn light(self) {
        match self {
            Fences::Symmetric => fence(Ordering::SeqCst),
            #[cfg(not(loom))]
            Fences::Asymmetric => std::sync::atomic::compiler_fence(Ordering::SeqCst),
        }
    }

    pub(super) fn heavy(self) {
        fence(Ordering::SeqCst);
        #[cfg(not(loom))]
        if matches!(self, Fences::Asymmetric) {
            while !membarrier(MEMBARRIER_PRIVATE_EXPEDITED) {
                wait_or_abort();
            }
        }
    }
}

/// Executes a command of membarrier(2). `false` if the kernel refused it; `errno` then has the reason.
#[cfg(not(loom))]
fn membarrier(command: i32) -> bool {
    // SAFETY: neither command accesses memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Called when the heavy fence has failed. Returns if it may be tried again, or aborts the process.
#[cfg(not(loom))]
#[cold]
fn wait_or_abort() {
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        // The kernel temporarily has no memory for a mask of CPUs.
        Some(libc::ENOMEM) => std::thread::yield_now(),
        // A process that was checkpointed and restored is no longer registered. It is now registered again.
        Some(libc::EPERM) if membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED) => {}
        // LWPs that make threads ready rely on this fence instead of an own one: without it, a wakeup could be lost.
        _ => {
            crate::warning::warn(format_args!(
                "membarrier, which the kernel allowed when the runtime began, is refused now ({error}): a seccomp filter has to \
                 allow it, or be installed before; aborting"
            ));
            std::process::abort();
        }
    }
}

/// include/uapi/linux/membarrier.h
#[cfg(not(loom))]
const MEMBARRIER_PRIVATE_EXPEDITED: i32 = 1 << 3;
#[cfg(not(loom))]
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
