//! Where the blocks of user threads come from, and how all of them are found.

use std::{
    cell::RefCell,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{ThreadRef, UserThread};

/// Blocks that are made at once.
const SLAB: usize = 256;
/// Blocks that an LWP takes from all, or gives back to them, at once.
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
            // The first of the slab is taken first.
            self.free.extend(slab.iter().rev().map(ThreadRef));
        }
    }
}

fn slabs() -> MutexGuard<'static, Slabs> {
    // Each step leaves the slabs whole.
    SLABS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A block, for a caller that is no LWP.
pub(in crate::runtime) fn take() -> ThreadRef {
    slabs().take()
}

/// Gives a block back, by such a caller.
pub(in crate::runtime) fn give_back(block: ThreadRef) {
    slabs().free.push(block);
}

/// All blocks there are, in use or not.
pub(in crate::runtime) fn all() -> Vec<ThreadRef> {
    slabs().all.iter().flat_map(|slab| slab.iter()).map(ThreadRef).collect()
}

/// Free blocks in the hands of one LWP. The one given back last is taken first: its lines are in the cache.
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
            // The ones that were not used for longest.
            slabs().free.extend(free.drain(..2 * BATCH));
        }
    }
}

impl Drop for BlockCache {
    fn drop(&mut self) {
        slabs().free.append(self.0.get_mut());
    }
}
