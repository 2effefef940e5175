//! Reads the tables of a super-trace into histories, as many as a measure needs: of all of a window, or of slices of it.

mod actors;
mod cells;
mod events;
mod intervals;
mod memory;
mod reader;
mod slices;
mod states;
mod turns;

use std::collections::BTreeSet;

use sigmund_measures::Interval;
use sigmund_sql::SuperTrace;

pub use self::slices::SliceSize;
pub(super) use self::slices::{About, Known, Order, Slices, Stopped};
pub(super) use self::{actors::gaps, memory::Memory};
use crate::Error;

/// What is loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Intervals and events in it.
    pub(super) of_rows: Interval,
    /// Names of threads that live in it.
    pub(super) of_names: Interval,
    /// Wakeups and locks in it: the cause of what happens in the window may be before that.
    pub(super) around: Interval,
    /// Nothing that ended before this is of use, also to a measure that looks back: those who are asked about did not live yet.
    pub(super) since: i64,
}

/// The window, but for what is before and after the lives of some threads.
pub(super) async fn within_lives(
    trace: &SuperTrace,
    threads: &BTreeSet<u64>,
    window: Interval,
) -> Result<Window, Error> {
    let whole = Window { of_rows: window, of_names: Interval::ALL, around: Interval::ALL, since: i64::MIN };
    let Some(last) = trace.last_tick().filter(|_| threads.len() <= MOST_LIVES) else { return Ok(whole) };
    let Some(lives) = actors::lives(trace, threads, last.0 as i64).await? else { return Ok(whole) };
    let from = window.from.max(lives.from);
    // An instant at the end is inside.
    let both = Interval::new(from, window.to.min(lives.to.saturating_add(1)));
    Ok(Window { of_rows: both, of_names: both, around: Interval::ALL, since: lives.from })
}

/// Of more threads the lives are not looked up.
const MOST_LIVES: usize = 1000;
