//! Ending a runtime so that its user threads can end first.

use std::{
    fmt, thread,
    time::{Duration, Instant},
};

use super::{live, park::try_here, pool::Runtime, thread_counts::all_have_ended};

/// How long after its limit a shutdown waits for the LWPs to stop. Most of them sleep by then.
const GRACE: Duration = Duration::from_millis(5);

/// Shortest and longest pause before the next check whether all threads have ended.
const PAUSES: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(5));

/// Some user threads of a runtime had not ended at the limit of [`Runtime::shutdown`]. They never run again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownTimeout {
    /// The names of the threads, or their numbers (`#7`) if they have none, in the order of their creation; at most 16.
    /// A thread in [`blocking`](crate::blocking) is listed, and so is the thread `fut::blocking` that runs its call.
    pub threads: Vec<String>,
    /// Number of all such threads.
    pub count: usize,
}

impl fmt::Display for ShutdownTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} user threads had not ended at the limit: {}", self.count, self.threads.join(", "))?;
        if self.count > self.threads.len() { f.write_str(", …") } else { Ok(()) }
    }
}

impl std::error::Error for ShutdownTimeout {}

impl Runtime {
    /// Waits until all user threads of this runtime have ended, at most for `timeout`, and then stops its LWPs. The
    /// program decides how its threads learn that they shall end: by a
    /// [`CancellationToken`](crate::sync::CancellationToken), a channel that is closed, a listener that no longer
    /// accepts.
    ///
    /// It returns at the limit, or at most some milliseconds later. This also holds if a user thread does not leave its
    /// LWP, because it computes or blocks the LWP in the kernel. The shutdown does not wait for such an LWP. The thread
    /// continues until it next leaves the LWP, and then never runs again, like the threads of a runtime that is
    /// [dropped](Runtime).
    ///
    /// # Errors
    /// If user threads had not ended at the limit; the error lists them. See [`Runtime`] for what becomes of them.
    ///
    /// # Panics
    /// If a user thread calls this, of this runtime or of another one: it would block its LWP.
    pub fn shutdown(mut self, timeout: Duration) -> Result<(), ShutdownTimeout> {
        assert!(
            try_here().is_none(),
            "fut::Runtime::shutdown was called by a user thread: it would block the LWP"
        );
        // A deadline beyond the range of the clock means none.
        let deadline = Instant::now().checked_add(timeout);
        let ended = self.wait_for_threads(deadline);
        self.stop(deadline.and_then(|deadline| deadline.max(Instant::now()).checked_add(GRACE)));
        ended
    }

    /// Stops the LWPs of this runtime. It waits neither for them nor for the user threads, so a user thread may call
    /// this as well. User threads that have not ended are treated as at the limit of [`shutdown`](Runtime::shutdown).
    pub fn shutdown_background(mut self) {
        self.stop(Some(Instant::now()));
    }

    /// # Errors
    /// The threads that had not ended at the deadline.
    fn wait_for_threads(&self, deadline: Option<Instant>) -> Result<(), ShutdownTimeout> {
        let mut pause = PAUSES.0;
        loop {
            if all_have_ended(&self.shared().thread_counts) {
                return Ok(());
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(ShutdownTimeout::of(&live::of_runtime(self.shared())));
            }
            let until = deadline.map_or(pause, |deadline| pause.min(deadline - now));
            thread::sleep(until);
            pause = (2 * pause).min(PAUSES.1);
        }
    }
}

impl ShutdownTimeout {
    fn of(left: &[live::LiveThread]) -> ShutdownTimeout {
        let name = |live: &live::LiveThread| match live.name.as_str() {
            "" => format!("#{}", live.thread.0),
            name => name.to_string(),
        };
        ShutdownTimeout { threads: left.iter().take(16).map(name).collect(), count: left.len() }
    }
}
