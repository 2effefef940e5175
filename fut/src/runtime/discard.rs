//! Drops unused results. They are values of the program, so their destructors may panic. No caller can handle such a
//! panic, and it must not unwind into an LWP.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Drops `value`. Catches a panic of its destructor, and one of the destructor of that panic's payload.
pub(super) fn discard<T>(value: T) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) else { return };
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // Dropping this payload could panic again, without end.
        mem::forget(another);
    }
}
