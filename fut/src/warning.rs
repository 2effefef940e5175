//! Warnings on the standard error of a traced program, where no caller could receive an error: one line per
//! message, in which names and paths cannot steer a terminal. Nothing else in this crate and in libfut prints.

use std::fmt::Display;

use sigmund_model::Printable;

/// Prints one line. If standard error is closed the warning is lost.
#[doc(hidden)]
pub fn warn(text: impl Display) {
    let line = format!("fut: {}\n", Printable(text));
    // Not by the standard library: a child that `fork` made may have inherited the lock of its standard error from a thread
    // that the child does not have.
    // SAFETY: `line` is that long.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
