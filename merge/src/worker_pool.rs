//! Threads that decode and encode for the merge, which itself runs on one.
//!
//! ```text
//!   workers   prefetch, stream by stream              encode row groups
//!                     │ batches of events                  ▲ columns
//!   merge             └──▶ order, state, columns ──────────┘
//! ```
//!
//! The merge never waits for a worker that is busy with another task: it does itself what no worker has begun. So no CPU
//! idles, a single CPU needs no worker, and the number of waiting tasks, and with it the memory, is bounded.
//!
//! A pool of rayon's: a worker ends what it has begun before it begins anything else. A pool of our own that decoded before it encoded was no faster:
//! 105.9 million events in 20.9 to 28.8 s and 45 s of CPU time, here 21.8 to 24.3 s and 39 s (means of four runs in turn on
//! two CPUs of an AMD EPYC that others used, too).

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Does a piece of a task; whether there is another one to do.
type Task = Box<dyn FnMut() -> bool + Send>;

/// The threads. Dropped, they end; what they have not begun is never done.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    threads: Option<Arc<ThreadPool>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Encoding that waits or runs.
    encoding_open: AtomicUsize,
    closing: AtomicBool,
}

impl WorkerPool {
    /// A pool of threads; none if they cannot be started.
    pub(crate) fn new(count: usize) -> WorkerPool {
        let builder = ThreadPoolBuilder::new().num_threads(count).thread_name(|n| format!("merge-{n}"));
        // A panic was reported by its task; the task that waits for the result panics too.
        let threads = if count > 0 { builder.panic_handler(drop).build().ok() } else { None };
        WorkerPool { threads: threads.map(Arc::new), shared: Arc::default() }
    }

    /// Decodes piece by piece, as long as `task` says that there is another one.
    pub(crate) fn decode(&self, task: impl FnMut() -> bool + Send + 'static) {
        if let Some(threads) = &self.threads {
            begin(threads, Arc::clone(&self.shared), Box::new(task), false);
        }
    }

    /// Encodes piece by piece, unless twice as many tasks are waiting as there are workers: then the task comes back.
    pub(crate) fn encode<T: FnMut() -> bool + Send + 'static>(&self, task: T) -> Result<(), T> {
        let Some(threads) = &self.threads else { return Err(task) };
        // Only the merge adds to it.
        if self.shared.encoding_open.load(Ordering::Relaxed) >= 2 * threads.current_num_threads() {
            return Err(task);
        }
        self.shared.encoding_open.fetch_add(1, Ordering::Relaxed);
        begin(threads, Arc::clone(&self.shared), Box::new(task), true);
        Ok(())
    }
}

/// Does a task, piece by piece: others that this worker has begun come in between.
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
        // The one that came back was done at once.
        assert_eq!(results.iter().take(6).collect::<Vec<_>>(), ["c2", "c1", "b2", "b1", "a2", "a1"]);
        // There is room again, as soon as the last piece is behind us.
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
