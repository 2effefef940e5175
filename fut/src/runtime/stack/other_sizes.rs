//! Stacks of single threads, for which a size was requested, or which are taken before the first dispatch of the
//! thread.
//!
//! Sizes are powers of two, so that a few pools suffice. Each pool reuses its stacks.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use super::{Free, GUARD_LEN, Stack, StackPool};

/// Smallest size, the same as for [`RuntimeBuilder::stack_size`](crate::RuntimeBuilder::stack_size).
const SMALLEST: usize = 16 << 10;

/// The pools of sizes other than the usual one. Never freed.
#[derive(Default)]
pub(super) struct OtherSizes(Mutex<Vec<&'static StackPool>>);

impl OtherSizes {
    /// The pools so far.
    pub(super) fn pools(&self) -> Vec<&'static StackPool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl StackPool {
    /// Takes a stack of at least `size` bytes, or of the usual size if `size` is `None`.
    ///
    /// # Errors
    /// If there is no memory, address space or guard for it.
    pub(in crate::runtime) fn reserve(&self, size: Option<usize>) -> io::Result<Stack> {
        let Some(size) = size else { return self.take_one() };
        let no_memory = |error: io::Error| {
            io::Error::new(error.kind(), format!("no memory for a stack of {size} bytes: {error}"))
        };
        let rounded = size.max(SMALLEST).checked_next_power_of_two();
        let stride = rounded.and_then(|size| size.checked_add(GUARD_LEN));
        let stride = stride.ok_or_else(|| no_memory(io::ErrorKind::OutOfMemory.into()))?;
        if stride == self.stride {
            return self.take_one().map_err(no_memory);
        }
        self.pool_of(stride).take_one().map_err(no_memory)
    }

    fn pool_of(&self, stride: usize) -> &'static StackPool {
        // No code in a critical section can panic.
        let mut pools = self.others.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.iter().find(|pool| pool.stride == stride) {
            return pool;
        }
        let (free, others) = (Mutex::new(Free::default()), OtherSizes::default());
        let pool: &'static StackPool =
            Box::leak(Box::new(StackPool { stride, first_region: 1, free, others }));
        pools.push(pool);
        pool
    }

    fn take_one(&self) -> io::Result<Stack> {
        let mut free = self.free();
        if free.stacks.is_empty() {
            self.map_region(&mut free)?;
        }
        free.stacks.pop().ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Takes back a stack that is not of the usual size.
    #[cold]
    pub(super) fn give_back_other(&self, stack: Stack) {
        self.pool_of(stack.stride()).free().stacks.push(stack);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_of_another_size_is_used_again() {
        let pool = StackPool::new(64 << 10).unwrap();
        let large = pool.reserve(Some(3 << 20)).unwrap();
        let room = large.top.get() - large.limit_address();
        assert!((3 << 20..5 << 20).contains(&room), "{room} bytes");
        pool.give_back_other(large);
        assert_eq!(pool.reserve(Some(4 << 20)).unwrap().limit_address(), large.limit_address());
        let usual = pool.reserve(Some(50 << 10)).unwrap();
        assert_eq!(usual.stride(), pool.stride);
        // Tops have different offsets.
        for _ in 0..40 {
            assert_eq!(pool.reserve(None).unwrap().stride(), pool.stride);
        }
    }

    #[test]
    fn a_stack_that_no_memory_can_hold_is_refused() {
        let pool = StackPool::new(64 << 10).unwrap();
        for size in [usize::MAX, 1 << 63, 1 << 62, 1 << 48] {
            let error = pool.reserve(Some(size)).unwrap_err();
            assert!(error.to_string().contains(&format!("a stack of {size} bytes")), "{error}");
        }
    }
}
