//! Wakeups: from the wakeup of an LWP or a user thread to its next dispatch.
//!
//! A wakeup of an LWP begins at `sched_waking`. `sched_wakeup` adds the run queue; if wakings are not traced, the
//! wakeup begins there.
//!
//! The wakeup of an LWP that is awake has no latency. But the LWP may leave its CPU between the waking and the wakeup:
//! then the wakeup ended its sleep, and its waker is that of the waking.
//!
//! A wakeup also has no latency if the state of the LWP was unknown. Then the LWP may have been awake, or it may have
//! been dispatched and slept again, and the next dispatch may belong to another wakeup.

use sigmund_model::{Context, Cpu, Level, Lwp, Thread, Ticks};

use crate::{error::Error, tables::OptionalTable};

/// A wakeup whose dispatch has not yet been recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wakeup {
    pub(crate) at: Ticks,
    pub(crate) level: Level,
    pub(crate) context: Option<Context>,
    pub(crate) waker_lwp: Option<Lwp>,
    pub(crate) waker_thread: Option<Thread>,
    pub(crate) lwp: Option<Lwp>,
    pub(crate) thread: Option<Thread>,
    pub(crate) cpu: Option<Cpu>,
    pub(crate) target_cpu: Option<Cpu>,
    /// Whether an earlier dispatch may be missing, because events are missing.
    pub(crate) in_gap: bool,
}

/// The table.
pub(crate) struct Wakeups {
    rows: OptionalTable,
}

impl Wakeups {
    pub(super) fn new(rows: OptionalTable) -> Wakeups {
        Wakeups { rows }
    }

    /// Writes a wakeup. `dispatched` is the time of the dispatch, if it was recorded.
    pub(crate) fn write(&mut self, wakeup: &Wakeup, dispatched: Option<Ticks>) -> Result<(), Error> {
        self.rows.row(|mut row| {
            row.count(wakeup.at.0).text(wakeup.level.name()).maybe_text(wakeup.context.map(Context::name));
            row.maybe_int(wakeup.waker_lwp.map(|lwp| lwp.0.into()));
            row.maybe_count(wakeup.waker_thread.map(|thread| thread.0));
            row.maybe_int(wakeup.lwp.map(|lwp| lwp.0.into()));
            row.maybe_count(wakeup.thread.map(|thread| thread.0));
            row.maybe_int(wakeup.cpu.map(|cpu| cpu.0.into()));
            row.maybe_int(wakeup.target_cpu.map(|cpu| cpu.0.into()));
            row.maybe_count(dispatched.map(|tick| tick.0 - wakeup.at.0));
        })
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.rows.finish()
    }
}
