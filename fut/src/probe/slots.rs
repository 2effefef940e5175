//! Slots: where an LWP's thread-local points to, and what says which ring it has. A child process finds them empty.
//!
//! ```text
//! thread-local          slot, private memory           arena, shared memory
//! fut_current_ring ──▶  | ring's address less that ──▶ | control block of the ring |
//!                       | of the stand-in          |
//! ```
//! A child that was made by a raw `clone`, or by `_Fork`, runs no handler of `pthread_atfork`. It has copies of the
//! thread-locals, and maps the very pages of its parent's rings: two processes would write into one. But the kernel gives
//! it zeros in place of memory that was marked so (`MADV_WIPEONFORK`, Linux 4.14), and a slot of zeros says the stand-in,
//! whose probes take the slow path. So a probe asks nothing: the way to its ring is one load longer.
//!
//! A child that shares its parent's memory (`vfork`) is no other process here: its parent's thread waits meanwhile, and
//! the child records in its place.

use std::{
    io,
    ptr::{self, NonNull},
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

use crate::shm::MAX_RINGS;

/// A slot: 0 for an LWP without a ring.
pub(super) type Slot = AtomicU64;

/// The slot of every LWP that has no ring.
pub(super) static NO_RING: Slot = AtomicU64::new(0);

/// One for each ring, and after them a word that is 1 in the process that has made the rings.
#[repr(C)]
struct Slots {
    of_rings: [Slot; MAX_RINGS as usize],
    mark: AtomicU64,
}

/// Never unmapped: LWPs that are about to end may still look.
static SLOTS: AtomicPtr<Slots> = AtomicPtr::new(ptr::null_mut());

fn slots() -> Option<&'static Slots> {
    // Acquire: pairs with the Release in `prepare`.
    // SAFETY: null, or a mapping of that size that stays.
    unsafe { SLOTS.load(Ordering::Acquire).as_ref() }
}

/// Makes the slots, if there are none, and marks them as this process's. When a session starts.
pub(crate) fn prepare() -> io::Result<()> {
    if slots().is_none() {
        let made = map()?;
        // Release: pairs with the Acquire in `slots`.
        let first = SLOTS.compare_exchange(ptr::null_mut(), made, Ordering::Release, Ordering::Relaxed);
        if first.is_err() {
            // SAFETY: made just now, and nothing else knows of it.
            unsafe { libc::munmap(made.cast(), size_of::<Slots>()) };
        }
    }
    slots().ok_or(io::ErrorKind::OutOfMemory).map(|slots| slots.mark.store(1, Ordering::Relaxed))?;
    Ok(())
}

fn map() -> io::Result<*mut Slots> {
    let (len, protection) = (size_of::<Slots>(), libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a null hint and a fresh range chosen by the kernel: no memory of ours is touched.
    let made = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0) };
    if made == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the range that was just mapped.
    let done = unsafe { libc::madvise(made, len, libc::MADV_WIPEONFORK) };
    if done == 0 {
        return Ok(made.cast());
    }
    let error = io::Error::last_os_error();
    // SAFETY: made just now, and nothing else knows of it.
    unsafe { libc::munmap(made, len) };
    Err(error)
}

/// Whether the rings that the slots lead to are this process's. Not in a child that has not begun anew.
pub(crate) fn are_of_this_process() -> bool {
    slots().is_some_and(|slots| slots.mark.load(Ordering::Relaxed) == 1)
}

/// The slot of the ring with this number.
pub(super) fn slot(ring: u32) -> Option<NonNull<Slot>> {
    slots()?.of_rings.get(ring as usize).map(NonNull::from)
}
