//! Stacks of user threads. They are allocated from large mappings, each above a guard page, and reused.
//!
//! ```text
//! region   | guard | stack 0 … top | body | guard | stack 1 … top | body | …      top: where a stack begins
//! ```
//! A thread gets its stack at its first dispatch, and gives it back when it ends. The next thread of the LWP then
//! begins on cache lines that are hot. A stack takes memory only as far as it was ever used.
//!
//! The tops of stacks have different offsets in their pages. If the hot lines of 1000 threads were all in the same
//! cache sets, they would evict each other. (1000 threads that yield in turn: see `benches`.)

mod guard;
mod other_sizes;
pub(super) mod overflow;

use std::{
    cell::RefCell,
    io,
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
};

use corosensei::stack::StackPointer;
pub(super) use guard::GUARD_LEN;
use guard::install;
use other_sizes::OtherSizes;

/// Number of different offsets of the top within its page, and the bytes between them.
const COLOURS: usize = 16;
const COLOUR_STEP: usize = 128;
/// Bytes above the top of a stack, for the coroutine: a cache line, or two if a sanitizer keeps metadata there.
pub(super) const BODY_LEN: usize = 128;
/// Number of stacks that an LWP takes from the pool, or gives back to it, at once.
const BATCH: usize = 16;
/// Number of stacks in the first region; each further one has twice as many, up to `MAX_REGION`.
const FIRST_REGION: usize = 16;
const MAX_REGION: usize = 1024;

/// One stack, free or in use. It is a plain reference, because a stack is unmapped only when it is free and its runtime has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack {
    /// The highest address of the stack, where it begins. The [`BODY_LEN`] bytes above it are for the body.
    top: NonZeroUsize,
    /// The lowest address, where the guard page is.
    limit: NonZeroUsize,
}

impl Stack {
    /// The [`BODY_LEN`] bytes above the top of the stack, for the coroutine that runs on it.
    #[inline]
    pub(super) fn place_of_body(&self) -> *mut u8 {
        self.top.get() as *mut u8
    }

    /// Its size in bytes, without the guard page.
    pub(super) fn size(&self) -> usize {
        self.stride() - GUARD_LEN
    }

    pub(super) fn limit_address(&self) -> usize {
        self.limit.get()
    }

    /// Distance to the next stack of its pool. The colour leaves less than a page unused above the body.
    #[inline]
    fn stride(&self) -> usize {
        (self.top.get() + BODY_LEN - self.limit.get()).next_multiple_of(GUARD_LEN)
    }
}

// SAFETY: `top` is aligned to 16 bytes, `limit` to a page; at least `MIN_STACK` bytes are between them. The lowest page
// is a guard page: `map_region` creates no other stacks.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        self.top
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}

/// The stacks of a runtime.
pub(super) struct StackPool {
    /// Distance between stacks in bytes: a stack and its guard page.
    stride: usize,
    /// Number of stacks in its first region.
    first_region: usize,
    free: Mutex<Free>,
    others: OtherSizes,
}

#[derive(Default)]
struct Free {
    stacks: Vec<Stack>,
    next_region: usize,
    colour: usize,
}

impl StackPool {
    /// Creates a pool with a few stacks of `size` bytes.
    ///
    /// # Errors
    /// If there is no memory or address space for them.
    pub(super) fn new(size: usize) -> io::Result<StackPool> {
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, format!("stacks of {size} bytes"));
        let stride = size.checked_next_multiple_of(GUARD_LEN).and_then(|size| size.checked_add(GUARD_LEN));
        let stride = stride.ok_or_else(too_large)?;
        let (first_region, others) = (FIRST_REGION, OtherSizes::default());
        let pool = StackPool { stride, first_region, free: Mutex::default(), others };
        pool.map_region(&mut pool.free()).map_err(|error| {
            io::Error::new(error.kind(), format!("no memory for stacks of {size} bytes: {error}"))
        })?;
        Ok(pool)
    }

    /// The size of a stack in bytes.
    pub(super) fn usual_size(&self) -> usize {
        self.stride - GUARD_LEN
    }

    /// Unmaps the stacks that are free. Called when the runtime has ended.
    pub(super) fn unmap_free(&self) {
        let pools = self.others.pools();
        for pool in std::iter::once(self).chain(pools.iter().copied()) {
            let mut stacks = std::mem::take(&mut pool.free().stacks);
            stacks.sort_unstable_by_key(|stack| stack.limit);
            // Neighbours at once.
            for run in stacks.chunk_by(|one, next| one.limit.get() + pool.stride == next.limit.get()) {
                // SAFETY: whole stacks of this pool, with their guard pages. Each was free, and is in no list any more.
                unsafe { libc::munmap(run[0].limit.get() as *mut libc::c_void, run.len() * pool.stride) };
            }
        }
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        // Each critical section leaves the pool consistent, so poisoning is ignored.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves a few stacks, at least one, to `to`.
    fn take(&self, to: &mut Vec<Stack>) -> io::Result<()> {
        let mut free = self.free();
        if free.stacks.is_empty() {
            self.map_region(&mut free)?;
        }
        let from = free.stacks.len().saturating_sub(BATCH);
        to.extend(free.stacks.drain(from..));
        Ok(())
    }

    /// Maps more stacks, at least one, and adds them to `free`.
    fn map_region(&self, free: &mut Free) -> io::Result<()> {
        let mut count = free.next_region.clamp(self.first_region, MAX_REGION);
        let start = loop {
            match self.map(count) {
                // A smaller region may fit.
                Err(_) if count > 1 => count /= 2,
                mapped => break mapped?,
            }
        };
        let stacks_before = free.stacks.len();
        for index in 0..count {
            let low = start + index * self.stride;
            // SAFETY: one page of the mapping, which is still unused.
            let installed = unsafe { install(low) };
            if let Err(error) = installed {
                // SAFETY: the rest of the mapping, which is unused.
                unsafe { libc::munmap(low as *mut libc::c_void, (count - index) * self.stride) };
                if index == 0 {
                    return Err(error);
                }
                break;
            }
            let colour = free.colour % COLOURS * COLOUR_STEP;
            free.colour += 1;
            let top = low + self.stride - colour - BODY_LEN;
            let addresses = NonZeroUsize::new(top).zip(NonZeroUsize::new(low));
            let (top, limit) = addresses.ok_or_else(|| io::Error::other("a stack at address 0"))?;
            free.stacks.push(Stack { top, limit });
        }
        // Reversed, so that the stack that was created first is taken first.
        free.stacks[stacks_before..].reverse();
        free.next_region = count * 2;
        Ok(())
    }

    /// Maps address space for `count` stacks; returns its start.
    fn map(&self, count: usize) -> io::Result<usize> {
        let len = self.stride.checked_mul(count).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping at an address chosen by the kernel affects no existing memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // With huge pages, the use of one stack would allocate memory for about 30 neighbours. SAFETY: this is the
        // mapping made above; the advice changes no contents. If the kernel refuses, that is harmless.
        unsafe { libc::madvise(start, len, libc::MADV_NOHUGEPAGE) };
        Ok(start.addr())
    }
}

/// Free stacks held by one LWP; the one given back last is taken first.
pub(super) struct StackCache {
    pool: &'static StackPool,
    free: RefCell<Vec<Stack>>,
}

impl StackCache {
    pub(super) fn new(pool: &'static StackPool) -> StackCache {
        StackCache { pool, free: RefCell::default() }
    }

    /// Takes a stack. If there is no memory for one, the process ends: the thread that is to run on it was already
    /// created.
    #[inline]
    pub(super) fn take(&self) -> Stack {
        let mut free = self.free.borrow_mut();
        if let Some(stack) = free.pop() {
            return stack;
        }
        if let Err(error) = self.pool.take(&mut free) {
            overflow::die(&format!("fut: no stack for a user thread: {error}\n"));
        }
        free.pop().unwrap_or_else(|| overflow::die("fut: no stack for a user thread\n"))
    }

    /// Takes back a stack whose thread has ended.
    #[inline]
    pub(super) fn give_back(&self, stack: Stack) {
        if stack.stride() != self.pool.stride {
            return self.pool.give_back_other(stack);
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
    fn stacks_that_no_memory_can_hold_are_refused() {
        for size in [usize::MAX, usize::MAX - 8191, 1 << 60, 1 << 47] {
            let refused = StackPool::new(size).err().expect("more than there is");
            assert!(refused.to_string().contains(&format!("stacks of {size} bytes")), "{refused}");
        }
        // So large that the usual number of stacks does not fit.
        assert!(StackPool::new(1 << 44).is_ok());
    }
}
