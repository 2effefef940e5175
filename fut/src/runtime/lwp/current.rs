//! Looks up, at every call, the LWP that runs the caller.
//!
//! A user thread may be on another LWP after each call that switches. A compiler may keep the address of a thread-local
//! across such a call, because it does not know that the call switches. So the variable is defined and read in
//! assembly, like the variable for the current ring.

use std::ptr;

use super::Lwp;

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .tbss.fut_current_lwp,\"awT\",@nobits",
    ".globl fut_current_lwp",
    ".type fut_current_lwp,@object",
    ".size fut_current_lwp,8",
    ".p2align 3",
    "fut_current_lwp:",
    ".zero 8",
    ".popsection",
);

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn load() -> *const Lwp {
    let lwp: *const Lwp;
    // SAFETY: reads the thread-local defined above. Not `pure`: two reads with a switch in between may differ.
    unsafe {
        std::arch::asm!(
            "mov {lwp}, qword ptr [rip + fut_current_lwp@GOTTPOFF]",
            "mov {lwp}, qword ptr fs:[{lwp}]",
            lwp = out(reg) lwp,
            options(nostack, preserves_flags, readonly),
        );
    }
    lwp
}

#[cfg(target_arch = "x86_64")]
fn store(lwp: *const Lwp) {
    // SAFETY: writes the thread-local defined above.
    unsafe {
        std::arch::asm!(
            "mov {address}, qword ptr [rip + fut_current_lwp@GOTTPOFF]",
            "mov qword ptr fs:[{address}], {lwp}",
            address = out(reg) _,
            lwp = in(reg) lwp,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod portable {
    //! A thread-local of the standard library, behind a call that is never inlined.
    use super::*;

    thread_local!(static CURRENT: std::cell::Cell<*const Lwp> = const { std::cell::Cell::new(ptr::null()) });

    #[inline(never)]
    pub(super) fn load() -> *const Lwp {
        CURRENT.get()
    }

    #[inline(never)]
    pub(super) fn store(lwp: *const Lwp) {
        CURRENT.set(lwp);
    }
}

#[cfg(not(target_arch = "x86_64"))]
use portable::{load, store};

/// Calls `act` with the LWP that runs the caller; `None` on a thread that is not an LWP of a runtime. `act` must not
/// switch: after a switch, the thread may run on another LWP, while `act` would still use the LWP that the thread has
/// left.
#[inline(always)]
pub(super) fn with<R>(act: impl FnOnce(&Lwp) -> R) -> Option<R> {
    let lwp = load();
    // SAFETY: the pointer is null, or `Entered::new` has set it. The LWP outlives the `Entered`, and only this thread
    // uses it.
    unsafe { lwp.as_ref() }.map(act)
}

/// As long as this value exists, the calling thread is this LWP.
pub(super) struct Entered<'a>(&'a Lwp);

impl<'a> Entered<'a> {
    pub(super) fn new(lwp: &'a Lwp) -> Entered<'a> {
        store(lwp);
        Entered(lwp)
    }
}

impl std::ops::Deref for Entered<'_> {
    type Target = Lwp;

    fn deref(&self) -> &Lwp {
        self.0
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        store(ptr::null());
    }
}
