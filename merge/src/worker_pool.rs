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

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

/// Does a piece of a task; whether there is another one to do.
type Task = Box<dyn FnMut() -> bool + Send>;

/// The threads. Dropped, they end; what they have not begun is never done.
pub(crate) struct WorkerPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    tasks: Mutex<Tasks>,
    wake: Condvar,
}

#[derive(Default)]
struct Tasks {
    decoding: VecDeque<Task>,
    encoding: VecDeque<Task>,
    /// Encoding that waits or runs.
    encoding_open: usize,
    closing: bool,
}

impl WorkerPool {
    /// So many threads.
    pub(crate) fn new(count: usize) -> WorkerPool {
        let shared = Arc::new(Shared::default());
        let work = |_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work())
        };
        let threads = (0..count).map(work).collect();
        WorkerPool { shared, threads }
    }

    /// Decodes piece by piece, as long as `task` says that there is another one.
    pub(crate) fn decode(&self, task: impl FnMut() -> bool + Send + 'static) {
        self.shared.tasks().decoding.push_back(Box::new(task));
        self.shared.wake.notify_one();
    }

    /// Encodes piece by piece, unless twice as many tasks are waiting as there are workers: then the task comes back.
    pub(crate) fn encode<T: FnMut() -> bool + Send + 'static>(&self, task: T) -> Result<(), T> {
        let mut tasks = self.shared.tasks();
        if tasks.encoding_open >= 2 * self.threads.len() {
            return Err(task);
        }
        tasks.encoding_open += 1;
        tasks.encoding.push_back(Box::new(task));
        drop(tasks);
        self.shared.wake.notify_one();
        Ok(())
    }
}

impl Tasks {
    /// What to do next, and whether that is encoding. Decoding comes first, since the merge waits for it soonest, and
    /// has an end soon: only so much is read ahead.
    fn next(&mut self) -> Option<(Task, bool)> {
        let decoding = self.decoding.pop_front().map(|task| (task, false));
        decoding.or_else(|| self.encoding.pop_front().map(|task| (task, true)))
    }

    /// Notes that a piece is done, and whether there is `more` of its task.
    fn done(&mut self, task: Task, encodes: bool, more: bool) {
        match (encodes, more && !self.closing) {
            // Streams take turns; what is begun of the others is ended first.
            (false, true) => self.decoding.push_back(task),
            (true, true) => self.encoding.push_front(task),
            (false, false) => {}
            (true, false) => self.encoding_open -= 1,
        }
    }
}

impl Shared {
    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        // Nothing that can panic runs under this lock.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut tasks = self.tasks();
        loop {
            if tasks.closing {
                return;
            }
            let Some((mut task, encodes)) = tasks.next() else {
                tasks = self.wake.wait(tasks).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(tasks);
            let more = task();
            tasks = self.tasks();
            tasks.done(task, encodes, more);
        }
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        let mut tasks = self.shared.tasks();
        tasks.closing = true;
        let (decoding, encoding) = (std::mem::take(&mut tasks.decoding), std::mem::take(&mut tasks.encoding));
        drop(tasks);
        self.shared.wake.notify_all();
        drop((decoding, encoding));
        for thread in self.threads.drain(..) {
            // One that has panicked has said so, and whoever waited for its result has panicked too.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn tasks_are_done_and_their_number_is_bounded() {
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
        // The one that came back was done at once; decoding goes before encoding.
        assert_eq!(results.iter().take(6).collect::<Vec<_>>(), ["c2", "c1", "a2", "a1", "b2", "b1"]);
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
    fn streams_take_turns_and_a_row_group_is_ended_before_the_next_is_begun() {
        let order = |encodes: bool| {
            let (done, results) = mpsc::channel();
            let mut tasks = Tasks { encoding_open: 2, ..Tasks::default() };
            let queue = if encodes { &mut tasks.encoding } else { &mut tasks.decoding };
            queue.extend(["a", "b"].map(|task| Box::new(pieces(task, &done)) as Task));
            while let Some((mut task, encodes)) = tasks.next() {
                let more = task();
                tasks.done(task, encodes, more);
            }
            (results.try_iter().collect::<Vec<_>>(), tasks.encoding_open)
        };
        assert_eq!(order(false), (["a2", "b2", "a1", "b1"].map(String::from).to_vec(), 2));
        assert_eq!(order(true), (["a2", "a1", "b2", "b1"].map(String::from).to_vec(), 0));
    }

    #[test]
    fn workers_without_a_task_end() {
        drop(WorkerPool::new(3));
    }
}
