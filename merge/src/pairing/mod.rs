//! Pairs events to intervals. Determines which events belong together, and where an interval begins and ends.
//!
//! The [machine](crate::machine) reports the changes of LWPs, user threads and CPUs. Each file here pairs one kind of
//! interval from these reports, and writes its table. No later stage pairs events again.
//!
//! Rules that all kinds share:
//!
//! 1. A row is written when its interval ends. So a table is sorted by the ends of its rows, except for rows that end
//!    before the event that shows their end (`unseen`).
//! 2. An end without its begin gives no row.
//! 3. A gap in the stream that would contain the end of an interval ends the interval (`lost`): a later event of the
//!    same name may belong to another interval.
//! 4. Intervals that are open when the trace ends are closed there (`trace-end`).

mod counters;

mod futexes;
mod interrupts;
mod kernel_locks;
mod locks;
mod names;
mod spans;
mod syscalls;
mod wakeups;

use sigmund_model::{
    EndReason, Ticks,
    tables::{COUNTERS, INTERRUPTS, LOCKS, SPANS, WAKEUPS},
};

pub(crate) use self::{
    counters::{Counters, Queue},
    futexes::awaited,
    interrupts::{InterruptEvent, Interrupts},
    kernel_locks::{KernelWait, KernelWaiter, kernel_lock_kind},
    locks::{LockRequest, Locks, is_lock},
    spans::{Activity, Owner, SpanEvent, SpanKind, Spans},
    syscalls::{AtEntry, Call, CallEnd, CallEvent, OpenCall, Syscalls},
    wakeups::{Wakeup, Wakeups},
};
use crate::{
    error::Error,
    tables::{Directory, OptionalTable, SyscallRows},
};

/// All pairings, each with its table.
pub(crate) struct Pairing {
    pub(crate) syscalls: Syscalls,
    pub(crate) interrupts: Interrupts,
    pub(crate) spans: Spans,
    pub(crate) locks: Locks,
    pub(crate) wakeups: Wakeups,
    pub(crate) counters: Counters,
}

impl Pairing {
    /// Creates the tables, except those that are `left_out`.
    pub(crate) fn create(directory: &Directory, left_out: &[String]) -> Result<Pairing, Error> {
        let table = |table| OptionalTable::create(directory, table, left_out);
        Ok(Pairing {
            syscalls: Syscalls::new(SyscallRows::create(directory, left_out)?),
            interrupts: Interrupts::new(table(&INTERRUPTS)?),
            spans: Spans::new(table(&SPANS)?),
            locks: Locks::new(table(&LOCKS)?),
            wakeups: Wakeups::new(table(&WAKEUPS)?),
            counters: Counters::new(table(&COUNTERS)?),
        })
    }

    /// A gap in the events of this user thread, or of this LWP, begins.
    pub(crate) fn lose_thread(
        &mut self,
        owner: Owner,
        wakeup: Option<Wakeup>,
        tick: Ticks,
    ) -> Result<(), Error> {
        if let Some(wakeup) = wakeup {
            self.wakeups.write(&wakeup, None)?;
        }
        self.spans.end_all(owner, None, tick, EndReason::Lost)?;
        self.locks.lose(owner, tick)
    }

    /// Completes the tables.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let Pairing { syscalls, interrupts, spans, locks, wakeups, counters } = self;
        syscalls.finish()?;
        interrupts.finish()?;
        spans.finish()?;
        locks.finish()?;
        wakeups.finish()?;
        counters.finish()
    }
}
