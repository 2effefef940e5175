//! Limits the memory for reading a small file, whatever its contents. Tests that include this use this allocator.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// Beyond what was allocated before.
const MEMORY: isize = 100 << 20;

/// Counts what a thread has allocated.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// Runs `read`, which may allocate 100 MB at once, on this thread.
pub(crate) fn bounded<T>(read: impl FnOnce() -> T) -> T {
    let before = LIVE.get();
    MOST.set(before);
    let read = read();
    assert!(MOST.get() - before < MEMORY, "{} bytes of memory", MOST.get() - before);
    read
}

fn count(bytes: isize) {
    // A thread that ends has no counters any more.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(live.get())));
    });
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps `alloc`'s contract, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above; `at` came from the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }
}
