//! The shared memory that the kernel writes records of one CPU to (`struct perf_event_mmap_page` and the data after it,
//! include/uapi/linux/perf_event.h, v6.12).
//!
//! ```text
//!   0                              page size                       page size × (1 + 2^n)
//!   | … data_head … data_tail …    | records, circular              |
//! ```
//!
//! Rules:
//! 1. Only the kernel writes the data and `data_head`; only this ring writes `data_tail`.
//! 2. Bytes `data_tail..data_head` (modulo the size) are whole records. The kernel publishes them by storing
//!    `data_head`, and does not touch them again before `data_tail` has passed them.
//! 3. When there is no room, the kernel drops records, and later writes their number in a LOST record.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::event::SwitchEvent;

const PAGE: usize = 4096;
/// With the page before them, this is the most that an ordinary user may lock per CPU (`perf_event_mlock_kb` is 516).
const MOST_PAGES: usize = 128;
const FEWEST_PAGES: usize = 8;
/// Offsets in `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// The ring of one CPU.
#[derive(Debug)]
pub(super) struct Ring {
    /// The event that the ring belongs to; others are redirected to it.
    event: OwnedFd,
    map: MmapRaw,
    size: usize,
}

impl Ring {
    /// Maps the ring of an event, as large as is permitted.
    pub(super) fn map(event: &SwitchEvent) -> io::Result<Ring> {
        let mut pages = MOST_PAGES;
        loop {
            let mapped = MmapOptions::new().len(PAGE * (1 + pages)).map_raw(event.as_fd().as_raw_fd());
            match mapped {
                Ok(map) => {
                    let event = event.as_fd().try_clone_to_owned()?;
                    return Ok(Ring { event, map, size: PAGE * pages });
                }
                Err(error) if pages <= FEWEST_PAGES => return Err(error),
                Err(_) => pages /= 2,
            }
        }
    }

    pub(super) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Appends all available records to `out`. Returns the number of bytes.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) -> usize {
        // Acquire: pairs with the kernel's store of `data_head` (rule 2); the records before it are readable.
        let head = self.counter(DATA_HEAD).load(Ordering::Acquire);
        // Relaxed: only we write it (rule 1).
        let tail = self.counter(DATA_TAIL).load(Ordering::Relaxed);
        // The kernel never reports more than the ring holds; if it did, the oldest bytes would be gone.
        let len = (head.wrapping_sub(tail) as usize).min(self.size);
        let from = tail as usize % self.size;
        let first = len.min(self.size - from);
        self.copy(from, first, out);
        self.copy(0, len - first, out);
        // Release: pairs with the kernel's load of `data_tail` (rule 2); our reads are done before it writes there.
        self.counter(DATA_TAIL).store(head, Ordering::Release);
        len
    }

    fn copy(&self, from: usize, len: usize, out: &mut Vec<u8>) {
        debug_assert!(from + len <= self.size);
        let at = self.map.as_ptr().wrapping_add(PAGE + from);
        // SAFETY: `from + len <= size`, so the bytes are within the map, which lives as long as `self`. They are
        // before `data_head` and not before `data_tail`: the kernel does not write them now (rule 2).
        let bytes = unsafe { std::slice::from_raw_parts(at, len) };
        out.extend_from_slice(bytes);
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        let at = self.map.as_mut_ptr().wrapping_add(offset).cast();
        // SAFETY: the map is at least 9 pages, begins on a page border, and lives as long as `self`; `offset` is a
        // multiple of 8 within the first page. The kernel accesses the counter with single 64-bit accesses.
        unsafe { AtomicU64::from_ptr(at) }
    }
}
