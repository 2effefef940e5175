//! A set of user threads, joined in the order in which they end.

use std::{collections::HashMap, fmt, io, panic::resume_unwind, thread, time::Duration};

use sigmund_model::Thread;

use super::{Builder, JoinHandle, here, thread::AtEnd};
use crate::sync::channel::{self, Receiver, Sender};

/// User threads that return a `T`, joined in the order in which they end, like tokio's `JoinSet`. Dropping the set
/// detaches the threads that were not joined: they continue, as when a [`JoinHandle`] is dropped.
///
/// ```
/// let runtime = fut::Runtime::builder().lwps(2).build()?;
/// let sum = runtime.run(|| {
///     let mut set = fut::JoinSet::new();
///     for n in 0..10 {
///         set.spawn(move || n);
///     }
///     let mut sum = 0;
///     while let Some(result) = set.join_next() {
///         sum += result.unwrap();
///     }
///     sum
/// });
/// assert_eq!(sum, 45);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A thread whose runtime was dropped before it ended counts as ended: joining it returns an error
/// ([`RuntimeDropped`](crate::RuntimeDropped)).
pub struct JoinSet<T> {
    handles: HashMap<Thread, JoinHandle<T>>,
    /// The numbers of threads that have ended or will never end.
    ended: Receiver<Thread>,
    ends: Sender<Thread>,
}

impl<T: Send + 'static> JoinSet<T> {
    /// An empty set.
    pub fn new() -> JoinSet<T> {
        let (ends, ended) = channel::unbounded();
        JoinSet { handles: HashMap::new(), ended, ends }
    }

    /// Creates a user thread in the runtime of the calling one. Returns the number of the new thread.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn(&mut self, body: impl FnOnce() -> T + Send + 'static) -> Thread {
        self.spawn_with(Builder::new(), body)
    }

    /// Like [`spawn`](JoinSet::spawn), with these options.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn_with(&mut self, builder: Builder, body: impl FnOnce() -> T + Send + 'static) -> Thread {
        let shared = here("fut::JoinSet::spawn").shared();
        let handle = builder.spawn_reporting(shared, Some(self.report()), body);
        self.add(handle)
    }

    /// Like [`spawn_with`](JoinSet::spawn_with), but takes the stack now, and fails if there is none, as
    /// [`Builder::try_spawn`] does.
    ///
    /// # Errors
    /// If there is no memory, address space or guard page for the stack.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn try_spawn_with(
        &mut self,
        builder: Builder,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Thread> {
        let shared = here("fut::JoinSet::try_spawn_with").shared();
        let handle = builder.try_spawn_reporting(shared, Some(self.report()), body)?;
        Ok(self.add(handle))
    }

    /// A function that reports the end of a thread to this set.
    fn report(&self) -> AtEnd {
        let to = self.ends.clone();
        Box::new(move |thread| {
            // `try_send` has no safe point: this may be the last thing that the thread does. If there is no receiver,
            // the set was dropped.
            let _ = to.try_send(thread);
        })
    }

    fn add(&mut self, handle: JoinHandle<T>) -> Thread {
        let thread = handle.id();
        self.handles.insert(thread, handle);
        thread
    }

    /// Waits until one of the threads has ended; `None` if the set is empty. The thread leaves the set.
    pub fn join_next(&mut self) -> Option<thread::Result<T>> {
        if self.is_empty() {
            return None;
        }
        let thread = self.ended.recv().ok()?;
        self.join(thread)
    }

    /// Like [`join_next`](JoinSet::join_next), but waits at most for `timeout`: also `None` if none has ended in time.
    pub fn join_next_timeout(&mut self, timeout: Duration) -> Option<thread::Result<T>> {
        if self.is_empty() {
            return None;
        }
        let thread = self.ended.recv_timeout(timeout).ok()?;
        self.join(thread)
    }

    /// Joins a thread that has ended; `None` if none has.
    pub fn try_join_next(&mut self) -> Option<thread::Result<T>> {
        let thread = self.ended.try_recv().ok()?;
        self.join(thread)
    }

    /// Waits for all threads; returns their results in the order in which they ended.
    ///
    /// # Panics
    /// If one of the threads has panicked: with the panic of that thread. The others are detached.
    pub fn join_all(mut self) -> Vec<T> {
        let mut results = Vec::with_capacity(self.len());
        while let Some(result) = self.join_next() {
            results.push(result.unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    }

    fn join(&mut self, thread: Thread) -> Option<thread::Result<T>> {
        self.handles.remove(&thread).map(JoinHandle::join)
    }
}

impl<T> JoinSet<T> {
    /// Number of threads that have not been joined.
    pub fn len(&self) -> usize {
        self.handles.len()
    }

    /// Whether all threads have been joined.
    pub fn is_empty(&self) -> bool {
        self.handles.is_empty()
    }

    /// Removes all threads from the set; they continue.
    pub fn detach_all(&mut self) {
        // Ends of these threads are reported to the old channel.
        (self.ends, self.ended) = channel::unbounded();
        self.handles.clear();
    }
}

impl<T: Send + 'static> Default for JoinSet<T> {
    fn default() -> JoinSet<T> {
        JoinSet::new()
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish()
    }
}
