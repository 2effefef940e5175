//! Keeps the code of this library loaded until the process ends.
//!
//! Threads that record, their end (`lwp_end`), the handlers of `fork`, of `exit` and of signals, and the thread that answers
//! (`control`) all come back to it, and it is unknown when the last has. A program is never unloaded, and libfut says so
//! itself (`-z nodelete`). But a shared library of Rust that has this crate in it may be closed by whoever opened it.

use std::{
    ffi::{CStr, c_void},
    io, mem,
    sync::atomic::{AtomicBool, Ordering},
};

use super::modules;

/// Whether it was done, or need not be; also an address in this object.
static KEPT: AtomicBool = AtomicBool::new(false);

/// Sees to it. Not for signal handlers: it takes the linker's lock. A child of `fork` finds it done.
pub(crate) fn stay_loaded() -> io::Result<()> {
    if KEPT.load(Ordering::Relaxed) {
        return Ok(());
    }
    let here = (&raw const KEPT).cast::<c_void>();
    if !modules::is_of_program(here.addr() as u64) {
        pin(here)?;
    }
    KEPT.store(true, Ordering::Relaxed);
    Ok(())
}

/// Opens the object that is loaded at this address once more, for ever.
fn pin(address: *const c_void) -> io::Result<()> {
    // SAFETY: plain data, of which zeros are valid.
    let mut found: libc::Dl_info = unsafe { mem::zeroed() };
    // SAFETY: `found` is a valid place; any address may be asked for.
    if unsafe { libc::dladdr(address, &raw mut found) } == 0 || found.dli_fname.is_null() {
        return Err(io::Error::other("the dynamic linker does not know the object it is in"));
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the linker's own name of an object, which is loaded: no code runs.
    let handle = unsafe { libc::dlopen(found.dli_fname, flags) };
    if !handle.is_null() {
        return Ok(());
    }
    // SAFETY: gives the error of the last call on this thread, or null.
    let error = unsafe { libc::dlerror() };
    if error.is_null() {
        return Err(io::Error::other("the dynamic linker does not find the object it is in"));
    }
    // SAFETY: a C string, until the next call.
    let error = unsafe { CStr::from_ptr(error) };
    Err(io::Error::other(error.to_string_lossy().into_owned()))
}
