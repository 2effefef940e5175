//! Allocates the blocks of user threads, and lists all of them.

use std::{
    cell::RefCell,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{ThreadRef, UserThread};

/// Number of blocks allocated at once.
const SLAB: usize = 256;
/// Number of blocks that an LWP moves at once between its cache and the free blocks shared by all.
const BATCH: usize = 64;

static SLABS: Mutex<Slabs> = Mutex::new(Slabs { all: Vec::new(), free: Vec::new() });

struct Slabs {
    all: Vec<&'static [UserThread]>,
    free: Vec<ThreadRef>,
}

impl Slabs {
    fn take(&mut self) -> ThreadRef {
        loop {
            if let Some(block) = self.free.pop() {
                return block;
            }
            let slab: &'static [UserThread] =
                Vec::leak(std::iter::repeat_with(UserThread::unused).take(SLAB).collect());
            self.all.push(slab);
            // Reversed, so that the first block of the slab is taken first.
            self.free.extend(slab.iter().rev().map(ThreadRef));
        }
    }
}

fn slabs() -> MutexGuard<'static, Slabs> {
    // Each critical section leaves the slabs consistent, so poisoning is ignored.
    SLABS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a block, for a caller that is not an LWP.
pub(in crate::runtime) fn take() -> ThreadRef {
    slabs().take()
}

/// Frees a block, for such a caller.
pub(in crate::runtime) fn give_back(block: ThreadRef) {
    slabs().free.push(block);
}

/// All blocks, in use or free.
pub(in crate::runtime) fn all() -> Vec<ThreadRef> {
    slabs().all.iter().flat_map(|slab| slab.iter()).map(ThreadRef).collect()
}

/// Free blocks held by one LWP. The block freed last is taken first: its lines are in the CPU's cache.
#[derive(Default)]
pub(in crate::runtime) struct BlockCache(RefCell<Vec<ThreadRef>>);

impl BlockCache {
    pub(in crate::runtime) fn take(&self) -> ThreadRef {
        let mut free = self.0.borrow_mut();
        free.pop().unwrap_or_else(|| {
            let mut slabs = slabs();
            free.extend(std::iter::repeat_with(|| slabs.take()).take(BATCH));
            free.reverse();
            slabs.take()
        })
    }

    pub(in crate::runtime) fn give_back(&self, block: ThreadRef) {
        let mut free = self.0.borrow_mut();
        free.push(block);
        if free.len() > 4 * BATCH {
            // The least recently used blocks.
            slabs().free.extend(free.drain(..2 * BATCH));
        }
    }
}

impl Drop for BlockCache {
    fn drop(&mut self) {
        slabs().free.append(self.0.get_mut());
    }
}
