//! Limits for reading a small input: 100 MB of memory and some seconds of CPU time. libFuzzer's own limits do not
//! serve: its memory limit needs a sanitizer's allocator, and its time limit is wall-clock time on a machine with other
//! load.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    backtrace::Backtrace,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// Memory in addition to what was allocated before.
const MEMORY: usize = 100 << 20;
/// CPU time of this thread. An input of 64 KiB may unpack to some megabytes, which takes a second in these builds.
const TIME: Duration = Duration::from_secs(5);

/// Runs `read` within the limits.
///
/// # Panics
/// When it took too long. Exceeding the memory limit aborts the process at that allocation.
pub(crate) fn bounded(read: impl FnOnce()) {
    LIMIT.store(LIVE.load(Relaxed) + MEMORY, Relaxed);
    let begin = processor_time();
    read();
    let took = processor_time() - begin;
    LIMIT.store(usize::MAX, Relaxed);
    assert!(took < TIME, "{took:?} for one input");
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The system's allocator, with a limit.
struct Limited;

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// Allocated bytes. Relaxed, like the limit: the readers have one thread, and no other data depends on these.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

fn take(size: usize) {
    let live = LIVE.fetch_add(size, Relaxed) + size;
    if live > LIMIT.load(Relaxed) {
        // The following code allocates as well.
        LIMIT.store(usize::MAX, Relaxed);
        eprintln!("{size} more bytes would exceed the limit of {MEMORY}:\n{}", Backtrace::force_capture());
        // An allocator must not unwind.
        std::process::abort();
    }
}

fn give_back(size: usize) {
    LIVE.fetch_sub(size, Relaxed);
}

// SAFETY: every call goes to the system's allocator unchanged, or the process ends.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller keeps `alloc`'s contract, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size);
        give_back(layout.size());
        // SAFETY: as above; `at` came from the system's allocator.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}
