//! User threads that borrow from their creator, like those of `std::thread::scope`.
//!
//! Why a borrow cannot dangle:
//!
//! 1. A scoped thread's borrows are only in its closure, which is consumed when its body returns, and in its result,
//!    which is kept in a [`Packet`]. The user thread itself returns nothing.
//! 2. The packet is shared by the thread and its handle. The thread drops its share, and then counts itself as ended.
//!    If that was the last share, the result is dropped by then. If not, the owner of the handle drops the result. The
//!    owner is the body of the scope, or a thread that is not counted as ended yet, since nothing else can hold a
//!    borrow for `'scope`. A handle that is forgotten keeps the result for ever, and nothing reads it.
//! 3. [`scope`] neither returns nor unwinds before all threads are counted as ended. A runtime that is dropped leaks
//!    the stacks of threads that have not ended, including the stack of the thread in `scope`.
//!
//! The threads of a scope are a team, forked and joined by the thread in `scope`; this is recorded in traces.

use std::{
    cell::UnsafeCell,
    fmt, io,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

use sigmund_model::Thread;

use super::{
    Builder, JoinHandle,
    discard::discard,
    lwp,
    park::{here, park},
    stack::Stack,
    thread::ThreadRef,
    waits::{WaitKind, WaitsFor},
};
use crate::scheduler;

/// The number of the next team.
static NEXT_TEAM: AtomicU64 = AtomicU64::new(1);

/// A scope: the user threads created in it end before [`scope`] returns.
pub struct Scope<'scope, 'env: 'scope> {
    count: Arc<Count>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The handle for the result of a scoped user thread. Dropping it detaches the thread, which still ends before
/// [`scope`] returns. The same holds if the handle is forgotten ([`std::mem::forget`]); the result is then leaked.
pub struct ScopedJoinHandle<'scope, T> {
    thread: JoinHandle<()>,
    packet: Arc<Packet<'scope, T>>,
    count: Arc<Count>,
}

/// Counts the threads of a scope.
struct Count {
    /// The number of the team.
    team: u64,
    running: AtomicUsize,
    /// Number of threads that have panicked and were not joined.
    unjoined_panics: AtomicUsize,
    /// The thread that waits for them.
    owner: ThreadRef,
}

/// Holds the result of a thread.
struct Packet<'scope, T> {
    result: UnsafeCell<Option<thread::Result<T>>>,
    _scope: PhantomData<&'scope ()>,
}

// SAFETY: the thread writes the result, and then drops its share of the packet; the joining thread reads it after that.
// So the result is moved from one thread to the other, which `T: Send` allows.
unsafe impl<T: Send> Sync for Packet<'_, T> {}

/// Creates a scope for user threads that borrow. `body` spawns them; all of them have ended when this function returns.
///
/// ```
/// let runtime = fut::Runtime::builder().lwps(2).build()?;
/// runtime.run(|| {
///     let mut numbers = vec![1, 2, 3];
///     let mut sum = 0;
///     fut::scope(|s| {
///         s.spawn(|| sum = numbers.iter().sum());
///         s.spawn(|| println!("{} numbers", numbers.len()));
///     });
///     numbers.push(sum);
///     assert_eq!(numbers, [1, 2, 3, 6]);
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Neither the scope nor a handle of one of its threads can leave it:
///
/// ```compile_fail
/// let handle = fut::scope(|s| s.spawn(|| 1));
/// ```
/// ```compile_fail,E0521
/// let mut kept = None;
/// fut::scope(|s| kept = Some(s.spawn(|| 1)));
/// ```
/// ```compile_fail,E0521
/// fut::scope(|s| drop(fut::spawn(move || drop(s.spawn(|| 1)))));
/// ```
///
/// # Panics
/// If `body` panics (after all threads have ended); if a thread that was not joined has panicked; outside a runtime.
#[track_caller]
pub fn scope<'env, F, T>(body: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let owner = here("fut::scope");
    let team = NEXT_TEAM.fetch_add(1, Ordering::Relaxed);
    let (running, unjoined_panics) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let count = Arc::new(Count { team, running, unjoined_panics, owner });
    let scope = Scope { count, scope: PhantomData, env: PhantomData };
    scheduler::team_fork(team);
    // A panic must also wait for the threads.
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    scope.count.wait_for_all();
    scheduler::team_join(team);
    match result {
        Err(panic) => resume_unwind(panic),
        Ok(_) if scope.count.unjoined_panics.load(Ordering::Relaxed) > 0 => {
            panic!("a scoped user thread panicked")
        }
        Ok(result) => result,
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Creates a user thread in the runtime of the scope's owner. It may create others in the same scope.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, body: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        Builder::new().spawn_scoped(self, body)
    }
}

impl Builder {
    /// Creates a user thread in a scope.
    ///
    /// # Panics
    /// If there is no memory for a stack of the size that was set.
    #[track_caller]
    pub fn spawn_scoped<'scope, 'env, F, T>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        body: F,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let stack = self.reserve(scope.count.owner.shared());
        self.begin_scoped(scope, stack, body)
    }

    /// Like [`spawn_scoped`](Builder::spawn_scoped), but takes the stack now, and fails if there is none, as
    /// [`try_spawn`](Builder::try_spawn) does.
    ///
    /// # Errors
    /// If there is no memory, address space or guard page for the stack.
    pub fn try_spawn_scoped<'scope, 'env, F, T>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        body: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let stack = self.try_reserve(scope.count.owner.shared())?;
        Ok(self.begin_scoped(scope, Some(stack), body))
    }

    /// The thread is counted here; the caller must not have counted it.
    fn begin_scoped<'scope, 'env, F, T>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        stack: Option<Stack>,
        body: F,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let count = Arc::clone(&scope.count);
        // Relaxed: the caller is the owner or a counted thread, so the count cannot reach 0 meanwhile.
        count.running.fetch_add(1, Ordering::Relaxed);
        let (shared, team) = (count.owner.shared(), count.team);
        let packet = Arc::new(Packet { result: UnsafeCell::new(None), _scope: PhantomData });
        let (theirs, their_count) = (Arc::clone(&packet), Arc::clone(&count));
        let thread = self.begin(shared, stack, None, move || {
            let result = catch_unwind(AssertUnwindSafe(body));
            if result.is_err() {
                their_count.unjoined_panics.fetch_add(1, Ordering::Relaxed);
            }
            // SAFETY: the handle reads the result only after this thread has ended, or when the handle has the only
            // share.
            unsafe { *theirs.result.get() = Some(result) };
            drop(theirs);
            // No borrow for `'scope` is left here.
            their_count.one_has_ended();
        });
        scheduler::team_member(team, thread.id());
        let handle = JoinHandle::new(thread);
        lwp::queue_new(shared, thread);
        ScopedJoinHandle { thread: handle, packet, count }
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// The number of the thread.
    pub fn id(&self) -> Thread {
        self.thread.id()
    }

    /// The name of the thread.
    pub fn name(&self) -> Option<&str> {
        self.thread.name()
    }

    /// Whether the thread has ended. Then [`join`](ScopedJoinHandle::join) returns at once.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until the thread has ended. If the caller is a user thread, it blocks, and its LWP switches to others.
    ///
    /// # Errors
    /// The payload of the thread's panic.
    pub fn join(self) -> thread::Result<T> {
        let ScopedJoinHandle { thread, mut packet, count } = self;
        // The thread catches the panics of its body, so an error here is never one of them.
        thread.join()?;
        let packet = Arc::get_mut(&mut packet).expect("the thread dropped its share before it ended");
        let result = packet.result.get_mut().take().expect("the thread stored its result before it ended");
        if result.is_err() {
            count.unjoined_panics.fetch_sub(1, Ordering::Relaxed);
        }
        result
    }
}

impl<T> Drop for Packet<'_, T> {
    fn drop(&mut self) {
        discard(self.result.get_mut().take());
    }
}

impl Count {
    fn one_has_ended(&self) {
        // Release: pairs with the Acquire in `wait_for_all`; publishes the thread's writes.
        if self.running.fetch_sub(1, Ordering::Release) == 1 {
            self.owner.unpark();
        }
    }

    fn wait_for_all(&self) {
        let address = self.team as usize;
        // Acquire: pairs with the Release in `one_has_ended`.
        while self.running.load(Ordering::Acquire) != 0 {
            park(&WaitsFor { kind: WaitKind::Scope, address, holder: None, is_fed: false });
        }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("running", &self.count.running).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").field("id", &self.id()).field("name", &self.name()).finish()
    }
}
