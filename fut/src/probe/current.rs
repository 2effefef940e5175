//! The ring of the current LWP, found anew at every probe.
//!
//! A user thread may go on on another LWP after any switch, and a compiler may keep the address of a thread-local
//! across a call that it does not know to switch. So the variable is defined and read in assembly, which no
//! compiler looks into. The initial-exec access works in executables and in shared objects that are loaded at
//! start; the linker turns it into the local-exec one where it can.
//!
//! A thread that is not attached finds [`CURRENT_NONE`]: a control block whose cursor is always behind the end, so
//! that its probes take the slow path, which attaches it. No probe asks "is there a ring?".

use std::{
    ptr::NonNull,
    sync::atomic::{AtomicIsize, AtomicU32, AtomicU64, Ordering},
};

use crate::shm::ring::{Control, PACKET_LEN};

/// What a thread without a ring has in place of one.
pub(crate) static CURRENT_NONE: Control = Control::stand_in();

static NO_CPU: AtomicU32 = AtomicU32::new(u32::MAX);

impl Control {
    const fn stand_in() -> Control {
        let mut control = Control::zero();
        control.cursor = AtomicU64::new(PACKET_LEN as u64 + 8);
        control
    }

    /// Undoes what probes without a ring have added to the stand-in's cursor, long before it could wrap.
    pub(crate) fn stay_full(&self) {
        self.cursor.store(PACKET_LEN as u64 + 8, Ordering::Relaxed);
    }
}

/// Where a CPU number is found when the kernel shows none: it reads as "unknown".
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
    none = sym CURRENT_NONE,
);

/// The control block of the current LWP's ring, or [`CURRENT_NONE`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn current() -> NonNull<Control> {
    let control: *mut Control;
    // SAFETY: reads the thread-local defined above. Not `pure`: two reads with a switch in between may differ.
    unsafe {
        std::arch::asm!(
            "mov {control}, qword ptr [rip + fut_current_ring@GOTTPOFF]",
            "mov {control}, qword ptr fs:[{control}]",
            control = out(reg) control,
            options(nostack, preserves_flags, readonly),
        );
    }
    // SAFETY: the variable begins as the address of `CURRENT_NONE` and is only ever set from a `NonNull`.
    unsafe { NonNull::new_unchecked(control) }
}

#[cfg(target_arch = "x86_64")]
fn store(control: NonNull<Control>) {
    // SAFETY: writes the thread-local defined above.
    unsafe {
        std::arch::asm!(
            "mov {address}, qword ptr [rip + fut_current_ring@GOTTPOFF]",
            "mov qword ptr fs:[{address}], {control}",
            address = out(reg) _,
            control = in(reg) control.as_ptr(),
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod portable {
    //! A thread-local of the standard library, behind a call that is never inlined.
    use super::*;

    thread_local!(static CURRENT: std::cell::Cell<NonNull<Control>> =
        const { std::cell::Cell::new(NonNull::from_ref(&CURRENT_NONE)) });

    #[inline(never)]
    pub(crate) fn current() -> NonNull<Control> {
        CURRENT.get()
    }

    #[inline(never)]
    pub(super) fn store(control: NonNull<Control>) {
        CURRENT.set(control);
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use portable::current;
#[cfg(not(target_arch = "x86_64"))]
use portable::store;

/// Gives the calling thread a ring.
pub(crate) fn set_current(control: NonNull<Control>) {
    store(control);
}

/// Takes it away again.
pub(crate) fn clear_current() {
    store(NonNull::from(&CURRENT_NONE));
}

/// Where the kernel keeps a thread's CPU number, relative to its thread pointer; 0 where it does not, or nobody has
/// looked yet.
static CPU_NUMBER: AtomicIsize = AtomicIsize::new(0);

/// Finds out where CPU numbers are (rseq, Linux 4.18; registered by glibc from 2.35 on). When the session starts:
/// looking a name up takes a lock, which a probe must not.
pub(crate) fn find_cpu_numbers() {
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    {
        /// Offset of `cpu_id` in `struct rseq` (include/uapi/linux/rseq.h).
        const CPU_ID: isize = 4;
        // SAFETY: looks a name up; the name is a C string.
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
