//! Waits of the kernel for its own locks: from `contention_begin` to `contention_end` (include/trace/events/lock.h, Linux 5.19
//! and later).
//!
//! 1. A wait belongs to an LWP, in task context, or to a CPU, in an interrupt or while it is idle. Both may wait for
//!    several locks, one inside another: the slow path of a mutex takes a spinlock.
//! 2. A second begin for the same lock belongs to the same wait: a thread first spins for a mutex, and then sleeps.
//! 3. The kernel has no events for locks that are free, nor for releases. So a kernel lock has waits, but no holds and
//!    no holder.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{Cpu, Lwp, Thread, Ticks};

/// Maximum number of waits that one LWP or CPU is in. Further waits are left out.
const DEEPEST: usize = 16;

/// The LWP or CPU that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum KernelWaiter {
    Lwp(Lwp),
    /// An interrupt, or the idle LWP.
    Cpu(Cpu),
}

/// A wait that has begun.
#[derive(Clone, Debug)]
pub(crate) struct KernelWait {
    pub(crate) since: Ticks,
    pub(crate) waiter: KernelWaiter,
    pub(crate) cpu: Option<Cpu>,
    /// The user thread that the LWP carries.
    pub(crate) thread: Option<Thread>,
    pub(crate) object: i64,
    pub(crate) kind: &'static str,
    /// The system call.
    pub(crate) call_site: Option<String>,
}

/// The open waits of each LWP and CPU, the outermost first.
#[derive(Debug, Default)]
pub(super) struct KernelLocks {
    open: HashMap<KernelWaiter, Vec<KernelWait>, RandomState>,
}

impl KernelLocks {
    pub(super) fn begins(&mut self, wait: KernelWait) {
        let waits = self.open.entry(wait.waiter).or_default();
        if waits.len() < DEEPEST && waits.iter().all(|open| open.object != wait.object) {
            waits.push(wait);
        }
    }

    pub(super) fn ends(&mut self, waiter: KernelWaiter, object: i64) -> Option<KernelWait> {
        let waits = self.open.get_mut(&waiter)?;
        let place = waits.iter().rposition(|wait| wait.object == object)?;
        Some(waits.remove(place))
    }

    /// Removes all waits of an LWP or a CPU.
    pub(super) fn take(&mut self, waiter: KernelWaiter) -> Vec<KernelWait> {
        if self.open.is_empty() { Vec::new() } else { self.open.remove(&waiter).unwrap_or_default() }
    }

    pub(super) fn take_all(&mut self) -> Vec<KernelWait> {
        let mut waits: Vec<KernelWait> = std::mem::take(&mut self.open).into_values().flatten().collect();
        waits.sort_by_key(|wait| (wait.since, wait.waiter, wait.object));
        waits
    }
}

/// The kind of a kernel lock, from its `LCB_F_*` flags.
pub(crate) fn kernel_lock_kind(flags: Option<i64>) -> &'static str {
    const SPIN: i64 = 1;
    const READ: i64 = 2;
    const WRITE: i64 = 4;
    const RT: i64 = 8;
    const PERCPU: i64 = 16;
    const MUTEX: i64 = 32;
    let Some(flags) = flags else { return "kernel-lock" };
    // A realtime kernel has locks that sleep instead of spinning.
    let spins = flags & (SPIN | RT) != 0;
    match flags & (READ | WRITE) {
        _ if flags & MUTEX != 0 => "kernel-mutex",
        READ if flags & PERCPU != 0 => "kernel-percpu-rwsem-read",
        WRITE if flags & PERCPU != 0 => "kernel-percpu-rwsem-write",
        READ if spins => "kernel-rwlock-read",
        WRITE if spins => "kernel-rwlock-write",
        READ => "kernel-rwsem-read",
        WRITE => "kernel-rwsem-write",
        0 if flags & RT != 0 => "kernel-rt-mutex",
        0 if flags & SPIN != 0 => "kernel-spinlock",
        0 if flags == 0 => "kernel-semaphore",
        _ => "kernel-lock",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The names are those of `perf lock contention`, whose `mutex` also spins.
    #[test]
    fn flags_tell_the_kind() {
        let kinds = [
            (0, "semaphore"),
            (1, "spinlock"),
            (1 | 2, "rwlock-read"),
            (1 | 4, "rwlock-write"),
            (2, "rwsem-read"),
            (4, "rwsem-write"),
            (8, "rt-mutex"),
            (8 | 2, "rwlock-read"),
            (8 | 4, "rwlock-write"),
            (16 | 2, "percpu-rwsem-read"),
            (16 | 4, "percpu-rwsem-write"),
            (32, "mutex"),
            (32 | 1, "mutex"),
            (2 | 4, "lock"),
            (64, "lock"),
            (-1, "mutex"),
        ];
        for (flags, kind) in kinds {
            assert_eq!(kernel_lock_kind(Some(flags)).strip_prefix("kernel-"), Some(kind), "{flags}");
        }
        assert_eq!(kernel_lock_kind(None), "kernel-lock");
    }
}
