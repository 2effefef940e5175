//! The ring of the current LWP, looked up at every probe.
//!
//! A user thread may continue on another LWP after any switch. A compiler may keep the address of a thread-local across
//! a call, because it does not know that the call switches. So the variable is defined and read in assembly, which the
//! compiler does not analyse. The initial-exec access works in executables and in shared objects that are loaded at
//! start; the linker relaxes it to local-exec where possible.
//!
//! The variable points to a slot, which contains the location of the ring ([`slots`](super::slots)). So a child process
//! that was made without a call of the fork handlers (a raw `clone`) finds no ring.
//!
//! A thread that is not attached finds [`CURRENT_NONE`]. This is a control block whose cursor is always past the end,
//! so its probes take the slow path, which attaches the thread. The fast path does not test whether there is a ring.

use std::{
    ptr::{self, NonNull},
    sync::atomic::{AtomicIsize, AtomicU32, AtomicU64, Ordering},
};

use super::slots::{NO_RING, Slot, slot};
use crate::shm::ring::{Control, PACKET_LEN};

/// The control block of threads without a ring.
pub(crate) static CURRENT_NONE: Control = Control::stand_in();

static NO_CPU: AtomicU32 = AtomicU32::new(u32::MAX);

impl Control {
    const fn stand_in() -> Control {
        let mut control = Control::zero();
        control.cursor = AtomicU64::new(PACKET_LEN as u64 + 8);
        control
    }

    /// Resets the cursor of the stand-in, long before it could wrap. Probes without a ring add to this cursor.
    pub(crate) fn stay_full(&self) {
        self.cursor.store(PACKET_LEN as u64 + 8, Ordering::Relaxed);
    }
}

/// Address of a constant CPU number that means "unknown", for use where the kernel provides none.
pub(crate) fn no_cpu() -> NonNull<u32> {
    NonNull::from(&NO_CPU).cast()
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .tdata.fut_current_ring,\"awT\",@progbits",
    ".globl fut_current_ring",
    ".type fut_current_ring,@object",
    ".size fut_current_ring,8",
    ".p2align 3",
    "fut_current_ring:",
    ".quad {none}",
    ".popsection",
    none = sym NO_RING,
);

/// The control block of the current LWP's ring, or [`CURRENT_NONE`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn current() -> NonNull<Control> {
    let distance: usize;
    // SAFETY: reads the thread-local defined above, and the slot it points to, which is never unmapped. Not `pure`: two
    // reads with a switch in between may differ.
    unsafe {
        std::arch::asm!(
            "mov {slot}, qword ptr [rip + fut_current_ring@GOTTPOFF]",
            "mov {slot}, qword ptr fs:[{slot}]",
            "mov {slot}, qword ptr [{slot}]",
            slot = out(reg) distance,
            options(nostack, preserves_flags, readonly),
        );
    }
    control_at(distance)
}

#[cfg(target_arch = "x86_64")]
fn current_slot() -> &'static Slot {
    let slot: *mut Slot;
    // SAFETY: reads the thread-local defined above.
    unsafe {
        std::arch::asm!(
            "mov {slot}, qword ptr [rip + fut_current_ring@GOTTPOFF]",
            "mov {slot}, qword ptr fs:[{slot}]",
            slot = out(reg) slot,
            options(nostack, preserves_flags, readonly),
        );
    }
    // SAFETY: the variable is always the address of a slot, initially of `NO_RING`, and no slot is ever unmapped.
    unsafe { &*slot }
}

#[cfg(target_arch = "x86_64")]
fn store(slot: NonNull<Slot>) {
    // SAFETY: writes the thread-local defined above.
    unsafe {
        std::arch::asm!(
            "mov {address}, qword ptr [rip + fut_current_ring@GOTTPOFF]",
            "mov qword ptr fs:[{address}], {slot}",
            address = out(reg) _,
            slot = in(reg) slot.as_ptr(),
            options(nostack, preserves_flags),
        );
    }
}

/// The control block at this distance from the stand-in; slots store such distances.
#[inline(always)]
fn control_at(distance: usize) -> NonNull<Control> {
    let address = (&raw const CURRENT_NONE).addr().wrapping_add(distance);
    // SAFETY: the address is not null. It is that of the stand-in, or of the control block for which `set_current`
    // computed the distance.
    unsafe { NonNull::new_unchecked(ptr::with_exposed_provenance_mut(address)) }
}

#[cfg(not(target_arch = "x86_64"))]
mod portable {
    //! A thread-local of the standard library, behind a call that is never inlined.
    use super::*;

    thread_local!(static CURRENT: std::cell::Cell<&'static Slot> = const { std::cell::Cell::new(&NO_RING) });

    #[inline(never)]
    pub(crate) fn current() -> NonNull<Control> {
        control_at(CURRENT.get().load(Ordering::Relaxed) as usize)
    }

    #[inline(never)]
    pub(super) fn current_slot() -> &'static Slot {
        CURRENT.get()
    }

    #[inline(never)]
    pub(super) fn store(slot: NonNull<Slot>) {
        // SAFETY: a slot is never unmapped.
        CURRENT.set(unsafe { slot.as_ref() });
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use portable::current;
#[cfg(not(target_arch = "x86_64"))]
use portable::{current_slot, store};

/// Sets the ring of the calling LWP to the one with this number and control block. `false` if there is no slot for it.
pub(crate) fn set_current(ring: u32, control: NonNull<Control>) -> bool {
    let Some(slot) = slot(ring) else { return false };
    let distance =
        control.as_ptr().expose_provenance().wrapping_sub((&raw const CURRENT_NONE).expose_provenance());
    // SAFETY: a slot is never unmapped, and the slot of a ring is used by its LWP alone.
    unsafe { slot.as_ref() }.store(distance as u64, Ordering::Relaxed);
    store(slot);
    true
}

/// Resets the ring of the calling LWP to none.
pub(crate) fn clear_current() {
    let slot = current_slot();
    // This comes first, so that a signal handler that runs in between finds no ring.
    store(NonNull::from(&NO_RING));
    if !ptr::eq(slot, &NO_RING) {
        slot.store(0, Ordering::Relaxed);
    }
}

/// Offset of a thread's CPU number (rseq) from its thread pointer. 0 if there is none, or if it was not looked up yet.
static CPU_NUMBER: AtomicIsize = AtomicIsize::new(0);

/// Looks up the offset of the CPU number (rseq, Linux 4.18; registered by glibc from 2.35 on). Called when the session
/// starts: `dlsym` takes a lock, which a probe must not do.
pub(crate) fn find_cpu_numbers() {
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    {
        /// Offset of `cpu_id` in `struct rseq` (include/uapi/linux/rseq.h).
        const CPU_ID: isize = 4;
        // SAFETY: looks up a symbol; its name is a C string.
        let offset = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()) };
        // SAFETY: as above.
        let size = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
        if offset.is_null() || size.is_null() {
            return;
        }
        // SAFETY: glibc defines it as `const unsigned int`; 0 when registration failed.
        if unsafe { size.cast::<u32>().read() } == 0 {
            return;
        }
        // SAFETY: glibc defines it as `const ptrdiff_t`.
        let offset = unsafe { offset.cast::<isize>().read() };
        CPU_NUMBER.store(offset + CPU_ID, Ordering::Relaxed);
    }
}

/// Address of the CPU number that the kernel keeps up to date for the calling thread; [`no_cpu`] where there is none.
pub(crate) fn cpu_number() -> NonNull<u32> {
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    {
        let offset = CPU_NUMBER.load(Ordering::Relaxed);
        if offset == 0 {
            return no_cpu();
        }
        let thread_pointer: *mut u8;
        // SAFETY: the first word of the thread control block is its own address (x86-64 psABI).
        unsafe {
            std::arch::asm!("mov {tp}, fs:[0]", tp = out(reg) thread_pointer,
                options(nostack, preserves_flags, readonly));
        }
        NonNull::new(thread_pointer.wrapping_offset(offset).cast()).unwrap_or_else(no_cpu)
    }
    #[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
    no_cpu()
}
