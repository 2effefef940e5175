//! A timer for futures.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use crate::runtime::TaskTimer;

/// A future that is ready at a point in time. It belongs to the runtime of the user thread that made it. If that
/// runtime ends earlier, nothing wakes the future, and the thread that polls it waits for ever.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Sleep {
    /// `None`: beyond the range of the clock.
    deadline: Option<Instant>,
    timer: TaskTimer,
}

/// A future that is ready after `duration`.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// # let runtime = fut::Runtime::builder().lwps(1).build()?;
/// # runtime.run(|| {
/// let start = Instant::now();
/// fut::block_on(fut::compat::sleep(Duration::from_millis(5)));
/// assert!(start.elapsed() >= Duration::from_millis(5));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// Outside a runtime.
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    Sleep { deadline: Instant::now().checked_add(duration), timer: TaskTimer::new("fut::compat::sleep") }
}

/// A future that is ready at `deadline`.
///
/// # Panics
/// Outside a runtime.
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep { deadline: Some(deadline), timer: TaskTimer::new("fut::compat::sleep_until") }
}

impl Sleep {
    /// Changes the point in time. The next poll uses the new one.
    pub fn reset(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// The point in time; `None` if it is beyond the range of the clock.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.deadline.map_or(Poll::Pending, |deadline| this.timer.poll(deadline, context))
    }
}
