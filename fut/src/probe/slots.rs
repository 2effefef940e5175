//! Slots. The thread-local of an LWP points to a slot, which contains the location of the LWP's ring. A child process
//! finds all slots empty.
//!
//! ```text
//! thread-local          slot, private memory           arena, shared memory
//! fut_current_ring ──▶  | ring's address less that ──▶ | control block of the ring |
//!                       | of the stand-in          |
//! ```
//! A child made by a raw `clone`, or by `_Fork`, runs no handler of `pthread_atfork`. It has copies of the
//! thread-locals, and shares the pages of its parent's rings. So two processes would write to one ring. But memory
//! marked with `MADV_WIPEONFORK` (Linux 4.14) is zero in the child, and a slot of zero means the stand-in, with which
//! probes take the slow path. So the fast path needs no test, only one more load.
//!
//! A child that shares its parent's memory (`vfork`) does not count as another process. The thread of the parent waits
//! meanwhile, and the child records to the ring of that thread.

use std::{
    io,
    ptr::{self, NonNull},
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

use crate::shm::MAX_RINGS;

/// A slot: the distance of the ring's control block from the stand-in; 0 for an LWP without a ring.
pub(super) type Slot = AtomicU64;

/// The slot of every LWP that has no ring.
pub(super) static NO_RING: Slot = AtomicU64::new(0);

/// One slot for each ring, followed by a word that is 1 in the process that created the rings.
#[repr(C)]
struct Slots {
    of_rings: [Slot; MAX_RINGS as usize],
    mark: AtomicU64,
}

/// Never unmapped: LWPs that are about to end may still read their slots.
static SLOTS: AtomicPtr<Slots> = AtomicPtr::new(ptr::null_mut());

fn slots() -> Option<&'static Slots> {
    // Acquire: pairs with the Release in `prepare`. SAFETY: the pointer is null, or to a mapping of that size that is
    // never unmapped.
    unsafe { SLOTS.load(Ordering::Acquire).as_ref() }
}

/// Creates the slots, if there are none, and marks them as slots of this process. Called when a session starts.
pub(crate) fn prepare() -> io::Result<()> {
    if slots().is_none() {
        let made = map()?;
        // Release: pairs with the Acquire in `slots`.
        let first = SLOTS.compare_exchange(ptr::null_mut(), made, Ordering::Release, Ordering::Relaxed);
        if first.is_err() {
            // SAFETY: it was mapped above, and is not shared with other code.
            unsafe { libc::munmap(made.cast(), size_of::<Slots>()) };
        }
    }
    slots().ok_or(io::ErrorKind::OutOfMemory).map(|slots| slots.mark.store(1, Ordering::Relaxed))?;
    Ok(())
}

fn map() -> io::Result<*mut Slots> {
    let (len, protection) = (size_of::<Slots>(), libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a null hint: the kernel chooses an unused range, so no existing memory is affected.
    let made = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0) };
    if made == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: this is the range that was just mapped.
    let done = unsafe { libc::madvise(made, len, libc::MADV_WIPEONFORK) };
    if done == 0 {
        return Ok(made.cast());
    }
    let error = io::Error::last_os_error();
    // SAFETY: it was mapped above, and is not shared with other code.
    unsafe { libc::munmap(made, len) };
    Err(error)
}

/// Whether the rings belong to this process. False in a child that has not started its own session.
pub(crate) fn are_of_this_process() -> bool {
    slots().is_some_and(|slots| slots.mark.load(Ordering::Relaxed) == 1)
}

/// The slot of the ring with this number.
pub(super) fn slot(ring: u32) -> Option<NonNull<Slot>> {
    slots()?.of_rings.get(ring as usize).map(NonNull::from)
}
