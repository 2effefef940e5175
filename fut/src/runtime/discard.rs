//! Dropping what nobody wants. It is a value of the program, so its destructor may panic; that has nobody to go to, and
//! must not unwind into an LWP.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Drops `value`. A panic of its destructor ends here, and so does one of the destructor of what that panicked with.
pub(super) fn discard<T>(value: T) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) else { return };
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // It might continue like that for ever.
        mem::forget(another);
    }
}
