//! Calls that block in the kernel: they run on LWPs for blocking calls, so that other user threads do not wait.

use std::{
    collections::VecDeque,
    panic::resume_unwind,
    sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    thread,
    time::Duration,
};

use super::{
    JoinHandle,
    lwp::{self, Role},
    park::try_here,
    pool::{Priority, Shared},
    ready::{Home, SleepEvent, Wakeup},
    thread::{Birth, ThreadRef},
};

/// Maximum number of such LWPs; further calls wait for one of them.
const MAX_LWPS: usize = 512;
/// How long an idle LWP for blocking calls waits before it ends.
const LINGER: Duration = Duration::from_secs(5);

/// The LWPs for blocking calls.
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
    /// Homes of LWPs that have ended. Homes are never freed, so they are reused.
    free_homes: Vec<&'static Home>,
    shut_down: bool,
}

/// Runs `body`, which may block in the kernel, and returns its result. A new user thread named `fut::blocking` runs
/// `body` on another LWP, which is created if none is free. The calling user thread waits until `body` has returned;
/// meanwhile its LWP runs other user threads. Because the caller waits, `body` may borrow; because it runs on another
/// LWP, it must be `Send`. Outside a runtime, and inside such a call, `body` is run directly.
///
/// If `body` blocks on a primitive of this crate, the LWP that runs it waits, too. At most 512 such calls of a runtime run at a time; others wait
/// until one of these has ended. The stack of `body` is as large as the caller's, or as the runtime's usual one if that is larger.
///
/// ```compile_fail,E0277
/// # let runtime = fut::Runtime::builder().build()?;
/// runtime.run(|| {
///     let belongs_here = std::rc::Rc::new(());
///     fut::blocking(|| drop(belongs_here.clone()));
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// With the panic of `body`, on the caller's own LWP.
pub fn blocking<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    let Some(caller) = try_here().filter(|_| !lwp::may_block()) else { return body() };
    let shared = caller.shared();
    // Without memory for a stack as large as the caller's, it gets one of the usual size.
    let large = caller.stack_size().filter(|size| *size > shared.stacks.usual_size());
    let stack = large.and_then(|size| shared.stacks.reserve(Some(size)).ok());
    let birth = |id| Birth {
        id,
        name: Some("fut::blocking".into()),
        priority: Priority::Normal,
        home: None,
        shared,
        stack,
        at_end: None,
        in_blocking: true,
    };
    let thread = lwp::begin(shared, birth, body);
    // From here on `body` may run. So this function must neither return nor unwind before `body` has ended.
    let mut call = Call(Some(JoinHandle::new(thread)));
    shared.in_blocking.fetch_add(1, Ordering::Relaxed);
    shared.blocking.push(shared, thread);
    let result = call.join();
    shared.in_blocking.fetch_sub(1, Ordering::Relaxed);
    match result {
        Some(Ok(value)) => value,
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("it is joined once"),
    }
}

/// A blocking call for which its caller waits.
struct Call<R>(Option<JoinHandle<R>>);

impl<R> Call<R> {
    fn join(&mut self) -> Option<thread::Result<R>> {
        self.0.take().map(JoinHandle::join)
    }
}

impl<R> Drop for Call<R> {
    fn drop(&mut self) {
        drop(self.join());
    }
}

impl BlockingPool {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each critical section leaves the state consistent, so poisoning is ignored.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a new thread that needs an LWP for blocking calls.
    fn push(&self, shared: &'static Shared, thread: ThreadRef) {
        let mut state = self.state();
        state.waiting.push_back(thread);
        if state.idle >= state.waiting.len() || state.lwps == MAX_LWPS {
            drop(state);
            return self.not_empty.notify_one();
        }
        state.lwps += 1;
        let home = state.free_homes.pop();
        drop(state);
        let home = home.unwrap_or_else(|| Box::leak(Box::new(Home::new(Wakeup::Own(SleepEvent::default())))));
        let lwp = thread::Builder::new().name("lwp/blocking".into());
        if lwp.spawn(move || serve(shared, home)).is_err() {
            let mut state = self.state();
            state.lwps -= 1;
            state.free_homes.push(home);
            if state.lwps == 0 {
                // No LWP could be created. So the threads run on ordinary LWPs and block them, which is better than
                // waiting for ever.
                let waiting = std::mem::take(&mut state.waiting);
                drop(state);
                for thread in waiting {
                    thread.is_in_no_blocking_call();
                    shared.queue(thread);
                }
            }
        }
    }

    /// The next thread to run; `None` if there was none within [`LINGER`].
    fn next(&self, home: &'static Home) -> Option<ThreadRef> {
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
        state.free_homes.push(home);
        None
    }

    pub(super) fn shut_down(&self) {
        self.state().shut_down = true;
        self.not_empty.notify_all();
    }
}

fn serve(shared: &'static Shared, home: &'static Home) {
    // All threads that began on this LWP have ended, so it may end, too.
    let _ = lwp::serve(shared, Role::Blocking, home, |carry| {
        while let Some(mut thread) = shared.blocking.next(home) {
            // The thread left before it ended: it is or was blocked on a primitive of this crate.
            while !carry(thread) {
                thread = home.wait_for_thread();
            }
        }
    });
}
