//! Calls that block in the kernel: an LWP that is there for that takes them, so that the others do not wait.

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
    ready::{Bell, Home, OwnBell},
    thread::{Birth, ThreadRef},
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
    /// Homes of LWPs that have ended. Homes live for ever, so the next ones get these.
    free_homes: Vec<&'static Home>,
    shut_down: bool,
}

/// Runs `body`, which may block in the kernel, and returns what it returns. `body` is run by a user thread of its own, named
/// `fut::blocking`, on another LWP, made for that if none is free; the calling user thread waits for its end, and its
/// LWP runs others meanwhile. So `body` may borrow, and is `Send`. Outside of a runtime, and inside of such a call, just
/// runs it.
///
/// If `body` waits in the ways of user threads, the LWP waits with it.
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
/// With what `body` panics with, on the caller's own LWP.
pub fn blocking<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    let Some(caller) = try_here().filter(|_| !lwp::may_block()) else { return body() };
    let shared = caller.shared();
    let birth =
        |id| Birth { id, name: Some("fut::blocking".into()), priority: Priority::Normal, home: None, shared };
    let thread = lwp::begin(shared, birth, body);
    // From here on `body` may run, so nothing leaves before it has ended, a panic neither.
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

/// A call whose caller waits for it.
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
        // Each step leaves the state whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new thread wants an LWP that may block.
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
        let home = home.unwrap_or_else(|| Box::leak(Box::new(Home::new(Bell::Own(OwnBell::default())))));
        let lwp = thread::Builder::new().name("lwp/blocking".into());
        if lwp.spawn(move || serve(shared, home)).is_err() {
            let mut state = self.state();
            state.lwps -= 1;
            state.free_homes.push(home);
            if state.lwps == 0 {
                // Nobody will come: it blocks an ordinary LWP, which is better than waiting for ever.
                let waiting = std::mem::take(&mut state.waiting);
                drop(state);
                waiting.into_iter().for_each(|thread| shared.queue(thread));
            }
        }
    }

    /// The next thread that wants to block; `None` when there was none for long.
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
    // All that began here have ended, so it need not stay.
    let _ = lwp::serve(shared, Role::Blocking, home, |carry| {
        while let Some(mut thread) = shared.blocking.next(home) {
            // It has left without having ended: it waits in the ways of user threads, or has just done so.
            while !carry(thread) {
                thread = home.wait_for_thread();
            }
        }
    });
}
