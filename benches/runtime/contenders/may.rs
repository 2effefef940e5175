//! may: user threads with stacks.

use std::time::Duration;

use may::coroutine;

use super::threads::{UserThreads, second_time};
use crate::work::Work;

/// The largest height that its stacks allow: each is two separate mappings, and vm.max_map_count is 65530.
pub(super) const MAX_HEIGHT: u32 = 13;

/// Stacks kept for later coroutines: more than a tree of `MAX_HEIGHT` needs.
const POOLED_STACKS: usize = 20_000;

/// The size of a stack, in words of 8 bytes.
const STACK_WORDS: usize = 0x1000;

struct May;

impl UserThreads for May {
    type Handle<T> = coroutine::JoinHandle<T>;

    #[inline]
    fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> Self::Handle<T> {
        // SAFETY: the bodies of the work use no thread-locals, and very little stack.
        unsafe { coroutine::spawn(body) }
    }

    #[inline]
    fn join<T>(handle: Self::Handle<T>) -> T {
        handle.join().expect("a coroutine panicked")
    }

    #[inline]
    fn yield_now() {
        coroutine::yield_now();
    }
}

pub(super) fn run(work: Work, cpus: usize) -> Duration {
    may::config().set_workers(cpus).set_stack_size(STACK_WORDS).set_pool_capacity(POOLED_STACKS);
    May::join(May::spawn(move || second_time::<May>(work, || {})))
}
