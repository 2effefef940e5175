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

/// Options of a new user thread, like `std::thread::Builder` for kernel threads.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    name: Option<Cow<'static, str>>,
    priority: Priority,
    lwp: Option<usize>,
    stack_size: Option<usize>,
}

/// Creates a user thread in the runtime of the calling one.
///
/// Any LWP may begin the thread. From then on the thread stays on that LWP, so it may keep values that belong to the
/// LWP (a borrowed thread-local, an `Rc`) across calls that block or yield. It shares such values with the other user
/// threads of the LWP. If it holds a lock of `std::sync` across such a call, and another user thread of the same LWP
/// takes the lock, the LWP blocks for ever.
///
/// In a [migrating](crate::RuntimeBuilder::migrating) runtime the thread may continue on another LWP after each such
/// call. There the program has promised not to keep such values across one.
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

    /// Sets the priority: how soon the thread runs when it is ready.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Builder {
        self.priority = priority;
        self
    }

    /// Sets the number of the LWP to which the thread is pinned under [`Policy::Affinity`](super::Policy::Affinity),
    /// modulo the number of LWPs.
    #[must_use]
    pub fn lwp(mut self, lwp: usize) -> Builder {
        self.lwp = Some(lwp);
        self
    }

    /// Sets the size of the thread's stack in bytes, at least 16 KiB; it is rounded up to a power of two. The default
    /// is the size set for the [runtime](crate::RuntimeBuilder::stack_size), which also describes how much stack a
    /// panic needs. A stack whose size is set here is taken when the thread is created.
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> Builder {
        self.stack_size = Some(bytes);
        self
    }

    /// Creates the user thread in the runtime of the calling one. See [`try_spawn`](Builder::try_spawn) for errors in
    /// place of panics.
    ///
    /// # Panics
    /// Outside a runtime; if there is no memory for a stack of the size that was set.
    #[inline]
    #[track_caller]
    pub fn spawn<T: Send + 'static>(self, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        self.spawn_on(here("fut::Builder::spawn").shared(), body)
    }

    /// Like [`spawn`](Builder::spawn), but takes the stack now and fails if there is none, like
    /// `std::thread::Builder::spawn`. A thread of [`spawn`](Builder::spawn) takes a stack of the usual size only at its
    /// first dispatch, and the process ends if there is none.
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
    /// If there is no memory, address space or guard page for the stack.
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

    /// Like [`spawn`](Builder::spawn), in this runtime; may be called from any thread.
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

    /// Like [`try_spawn`](Builder::try_spawn), in this runtime; may be called from any thread.
    ///
    /// ```
    /// let runtime = fut::Runtime::builder().lwps(1).build()?;
    /// let thread = fut::Builder::new().name("worker").try_spawn_in(&runtime, || 40 + 2)?;
    /// assert_eq!(thread.join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no memory, address space or guard page for the stack.
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

    /// Takes the stack of the thread now. Unlike `reserve`, it does so for the usual size as well.
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

    /// Takes the stack of the thread if its size was set. Otherwise the thread takes one at its first dispatch.
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
