//! Reports which user thread has overflowed its stack.
//!
//! An access to a guard page raises SIGSEGV. The handler runs on the LWP's alternate stack (the standard library
//! installs one for each of its threads). If the address is in the guard of the mounted thread's stack, the handler
//! prints a message and ends the process. Every other SIGSEGV is passed to the previous handler.

use std::{
    fmt::Write,
    mem::MaybeUninit,
    ptr,
    sync::{
        Once,
        atomic::{AtomicPtr, Ordering},
    },
};

use sigmund_model::Printable;

use super::GUARD_LEN;
use crate::runtime::lwp;

/// The previous action of SIGSEGV.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Installs the handler, once.
pub(in crate::runtime) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Keeps this library loaded, since it contains the handler. If this fails, the program must not close the library.
        let _ = crate::session::stay_loaded();
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: reads the current action; `before` is valid for writing.
        unsafe { libc::sigaction(libc::SIGSEGV, ptr::null(), before.as_mut_ptr()) };
        // SAFETY: all zeros is a valid `sigaction`, and the call filled it in.
        let before = unsafe { before.assume_init() };
        BEFORE.store(Box::into_raw(Box::new(before)), Ordering::Release);
        let mut action = before;
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler has the signature that SA_SIGINFO requires, and is never unloaded.
        unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut()) };
    });
}

extern "C" fn on_fault(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t`.
    let info = unsafe { &*info };
    // SAFETY: `si_addr` is valid for SIGSEGV.
    let address = unsafe { info.si_addr() }.addr();
    if let Some(thread) = lwp::mounted()
        && (thread.stack_limit()..thread.stack_limit() + GUARD_LEN).contains(&address)
    {
        let mut text = Text::default();
        let _ = write!(text, "\nfut: user thread {}", thread.id());
        // SAFETY: the thread is mounted here, so its block is not freed.
        if let Some(name) = unsafe { thread.name() } {
            let _ = write!(text, " \"{}\"", Printable(name));
        }
        let _ = writeln!(
            text,
            " has overflowed its stack; RuntimeBuilder::stack_size and Builder::stack_size set a larger size"
        );
        die(text.as_str());
    }
    // Restores the previous handler, which gets the fault when the instruction is retried.
    let before = BEFORE.load(Ordering::Acquire);
    // SAFETY: `watch` stored a valid action before it installed this handler.
    unsafe { libc::sigaction(libc::SIGSEGV, before, ptr::null_mut()) };
}

/// Prints `message` on standard error and ends the process. Async-signal-safe.
pub(in crate::runtime) fn die(message: &str) -> ! {
    // SAFETY: the text is valid for its length.
    unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
    // SAFETY: has no preconditions.
    unsafe { libc::abort() }
}

/// A short text on the stack: a signal handler does not allocate.
struct Text {
    bytes: [u8; 256],
    len: usize,
}

impl Default for Text {
    fn default() -> Text {
        Text { bytes: [0; 256], len: 0 }
    }
}

impl Text {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len])
            .unwrap_or("fut: a user thread has overflowed its stack\n")
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.len() - self.len;
        let part = &text.as_bytes()[..text.len().min(room)];
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
        Ok(())
    }
}
