//! Stacks of user threads: cut out of large mappings, each above a guard page, and used again.
//!
//! ```text
//! region   | guard | stack 0 … top | body | guard | stack 1 … top | body | …      top: where a stack begins
//! ```
//! A thread gets its stack when it is dispatched for the first time, and gives it back when it ends: the next thread
//! of the LWP begins on lines that are in the cache. A stack takes memory only as far as it was ever used.
//!
//! Tops are not at the same place in their pages: 1000 threads whose hot lines all fell into the same cache sets
//! would evict each other. (1000 threads that yield in turn: see `benches`.)

mod guard;
pub(super) mod overflow;

use std::{
    cell::RefCell,
    io,
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
};

use corosensei::stack::StackPointer;
pub(super) use guard::GUARD_LEN;
use guard::{Guard, install};

/// Different places for the top within its page, and the bytes between them.
const COLOURS: usize = 16;
const COLOUR_STEP: usize = 128;
/// Bytes above the beginning of a stack: a cache line, or two where a sanitizer keeps its notes there.
pub(super) const BODY_LEN: usize = 128;
/// Stacks an LWP takes from the pool, or gives back to it, at once.
const BATCH: usize = 16;
/// Stacks of the first region; each further one has twice as many, up to `MAX_REGION`.
const FIRST_REGION: usize = 16;
const MAX_REGION: usize = 1024;

/// One stack, free or in use. A name for it, which owns nothing: stacks are never unmapped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack {
    /// Where it begins: the highest address, below [`BODY_LEN`] bytes for what stands on it.
    top: NonZeroUsize,
    /// The lowest address, where the guard page is; plus [`WATCHED`] if it has none.
    limit: NonZeroUsize,
}

/// Marks a stack that no guard page protects.
const WATCHED: usize = 1;

impl Stack {
    /// [`BODY_LEN`] bytes above its beginning, for the coroutine that runs on it.
    #[inline]
    pub(super) fn place_of_body(&self) -> *mut u8 {
        self.top.get() as *mut u8
    }

    pub(super) fn limit_address(&self) -> usize {
        self.limit.get() & !WATCHED
    }

    /// Whether the thread that used it has certainly stayed inside. Only asked where no guard page protects it.
    fn is_intact(&self) -> bool {
        if self.limit.get() & WATCHED == 0 {
            return true;
        }
        let lowest = std::ptr::with_exposed_provenance::<[u64; 8]>(self.limit_address());
        // SAFETY: the lowest bytes of a stack without a guard page, aligned to a page, readable for the life of the pool.
        // Nobody runs on it now. They were zero in the beginning, and only an overflow comes so far.
        unsafe { lowest.read_volatile() == [0; 8] }
    }
}

// SAFETY: `top` is aligned to 16 bytes, `limit` to a page; at least `MIN_STACK` bytes are between them. The lowest page
// is a guard page, except where the kernel gives none: there `give_back` finds an overflow.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        self.top
    }

    fn limit(&self) -> StackPointer {
        // A page is longer than the mark: what is left is not 0.
        NonZeroUsize::new(self.limit_address()).unwrap_or(self.limit)
    }
}

/// The stacks of a runtime.
pub(super) struct StackPool {
    /// Bytes of one, guard page not counted.
    size: usize,
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    stacks: Vec<Stack>,
    next_region: usize,
    colour: usize,
}

impl StackPool {
    pub(super) fn new(size: usize) -> StackPool {
        StackPool { size: size.next_multiple_of(GUARD_LEN), free: Mutex::default() }
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        // Each step leaves the pool whole.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves a few stacks to `to`, at least one.
    fn take(&self, to: &mut Vec<Stack>) -> io::Result<()> {
        let mut free = self.free();
        if free.stacks.is_empty() {
            self.map_region(&mut free)?;
        }
        let from = free.stacks.len().saturating_sub(BATCH);
        to.extend(free.stacks.drain(from..));
        Ok(())
    }

    fn map_region(&self, free: &mut Free) -> io::Result<()> {
        let count = free.next_region.clamp(FIRST_REGION, MAX_REGION);
        let stride = self.size + GUARD_LEN;
        // SAFETY: a fresh mapping at a place that the kernel chooses touches no memory of ours.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                count * stride,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Huge pages would give each of 30 neighbours memory as soon as one is used.
        // SAFETY: our own mapping; the advice changes no contents. Refusing it is harmless.
        unsafe { libc::madvise(start, count * stride, libc::MADV_NOHUGEPAGE) };
        for index in 0..count {
            let low = start.addr() + index * stride;
            // SAFETY: one page of the mapping, which nobody uses yet.
            let guard = unsafe { install(low) };
            let colour = free.colour % COLOURS * COLOUR_STEP;
            free.colour += 1;
            let top = low + stride - colour - BODY_LEN;
            let limit = if guard == Guard::Watched { low + GUARD_LEN + WATCHED } else { low };
            let addresses = NonZeroUsize::new(top).zip(NonZeroUsize::new(limit));
            let (top, limit) = addresses.ok_or_else(|| io::Error::other("a stack at address 0"))?;
            free.stacks.push(Stack { top, limit });
        }
        // The first that was made is taken first.
        free.stacks.reverse();
        free.next_region = count * 2;
        Ok(())
    }
}

/// Free stacks in the hands of one LWP; the one given back last is taken first.
pub(super) struct StackCache {
    pool: &'static StackPool,
    free: RefCell<Vec<Stack>>,
}

impl StackCache {
    pub(super) fn new(pool: &'static StackPool) -> StackCache {
        StackCache { pool, free: RefCell::default() }
    }

    /// A stack. The process ends if there is no memory for one: the thread that shall run on it is promised already.
    #[inline]
    pub(super) fn take(&self) -> Stack {
        let mut free = self.free.borrow_mut();
        if let Some(stack) = free.pop() {
            return stack;
        }
        if let Err(error) = self.pool.take(&mut free) {
            overflow::die(&format!("fut: no memory for the stack of a user thread: {error}\n"));
        }
        free.pop().unwrap_or_else(|| overflow::die("fut: no stack for a user thread\n"))
    }

    /// Takes back a stack whose thread has ended.
    #[inline]
    pub(super) fn give_back(&self, stack: Stack) {
        if !stack.is_intact() {
            overflow::die("fut: a user thread has overflowed its stack, which no guard page protected\n");
        }
        let mut free = self.free.borrow_mut();
        free.push(stack);
        if free.len() > 4 * BATCH {
            self.pool.free().stacks.extend(free.drain(..2 * BATCH));
        }
    }
}

impl Drop for StackCache {
    fn drop(&mut self) {
        self.pool.free().stacks.append(self.free.get_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_without_a_guard_page_is_looked_at() {
        let pool: &'static StackPool = Box::leak(Box::new(StackPool::new(16 << 10)));
        let stack = StackCache::new(pool).take();
        // Its guard page must not be read; the page above stands for the end of a stack that has none.
        let above = stack.limit_address() + GUARD_LEN;
        let watched = Stack { limit: NonZeroUsize::new(above + WATCHED).unwrap(), ..stack };
        assert!(watched.is_intact());
        // SAFETY: inside the stack, which nobody uses.
        unsafe { std::ptr::with_exposed_provenance_mut::<u64>(above + 16).write_volatile(1) };
        assert!(!watched.is_intact());
        assert!(stack.is_intact(), "a guard page protects it");
    }
}
