//! Threads that decode and encode for the merge. The merge itself runs on one thread.
//!
//! ```text
//!   workers   prefetch, stream by stream              encode row groups
//!                     │ batches of events                  ▲ columns
//!   merge             └──▶ order, state, columns ──────────┘
//! ```
//!
//! The merge never waits for a worker that is busy with another task: if no worker has begun a task, the merge does it
//! itself. So no CPU is idle, a single CPU needs no worker, and the number of waiting tasks is bounded, and with it the
//! memory.
//!
//! The pool is rayon's: a worker ends what it has begun before it begins anything else. We also tried our own pool,
//! which decoded before it encoded, and it was no faster: 105.9 million events took 20.9 to 28.8 s and 45 s of CPU
//! time; with this one they take 21.8 to 24.3 s and 39 s (means of four runs in turn on two CPUs of an AMD EPYC with
//! other load).

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Does a piece of a task. Returns whether there is another piece.
type Task = Box<dyn FnMut() -> bool + Send>;

/// The threads. When this value is dropped, they end; tasks that they have not begun are never done.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    threads: Option<Arc<ThreadPool>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Number of encoding tasks that wait or run.
    encoding_open: AtomicUsize,
    closing: AtomicBool,
}

impl WorkerPool {
    /// Makes a pool of threads. It has none if they cannot be started.
    pub(crate) fn new(count: usize) -> WorkerPool {
        let builder = ThreadPoolBuilder::new().num_threads(count).thread_name(|n| format!("merge-{n}"));
        // A panic is reported by its task, and the task that waits for the result panics, too.
        let threads = if count > 0 { builder.panic_handler(drop).build().ok() } else { None };
        WorkerPool { threads: threads.map(Arc::new), shared: Arc::default() }
    }

    /// Decodes piece by piece, as long as `task` returns that there is another one.
    pub(crate) fn decode(&self, task: impl FnMut() -> bool + Send + 'static) {
        if let Some(threads) = &self.threads {
            begin(threads, Arc::clone(&self.shared), Box::new(task), false);
        }
    }

    /// Encodes piece by piece. If there are already twice as many tasks as workers, the task is returned instead.
    pub(crate) fn encode<T: FnMut() -> bool + Send + 'static>(&self, task: T) -> Result<(), T> {
        let Some(threads) = &self.threads else { return Err(task) };
        // Only the merge increases this number.
        if self.shared.encoding_open.load(Ordering::Relaxed) >= 2 * threads.current_num_threads() {
            return Err(task);
        }
        self.shared.encoding_open.fetch_add(1, Ordering::Relaxed);
        begin(threads, Arc::clone(&self.shared), Box::new(task), true);
        Ok(())
    }
}

/// Does one piece of a task, and then queues the rest. So other tasks of this worker come in between.
fn begin(threads: &Arc<ThreadPool>, shared: Arc<Shared>, mut task: Task, encodes: bool) {
    let pool = Arc::downgrade(threads);
    threads.spawn_fifo(move || {
        let has_more = !shared.closing.load(Ordering::Relaxed) && task();
        match pool.upgrade().filter(|_| has_more) {
            Some(threads) => begin(&threads, shared, task, encodes),
            None if encodes => _ = shared.encoding_open.fetch_sub(1, Ordering::Relaxed),
            None => {}
        }
    });
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn tasks_are_done_piece_by_piece_and_their_number_is_bounded() {
        let pool = WorkerPool::new(1);
        let (begin, begun) = mpsc::channel::<()>();
        let (done, results) = mpsc::channel();
        let wait = move || {
            begun.recv().unwrap();
            false
        };
        assert!(pool.encode(wait).is_ok());
        assert!(pool.encode(pieces("b", &done)).is_ok());
        let refused = pool.encode(pieces("c", &done));
        let mut refused = refused.expect_err("a third is refused");
        while refused() {}
        pool.decode(pieces("a", &done));
        begin.send(()).unwrap();
        // The task that was returned was done at once.
        assert_eq!(results.iter().take(6).collect::<Vec<_>>(), ["c2", "c1", "b2", "b1", "a2", "a1"]);
        // There is room again as soon as the last piece is done.
        while pool.encode(|| false).is_err() {}
    }

    /// A task of two pieces.
    fn pieces(task: &'static str, done: &mpsc::Sender<String>) -> impl FnMut() -> bool + Send + use<> {
        let (mut left, done) = (2, done.clone());
        move || {
            done.send(format!("{task}{left}")).unwrap();
            left -= 1;
            left > 0
        }
    }

    #[test]
    fn nothing_is_begun_after_the_pool_was_dropped_and_nobody_waits_without_workers() {
        let (begin, begun) = mpsc::channel::<()>();
        let (done, results) = mpsc::channel();
        let pool = WorkerPool::new(1);
        pool.decode(move || {
            begun.recv().unwrap();
            true
        });
        pool.decode(pieces("never", &done));
        drop(pool);
        begin.send(()).unwrap();
        drop(done);
        assert_eq!(results.iter().count(), 0);
        assert!(WorkerPool::new(0).encode(|| false).is_err());
    }
}
