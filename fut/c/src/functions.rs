//! Functions that are entered and left: `PROF_IN()`, `PROF_OUT()`, and what `-finstrument-functions` calls.
//!
//! These functions are called whether they are switched on or not, so they look at the key mask first themselves.
//! The records carry addresses; the merge finds names and source lines in the symbols of the binaries.

use std::ffi::c_void;

use fut::keys;

fut::events! {
    /// `PROF_IN()` in a C program: an address in the function.
    fn PROF_IN(function: *const c_void) in keys::C_PROGRAM => "into {function}";
    /// `PROF_OUT()`.
    fn PROF_OUT(function: *const c_void) in keys::C_PROGRAM => "out of {function}";
    /// A function built with `-finstrument-functions` is entered: its address, and where it was called.
    fn FUNC_ENTER(function: *const c_void, call_site: *const c_void) in keys::FUNCTIONS
        => "into {function}, called at {call_site}";
    /// It is left.
    fn FUNC_EXIT(function: *const c_void, call_site: *const c_void) in keys::FUNCTIONS
        => "out of {function}, called at {call_site}";
}

/// Records `PROF_IN`.
#[unsafe(no_mangle)]
pub extern "C" fn fut_prof_in(inside: *const c_void) {
    PROF_IN(inside);
}

/// Records `PROF_OUT`.
#[unsafe(no_mangle)]
pub extern "C" fn fut_prof_out(inside: *const c_void) {
    PROF_OUT(inside);
}

/// Called by functions built with `-finstrument-functions` when they are entered (GCC manual, 3.12).
#[unsafe(no_mangle)]
pub extern "C" fn __cyg_profile_func_enter(function: *const c_void, call_site: *const c_void) {
    if keys::enabled(keys::FUNCTIONS) {
        FUNC_ENTER(function, call_site);
    }
}

/// Called by them when they are left.
#[unsafe(no_mangle)]
pub extern "C" fn __cyg_profile_func_exit(function: *const c_void, call_site: *const c_void) {
    if keys::enabled(keys::FUNCTIONS) {
        FUNC_EXIT(function, call_site);
    }
}
