//! The pair of fences of rules 1 and 2 of [`super`].
//!
//! Making ready is frequent; going to sleep is rare and costs a system call anyway. So if the kernel has `membarrier`,
//! the light fence is a compiler fence only, and the heavy one is a system call that makes all running threads of the
//! process execute a fence (membarrier(2), PRIVATE_EXPEDITED; Linux 4.14).

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
        // SAFETY: registering has no precondition, and may be repeated.
        let registered =
            unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) };
        if registered == 0 { Fences::Asymmetric } else { Fences::Symmetric }
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
            // It fails only temporarily, when the kernel has no memory for a CPU mask. SAFETY: accesses no memory; the
            // process is registered.
            while unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0) } != 0 {
                std::thread::yield_now();
            }
        }
    }
}

/// include/uapi/linux/membarrier.h
#[cfg(not(loom))]
const MEMBARRIER_PRIVATE_EXPEDITED: i32 = 1 << 3;
#[cfg(not(loom))]
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
