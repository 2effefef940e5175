//! Calls that block in the kernel: the user thread takes them on an LWP that is there for that, so that the others
//! do not wait.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    thread,
    time::Duration,
};

use super::{
    lwp::{self, Role},
    park::try_here,
    pool::Shared,
    thread::{Leave, ThreadRef},
};

/// LWPs of this kind at one time; more calls wait for one of them.
const MAX_LWPS: usize = 512;
/// How long such an LWP waits for the next call before it ends.
const LINGER: Duration = Duration::from_secs(5);

/// The LWPs that may block.
#[derive(Default)]
pub(super) struct BlockingPool {
    state: Mutex<State>,
    not_empty: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<ThreadRef>,
    lwps: usize,
    idle: usize,
    shut_down: bool,
}

/// Runs `body`, which may block in the kernel, and returns what it returns. The calling user thread goes on with it on
/// another LWP, made for that if none is free, so that its own LWP can run other threads. Outside of a runtime, just
/// runs it.
///
/// If `body` blocks or yields in the ways of user threads, it comes back to the ordinary LWPs early.
pub fn blocking<R>(body: impl FnOnce() -> R) -> R {
    let Some(thread) = try_here() else { return body() };
    /// Comes back also when `body` panics.
    struct ComeBack(ThreadRef);
    impl Drop for ComeBack {
        fn drop(&mut self) {
            self.0.shared().in_blocking.fetch_sub(1, Ordering::Relaxed);
            self.0.leave(Leave::FromBlocking);
        }
    }
    thread.shared().in_blocking.fetch_add(1, Ordering::Relaxed);
    thread.leave(Leave::ToBlocking);
    let _come_back = ComeBack(thread);
    body()
}

impl BlockingPool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread that is off its LWP wants one that may block.
    pub(super) fn push(&self, shared: &'static Shared, thread: ThreadRef) {
        let mut state = self.state();
        state.waiting.push_back(thread);
        if state.idle >= state.waiting.len() || state.lwps == MAX_LWPS {
            drop(state);
            return self.not_empty.notify_one();
        }
        state.lwps += 1;
        drop(state);
        let lwp = thread::Builder::new().name("lwp/blocking".into());
        if lwp.spawn(move || serve(shared)).is_err() {
            let mut state = self.state();
            state.lwps -= 1;
            if state.lwps == 0 {
                // Nobody will come: it blocks an ordinary LWP, which is better than waiting for ever.
                let waiting = std::mem::take(&mut state.waiting);
                drop(state);
                waiting.into_iter().for_each(|thread| shared.queue(thread));
            }
        }
    }

    /// The next thread that wants to block; `None` when there was none for long.
    fn next(&self) -> Option<ThreadRef> {
        let mut state = self.state();
        loop {
            if let Some(thread) = state.waiting.pop_front() {
                return Some(thread);
            }
            if state.shut_down {
                break;
            }
            state.idle += 1;
            let (woken, timeout) =
                self.not_empty.wait_timeout(state, LINGER).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.waiting.is_empty() {
                break;
            }
        }
        state.lwps -= 1;
        None
    }

    pub(super) fn shut_down(&self) {
        self.state().shut_down = true;
        self.not_empty.notify_all();
    }
}

fn serve(shared: &'static Shared) {
    lwp::serve(shared, Role::Blocking, |carry| {
        while let Some(thread) = shared.blocking.next() {
            carry(thread);
        }
    });
}
