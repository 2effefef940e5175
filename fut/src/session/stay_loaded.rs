//! Keeps the code of this library loaded until the process ends.
//!
//! Recording threads, their end (`lwp_end`), the handlers of `fork`, `exit` and signals, and the control thread
//! (`control`) all return to this code. It is unknown when the last of them returns. A program is never unloaded, and
//! libfut is linked with `-z nodelete`. But a Rust shared library that contains this crate may be closed with
//! `dlclose`.

use std::{
    ffi::{CStr, c_void},
    io, mem,
    sync::atomic::{AtomicBool, Ordering},
};

use super::modules;

/// Whether the object is pinned, or need not be. The address of this variable also identifies the object.
static KEPT: AtomicBool = AtomicBool::new(false);

/// Pins this object. It takes the linker's lock, so it must not be called in signal handlers. A forked child need not
/// repeat it.
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

/// Adds a reference to the object loaded at this address. The reference is never released.
fn pin(address: *const c_void) -> io::Result<()> {
    // SAFETY: plain data, of which zeros are valid.
    let mut found: libc::Dl_info = unsafe { mem::zeroed() };
    // SAFETY: `found` is valid for writing; any address is allowed.
    if unsafe { libc::dladdr(address, &raw mut found) } == 0 || found.dli_fname.is_null() {
        return Err(io::Error::other(
            "the dynamic linker does not list the object that contains this library",
        ));
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: this is the linker's name of a loaded object, so no initialiser runs.
    let handle = unsafe { libc::dlopen(found.dli_fname, flags) };
    if !handle.is_null() {
        return Ok(());
    }
    // SAFETY: returns the error of the last call on this thread, or null.
    let error = unsafe { libc::dlerror() };
    if error.is_null() {
        return Err(io::Error::other(
            "the dynamic linker does not find the object that contains this library",
        ));
    }
    // SAFETY: this is a C string, valid until the next call.
    let error = unsafe { CStr::from_ptr(error) };
    Err(io::Error::other(error.to_string_lossy().into_owned()))
}
