//! Threads that decode and encode for the merge, which itself runs on one.
//!
//! ```text
//!   helpers   decode ahead, stream by stream          encode row groups
//!                     │ batches of events                  ▲ columns
//!   merge             └──▶ order, state, columns ──────────┘
//! ```
//!
//! Nobody waits for a helper that is busy with something else: what a helper has not begun when the merge needs it,
//! the merge does itself. So no processor idles, one alone needs no helper at all, and the number of tasks that wait,
//! and with it the memory, is bounded.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

type Task = Box<dyn FnOnce() + Send>;

/// The threads. Dropped, they end; what they have not begun is never done.
pub(crate) struct Helpers {
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
    /// Whether decoding comes before encoding.
    decodes_first: bool,
    closing: bool,
}

impl Helpers {
    /// So many threads.
    ///
    /// Of several, the one thread that merges cannot keep more than some busy: so they decode first, which it waits for
    /// soonest. One alone has more than enough to encode: what it would decode meanwhile, the merge decodes at once,
    /// and has it in its cache.
    pub(crate) fn new(count: usize) -> Helpers {
        let shared = Arc::new(Shared::default());
        shared.tasks().decodes_first = count > 1;
        let help = |_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.help())
        };
        let threads = (0..count).map(help).collect();
        Helpers { shared, threads }
    }

    /// Decodes, when it is its turn.
    pub(crate) fn decode(&self, task: impl FnOnce() + Send + 'static) {
        self.shared.tasks().decoding.push_back(Box::new(task));
        self.shared.wake.notify_one();
    }

    /// Encodes, unless as much is waiting as there are helpers: then the task comes back.
    pub(crate) fn encode<T: FnOnce() + Send + 'static>(&self, task: T) -> Result<(), T> {
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
    /// What to do next, and whether that is encoding.
    fn next(&mut self) -> Option<(Task, bool)> {
        if !self.decodes_first
            && let Some(task) = self.encoding.pop_front()
        {
            return Some((task, true));
        }
        let decoding = self.decoding.pop_front().map(|task| (task, false));
        decoding.or_else(|| self.encoding.pop_front().map(|task| (task, true)))
    }
}

impl Shared {
    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        // Nothing that can panic runs under this lock.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn help(&self) {
        let mut tasks = self.tasks();
        loop {
            if tasks.closing {
                return;
            }
            let Some((task, encodes)) = tasks.next() else {
                tasks = self.wake.wait(tasks).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(tasks);
            task();
            tasks = self.tasks();
            tasks.encoding_open -= usize::from(encodes);
        }
    }
}

impl Drop for Helpers {
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

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helpers").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn what_is_given_to_helpers_is_done_and_no_more_waits_than_they_can_soon_do() {
        let helpers = Helpers::new(1);
        let (begin, begun) = mpsc::channel::<()>();
        let (done, results) = mpsc::channel();
        assert!(helpers.encode(move || begun.recv().unwrap()).is_ok());
        let second = done.clone();
        assert!(helpers.encode(move || second.send(2).unwrap()).is_ok());
        let third = done.clone();
        let refused = helpers.encode(move || third.send(3).unwrap());
        refused.expect_err("a third is refused")();
        helpers.decode(move || done.send(1).unwrap());
        begin.send(()).unwrap();
        // The one that came back was done at once.
        assert_eq!(results.iter().take(3).collect::<Vec<_>>(), [3, 2, 1]);
    }

    #[test]
    fn one_helper_encodes_first_and_several_decode_first() {
        let order = |decodes_first| {
            let mut tasks = Tasks { decodes_first, ..Tasks::default() };
            tasks.encoding.push_back(Box::new(|| ()));
            tasks.decoding.push_back(Box::new(|| ()));
            let next = std::iter::from_fn(|| tasks.next());
            next.map(|(_, encodes)| if encodes { "encode" } else { "decode" }).collect::<Vec<_>>()
        };
        assert_eq!(order(false), ["encode", "decode"]);
        assert_eq!(order(true), ["decode", "encode"]);
    }

    #[test]
    fn helpers_that_have_nothing_to_do_end() {
        drop(Helpers::new(3));
    }
}
