//! Warnings on the standard error of a traced program, for cases where no caller could receive an error. Each message
//! is one line, in which control characters of names and paths are escaped. Nothing else in this crate and in libfut
//! prints.

use std::fmt::Display;

use sigmund_model::Printable;

/// Prints one line. If standard error is closed the warning is lost.
#[doc(hidden)]
pub fn warn(text: impl Display) {
    let line = format!("fut: {}\n", Printable(text));
    // This does not use the standard library: a forked child may have inherited the lock of standard error from a
    // thread that does not exist in the child. SAFETY: pointer and length are those of `line`.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
