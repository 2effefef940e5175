//! Channels of time. No thread sends to them: their messages become due. Receiving checks the clock, so they need no
//! thread.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Receiver, core::Core};

/// The messages of a channel of time.
pub(super) struct Timer<T> {
    pub(super) next: Instant,
    /// `None`: there is only one message.
    period: Option<Duration>,
    make: fn(Instant) -> T,
}

impl<T> Timer<T> {
    /// Takes the message that is due, if there is one. Also returns whether it was the last.
    pub(super) fn take(&mut self) -> Option<(T, bool)> {
        let now = Instant::now();
        if now < self.next {
            return None;
        }
        let value = (self.make)(self.next);
        let next = self.period.and_then(|period| now.checked_add(period));
        self.next = next.unwrap_or(self.next);
        Some((value, next.is_none()))
    }

    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }
}

/// A channel with one message, which can be received after `duration`. The message is the time at which it became due.
/// Afterwards the channel is empty, and never disconnected. See [`select!`](crate::select).
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(1).build()?;
/// # runtime.run(|| {
/// use std::time::{Duration, Instant};
///
/// use fut::sync::channel::after;
///
/// let begun = Instant::now();
/// after(Duration::from_millis(5)).recv().unwrap();
/// assert!(begun.elapsed() >= Duration::from_millis(5));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn after(duration: Duration) -> Receiver<Instant> {
    // A time beyond the range of the clock never comes.
    Instant::now().checked_add(duration).map_or_else(never, at)
}

/// Like [`after`], for a point in time.
pub fn at(when: Instant) -> Receiver<Instant> {
    timed(Timer { next: when, period: None, make: |due| due })
}

/// A channel with a message every `period`. The message is the time at which it became due. Messages do not accumulate:
/// the next one is due a period after the last one was received.
pub fn tick(period: Duration) -> Receiver<Instant> {
    let Some(next) = Instant::now().checked_add(period) else { return never() };
    timed(Timer { next, period: Some(period), make: |due| due })
}

/// A channel that never has a message and is never disconnected. Use it for an arm of [`select!`](crate::select) that
/// is switched off.
pub fn never<T>() -> Receiver<T> {
    Receiver::new(Arc::new(Core::new(0)))
}

fn timed(timer: Timer<Instant>) -> Receiver<Instant> {
    Receiver::new(Arc::new(Core::timed(timer)))
}
