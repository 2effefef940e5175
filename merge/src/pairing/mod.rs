//! Intervals that are paired from events: what belongs together, where it begins and where it ends.
//!
//! The [machine](crate::machine) reports what happens to LWPs, user threads and CPUs; each file here pairs one kind of
//! interval from that and writes its table. Nothing after the merge pairs events again.
//!
//! Rules that all kinds share:
//!
//! 1. A row is written when its interval ends; so a table is sorted by the ends of its rows, but for rows that end
//!    before the event that shows that they have ended (`unseen`).
//! 2. An end without its begin gives no row.
//! 3. A gap in the stream that would have the end of an interval ends it there (`lost`): a later event of the same name
//!    may belong to another interval.
//! 4. What is open when the trace ends is closed there (`trace-end`).

mod counters;

mod futexes;
mod interrupts;
mod locks;
mod names;
mod spans;
mod syscalls;
mod wakeups;

use sigmund_model::{
    EndReason, Ticks,
    tables::{COUNTERS, INTERRUPTS, LOCKS, SPANS, SYSCALLS, WAKEUPS},
};

pub(crate) use self::{
    counters::{Counters, Queue},
    futexes::awaited,
    interrupts::{InterruptEvent, Interrupts},
    locks::{LockRequest, Locks, is_lock},
    spans::{Activity, Owner, SpanEvent, SpanKind, Spans},
    syscalls::{Call, CallEnd, CallEvent, OpenCall, Syscalls},
    wakeups::{Wakeup, Wakeups},
};
use crate::{
    error::Error,
    tables::{Directory, OptionalTable},
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
    /// Begins the tables, without those that are `left_out`.
    pub(crate) fn create(directory: &Directory, left_out: &[String]) -> Result<Pairing, Error> {
        let table = |table| OptionalTable::create(directory, table, left_out);
        Ok(Pairing {
            syscalls: Syscalls::new(table(&SYSCALLS)?),
            interrupts: Interrupts::new(table(&INTERRUPTS)?),
            spans: Spans::new(table(&SPANS)?),
            locks: Locks::new(table(&LOCKS)?),
            wakeups: Wakeups::new(table(&WAKEUPS)?),
            counters: Counters::new(table(&COUNTERS)?),
        })
    }

    /// Events of this user thread, or of this LWP, are missing from here on.
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
