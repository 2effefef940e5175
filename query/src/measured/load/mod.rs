//! Reads the tables of a super-trace into a history, as many as a measure needs.

mod actors;
mod cells;
mod events;
mod intervals;
mod states;

use std::collections::BTreeSet;

use sigmund_measures::{History, HistoryBuilder, Interval, Needs};
use sigmund_model::tables::{INTERRUPTS, LOCKS, SPANS, SYSCALLS, Table, WAKEUPS};
use sigmund_sql::SuperTrace;

use crate::{Error, Selector};

/// What is loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Intervals and events in it.
    pub(super) of_rows: Interval,
    /// Names of threads that live in it.
    pub(super) of_names: Interval,
}

/// The window, but for what is before and after the lives of some threads.
pub(super) async fn within_lives(
    trace: &SuperTrace,
    threads: &BTreeSet<u64>,
    window: Interval,
) -> Result<Window, Error> {
    let whole = Window { of_rows: window, of_names: Interval::ALL };
    let Some(last) = trace.last_tick().filter(|_| threads.len() <= MOST_LIVES) else { return Ok(whole) };
    let Some(lives) = actors::lives(trace, threads, last.0 as i64).await? else { return Ok(whole) };
    let from = window.from.max(lives.from);
    // An instant at the end is inside.
    let both = Interval::new(from, window.to.min(lives.to.saturating_add(1)));
    Ok(Window { of_rows: both, of_names: both })
}

/// Of more threads the lives are not looked up.
const MOST_LIVES: usize = 1000;

/// What happened in the window, and the tables that would have been needed and were left out.
pub(super) async fn history(
    trace: &SuperTrace,
    needs: Needs,
    Window { of_rows: window, of_names }: Window,
    pair: Option<(&Selector, &Selector)>,
) -> Result<(History, Vec<&'static str>), Error> {
    let mut builder = HistoryBuilder::default();
    let (Some(first), Some(last)) = (trace.first_tick(), trace.last_tick()) else {
        return Ok((builder.build(), Vec::new()));
    };
    let extent = Interval::new(first.0 as i64, last.0 as i64);
    let window = (window != Interval::ALL).then_some(window);
    let mut left_out = Vec::new();
    let mut wants = |is_needed: bool, table: &'static Table| {
        let is_left_out = trace.info().left_out_tables().any(|name| name == table.name);
        if is_needed && is_left_out {
            left_out.push(table.name);
        }
        is_needed && !is_left_out
    };
    if needs.thread_states {
        states::of_threads(trace, window, extent.to, &mut builder).await?;
    }
    if needs.lwp_states {
        states::of_lwps(trace, window, extent.to, &mut builder).await?;
    }
    let history = builder.history();
    history.extent = Some(extent);
    let of_names = (of_names != Interval::ALL).then_some(of_names);
    actors::names(trace, of_names, extent.to, history).await?;
    actors::gaps(trace, extent, history).await?;
    if needs.events {
        events::all(trace, window, history).await?;
    }
    if needs.faults {
        events::faults(trace, window, history).await?;
    }
    if let Some(pair) = pair {
        events::marks(trace, pair, window, history).await?;
    }
    if wants(needs.wakeups, &WAKEUPS) {
        intervals::wakeups(trace, window.filter(|_| needs.only_lives), history).await?;
    }
    if wants(needs.interrupts, &INTERRUPTS) {
        intervals::interrupts(trace, window, history).await?;
    }
    if wants(needs.syscalls, &SYSCALLS) {
        intervals::syscalls(trace, window, history).await?;
    }
    if wants(needs.spans, &SPANS) {
        intervals::spans(trace, window, history).await?;
    }
    if wants(needs.locks, &LOCKS) {
        intervals::locks(trace, history).await?;
    }
    Ok((builder.build(), left_out))
}
