//! Function entry and exit: `PROF_IN()`, `PROF_OUT()`, and the functions called by `-finstrument-functions`.
//!
//! The records contain addresses. The merge looks up names and source lines in the symbols of the binaries.

use std::ffi::c_void;

use fut::keys;

use crate::{
    own_events::{FUNC_ENTER, FUNC_EXIT, PROF_IN, PROF_OUT},
    probes::fire,
};

/// Records `PROF_IN`; the header has tested the keys.
#[unsafe(no_mangle)]
pub extern "C" fn fut_prof_in(inside: *const c_void) {
    fire(PROF_IN, (inside,));
}

/// Records `PROF_OUT`.
#[unsafe(no_mangle)]
pub extern "C" fn fut_prof_out(inside: *const c_void) {
    fire(PROF_OUT, (inside,));
}

/// Called by functions built with `-finstrument-functions` at their entry (GCC manual, 3.12), whether the key is on or
/// off.
#[unsafe(no_mangle)]
pub extern "C" fn __cyg_profile_func_enter(function: *const c_void, call_site: *const c_void) {
    if keys::enabled(keys::FUNCTIONS) {
        fire(FUNC_ENTER, (function, call_site));
    }
}

/// Called by these functions at their exit.
#[unsafe(no_mangle)]
pub extern "C" fn __cyg_profile_func_exit(function: *const c_void, call_site: *const c_void) {
    if keys::enabled(keys::FUNCTIONS) {
        fire(FUNC_EXIT, (function, call_site));
    }
}
