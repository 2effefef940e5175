//! Creating user threads.

use std::borrow::Cow;

use super::{
    join::JoinHandle,
    lwp,
    park::here,
    pool::{Priority, Shared},
    thread::{Birth, ThreadRef},
};

/// Options of a new user thread, as `std::thread::Builder` for threads.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    name: Option<Cow<'static, str>>,
    priority: Priority,
    lwp: Option<usize>,
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

    /// Creates the user thread in the runtime of the calling one.
    ///
    /// # Panics
    /// Outside a runtime.
    #[inline]
    #[track_caller]
    pub fn spawn<T: Send + 'static>(self, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        self.spawn_on(here("fut::Builder::spawn").shared(), body)
    }

    #[inline]
    pub(super) fn spawn_on<T: Send + 'static>(
        self,
        shared: &'static Shared,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let thread = self.begin(shared, body);
        let handle = JoinHandle::new(thread);
        lwp::queue_new(shared, thread);
        handle
    }

    /// Creates the thread without queueing it.
    pub(super) fn begin<T: Send>(
        self,
        shared: &'static Shared,
        body: impl FnOnce() -> T + Send,
    ) -> ThreadRef {
        let Builder { name, priority, lwp } = self;
        let home = shared.home_from_birth(priority, lwp);
        lwp::begin(shared, |id| Birth { id, name, priority, home, shared }, body)
    }
}
