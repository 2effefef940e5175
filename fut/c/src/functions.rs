//! Functions that are entered and left: `PROF_IN()`, `PROF_OUT()`, and what `-finstrument-functions` calls.
//!
//! The records carry addresses; the merge finds names and source lines in the symbols of the binaries.

use std::ffi::c_void;

use fut::keys;

use crate::{
    own_events::{FUNC_ENTER, FUNC_EXIT, PROF_IN, PROF_OUT},
    probes::fire,
};

/// Records `PROF_IN`; the header has looked at the keys.
#[unsafe(no_mangle)]
pub extern "C" fn fut_prof_in(inside: *const c_void) {
    fire(PROF_IN, (inside,));
}

/// Records `PROF_OUT`.
#[unsafe(no_mangle)]
pub extern "C" fn fut_prof_out(inside: *const c_void) {
    fire(PROF_OUT, (inside,));
}

/// Called by functions built with `-finstrument-functions` when they are entered (GCC manual, 3.12), whether they are
/// recorded or not.
#[unsafe(no_mangle)]
pub extern "C" fn __cyg_profile_func_enter(function: *const c_void, call_site: *const c_void) {
    if keys::enabled(keys::FUNCTIONS) {
        fire(FUNC_ENTER, (function, call_site));
    }
}

/// Called by them when they are left.
#[unsafe(no_mangle)]
pub extern "C" fn __cyg_profile_func_exit(function: *const c_void, call_site: *const c_void) {
    if keys::enabled(keys::FUNCTIONS) {
        fire(FUNC_EXIT, (function, call_site));
    }
}
