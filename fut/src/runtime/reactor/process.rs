//! Which process this is, without a system call. Each poll asks for it (`poll_set.rs`), and getpid(2) takes 150 ns on a
//! guest (AMD EPYC, Linux 6.18); an echo server makes 0.2 polls per request.
//!
//! A page that a child process gets wiped (MADV_WIPEONFORK, Linux 4.14) holds a number that the parent has drawn. A
//! child finds 0 there and draws the next number. So it differs from its parent, even if it was made by `clone` without
//! handlers.

use std::{
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Identifies a process among those that descend from each other by `fork`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process(u64);

/// The last number that was drawn. A child gets a copy, so it never draws the number of an ancestor.
static DRAWN: AtomicU64 = AtomicU64::new(0);

impl Process {
    /// The calling process.
    #[inline]
    pub(super) fn this() -> Process {
        static PAGE: OnceLock<Option<&'static AtomicU64>> = OnceLock::new();
        match PAGE.get_or_init(wiped_on_fork) {
            Some(number) => match number.load(Ordering::Relaxed) {
                0 => draw(number),
                number => Process(number),
            },
            None => Process(u64::from(std::process::id())),
        }
    }
}

#[cold]
fn draw(number: &AtomicU64) -> Process {
    let drawn = DRAWN.fetch_add(1, Ordering::Relaxed) + 1;
    // Another thread may draw at the same time: the first number that is stored counts.
    match number.compare_exchange(0, drawn, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Process(drawn),
        Err(first) => Process(first),
    }
}

/// A number that is 0 at first, and again in each child of `fork`. `None` if the kernel does not support this.
fn wiped_on_fork() -> Option<&'static AtomicU64> {
    const LEN: usize = 4096;
    // SAFETY: a new mapping at an address chosen by the kernel affects no existing memory.
    let page = unsafe {
        libc::mmap(
            ptr::null_mut(),
            LEN,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page mapped above.
    if unsafe { libc::madvise(page, LEN, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: as above; nothing uses the page yet.
        unsafe { libc::munmap(page, LEN) };
        return None;
    }
    // SAFETY: the page is aligned, zeroed, and never unmapped.
    Some(unsafe { &*page.cast::<AtomicU64>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_another_process_however_it_was_made() {
        let here = Process::this();
        assert_eq!(Process::this(), here);
        assert_eq!(std::thread::spawn(Process::this).join().unwrap(), here);
        // SAFETY: as `_Fork`, without handlers; the child makes no call but `this` and `_exit`.
        let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
        if child == 0 {
            let differs = Process::this() != here && Process::this() == Process::this();
            // SAFETY: ends the child without destructors.
            unsafe { libc::_exit(i32::from(!differs)) };
        }
        let mut status = -1;
        // SAFETY: `status` is valid during the call.
        assert_eq!(i64::from(unsafe { libc::waitpid(child as i32, &raw mut status, 0) }), child);
        assert_eq!(status, 0);
        assert_eq!(Process::this(), here);
    }
}
