//! Reads the tables of a super-trace into histories: one history of the whole window, or one for each slice of it.

mod actors;
mod cells;
mod creators;
mod events;
mod intervals;
mod leaving;
mod marks;
mod memory;
mod own;
mod polled;
mod reader;
mod selected;
mod slices;
mod states;
mod times;
mod turns;
mod waited;

use std::collections::BTreeSet;

use sigmund_measures::Interval;
use sigmund_sql::SuperTrace;

pub use self::slices::SliceSize;
pub(super) use self::slices::{About, Known, Order, Slices, Stopped};
pub(super) use self::{actors::gaps, memory::Memory};
use crate::Error;

/// The times from which rows are loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Intervals and events in it.
    pub(super) of_rows: Interval,
    /// Names of threads that live in it.
    pub(super) of_names: Interval,
    /// Wakeups and locks in it are loaded. It may be larger than the window, because causes can lie before their
    /// effects.
    pub(super) around: Interval,
    /// Rows that ended before this are of no use, not even to a measure that looks back: the selected threads did not
    /// live yet.
    pub(super) since: i64,
}

impl Window {
    /// Everything in a window.
    pub(super) fn whole(window: Interval) -> Window {
        Window { of_rows: window, of_names: Interval::ALL, around: Interval::ALL, since: i64::MIN }
    }
}

/// The window, limited to the time in which these threads lived; `with_before` if a measure that looks back needs what was before.
pub(super) async fn within_lives(
    trace: &SuperTrace,
    threads: &BTreeSet<u64>,
    window: Interval,
    with_before: bool,
) -> Result<Window, Error> {
    let whole = Window::whole(window);
    let Some(last) = trace.last_tick().filter(|_| threads.len() <= MOST_LIVES) else { return Ok(whole) };
    let Some(lives) = actors::lives(trace, threads, last.0 as i64).await? else { return Ok(whole) };
    let from = window.from.max(lives.from);
    // `to` is exclusive, so that an instant at the end of the lives is included.
    let both = Interval::new(from, window.to.min(lives.to.saturating_add(1)));
    let since = if with_before { i64::MIN } else { lives.from };
    Ok(Window { of_rows: both, of_names: both, around: Interval::ALL, since })
}

/// If most rows are decoded only to be left out, this many row groups of a table are decoded at the same time.
const AHEAD: usize = 2;

/// With more threads than this, their lives are not looked up.
const MOST_LIVES: usize = 1000;
