//! Creating user threads.

use std::{borrow::Cow, io};

use super::{
    join::JoinHandle,
    lwp,
    park::here,
    pool::{Priority, Runtime, Shared},
    stack::Stack,
    thread::{AtEnd, Birth, ThreadRef},
};

/// Options of a new user thread, as `std::thread::Builder` for threads.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    name: Option<Cow<'static, str>>,
    priority: Priority,
    lwp: Option<usize>,
    stack_size: Option<usize>,
}

/// Creates a user thread in the runtime of the calling one.
///
/// Any LWP may begin it; from then on it stays on that LWP, so it may keep values that belong to the LWP (a borrowed
/// thread-local, an `Rc`) across calls that block or yield. It shares these with the other user threads of that LWP: if
/// it holds a lock of `std::sync` across such a call, and another user thread of the LWP takes the lock, the LWP blocks
/// for ever.
///
/// In a [migrating](crate::RuntimeBuilder::migrating) runtime it may continue on another LWP after each such call, and
/// the program has promised not to keep such values across one.
///
/// # Panics
/// Outside a runtime.
#[inline]
#[track_caller]
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().spawn_on(here("fut::spawn").shared(), body)
}

impl Builder {
    /// No name, normal priority.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Sets the name, for traces and messages.
    #[must_use]
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// Sets the priority: how soon it runs when it is ready.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Builder {
        self.priority = priority;
        self
    }

    /// Sets the number of the LWP to which it is pinned under [`Policy::Affinity`](super::Policy::Affinity), modulo the
    /// number of LWPs.
    #[must_use]
    pub fn lwp(mut self, lwp: usize) -> Builder {
        self.lwp = Some(lwp);
        self
    }

    /// Sets the size of its stack in bytes, at least 16 KiB; it is rounded up to a power of two. By default it has that of
    /// the [runtime](crate::RuntimeBuilder::stack_size), which describes what panics need. The stack is taken when the thread
    /// is created.
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> Builder {
        self.stack_size = Some(bytes);
        self
    }

    /// Creates the user thread in the runtime of the calling one. [`try_spawn`](Builder::try_spawn) does not panic.
    ///
    /// # Panics
    /// Outside a runtime; if there is no memory for a stack of the size that was set.
    #[inline]
    #[track_caller]
    pub fn spawn<T: Send + 'static>(self, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        self.spawn_on(here("fut::Builder::spawn").shared(), body)
    }

    /// As [`spawn`](Builder::spawn), as `std::thread::Builder::spawn` does: takes the stack now, and fails if there is none.
    /// A thread of [`spawn`](Builder::spawn) takes a stack of the usual size at its first dispatch, and the process ends
    /// if there is none.
    ///
    /// ```
    /// # let runtime = fut::Runtime::builder().lwps(1).build()?;
    /// # runtime.run(|| {
    /// let refused = fut::Builder::new().stack_size(1 << 60).try_spawn(|| ()).unwrap_err();
    /// assert_eq!(refused.kind(), std::io::ErrorKind::OutOfMemory);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no memory, address space or guard page for its stack.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn try_spawn<T: Send + 'static>(
        self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        self.try_spawn_reporting(here("fut::Builder::try_spawn").shared(), None, body)
    }

    /// As [`spawn`](Builder::spawn), in this runtime; may be called from any thread.
    ///
    /// # Panics
    /// If there is no memory for a stack of the size that was set.
    #[track_caller]
    pub fn spawn_in<T: Send + 'static>(
        self,
        runtime: &Runtime,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.spawn_on(runtime.shared(), body)
    }

    /// As [`try_spawn`](Builder::try_spawn), in this runtime; may be called from any thread.
    ///
    /// ```
    /// let runtime = fut::Runtime::builder().lwps(1).build()?;
    /// let thread = fut::Builder::new().name("worker").try_spawn_in(&runtime, || 40 + 2)?;
    /// assert_eq!(thread.join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no memory, address space or guard page for its stack.
    pub fn try_spawn_in<T: Send + 'static>(
        self,
        runtime: &Runtime,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        self.try_spawn_reporting(runtime.shared(), None, body)
    }

    /// As `spawn_reporting`, with a stack that is taken now.
    pub(super) fn try_spawn_reporting<T: Send + 'static>(
        self,
        shared: &'static Shared,
        at_end: Option<AtEnd>,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let stack = self.try_reserve(shared)?;
        let thread = self.begin(shared, Some(stack), at_end, body);
        let handle = JoinHandle::new(thread);
        lwp::queue_new(shared, thread);
        Ok(handle)
    }

    /// The stack of the thread, whatever its size: as `reserve`, but taken now.
    pub(super) fn try_reserve(&self, shared: &'static Shared) -> io::Result<Stack> {
        shared.stacks.reserve(self.stack_size)
    }

    #[inline]
    #[track_caller]
    pub(super) fn spawn_on<T: Send + 'static>(
        self,
        shared: &'static Shared,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.spawn_reporting(shared, None, body)
    }

    /// As `spawn_on`; `at_end` is called when the thread ends.
    #[inline]
    #[track_caller]
    pub(super) fn spawn_reporting<T: Send + 'static>(
        self,
        shared: &'static Shared,
        at_end: Option<AtEnd>,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let stack = self.reserve(shared);
        let thread = self.begin(shared, stack, at_end, body);
        let handle = JoinHandle::new(thread);
        lwp::queue_new(shared, thread);
        handle
    }

    /// The stack of the thread, if its size was set.
    ///
    /// # Panics
    /// If there is no memory for it.
    #[inline]
    #[track_caller]
    pub(super) fn reserve(&self, shared: &'static Shared) -> Option<Stack> {
        self.stack_size.map(|size| match shared.stacks.reserve(Some(size)) {
            Ok(stack) => stack,
            Err(error) => panic!("a user thread was not created: {error}"),
        })
    }

    /// Creates the thread without queueing it.
    #[inline]
    pub(super) fn begin<T: Send>(
        self,
        shared: &'static Shared,
        stack: Option<Stack>,
        at_end: Option<AtEnd>,
        body: impl FnOnce() -> T + Send,
    ) -> ThreadRef {
        let Builder { name, priority, lwp, stack_size: _ } = self;
        let home = shared.home_from_birth(priority, lwp);
        lwp::begin(
            shared,
            |id| Birth { id, name, priority, home, shared, stack, at_end, in_blocking: false },
            body,
        )
    }
}
