//! Views with Perfetto's names: `sched` (or `sched_slice`) has the times when LWPs were on CPUs, `thread_state` has
//! their states.
//!
//! As in Perfetto, `ts` and `dur` are nanoseconds, and `utid` is the kernel thread. Here it is the LWP's tid, so it
//! joins with `lwps.lwp`. In a fleet, the numbers in `utid`, `upid` and tracks are different for each host. Differences
//! from Perfetto: `ts` counts from the first event, the idle task has no slices, and a state that never ends (`exited`)
//! has a NULL `dur`, not -1. See <https://perfetto.dev/docs/analysis/sql-tables>.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::{
    catalog::TableProvider,
    common::{ScalarValue, TableReference},
    error::Result,
    functions_aggregate::min_max::min,
    logical_expr::{Expr, JoinType, cast, ident, lit, when},
    prelude::{DataFrame, SessionContext},
};
use sigmund_model::{
    LwpState,
    tables::{LWP_STATES, WAKEUPS},
};

use crate::{Info, functions::row_id, nanos, tables::raw_name};

/// One row: an LWP (not the idle task) on a CPU.
pub(crate) const SCHED_SLICE: &str = "sched_slice";
/// The same, by its other name.
pub(crate) const SCHED: &str = "sched";
/// One row: an LWP in one state.
pub(crate) const THREAD_STATE: &str = "thread_state";

/// These views.
pub(crate) const VIEWS: [&str; 3] = [SCHED_SLICE, SCHED, THREAD_STATE];

/// What a row of one of these views is.
pub(crate) fn sentence(view: &str) -> Option<&'static str> {
    match view {
        SCHED_SLICE | SCHED => {
            Some("Perfetto's: one row is a time that an LWP (not the idle task) was on a CPU.")
        }
        THREAD_STATE => {
            Some("Perfetto's: one row is a time that an LWP (not the idle task) was in one state.")
        }
        _ => None,
    }
}

/// The description of a computed column of one of these views.
pub(crate) fn column(view: &str, column: &str) -> Option<&'static str> {
    match (view, column) {
        (SCHED_SLICE | SCHED | THREAD_STATE, "id") => {
            Some("A number of its own, which says nothing about the order.")
        }
        (SCHED_SLICE | SCHED | THREAD_STATE, "ts") => Some("Its begin in nanoseconds since the first event."),
        (SCHED_SLICE | SCHED | THREAD_STATE, "dur") => {
            Some("Its length in nanoseconds; NULL if it never ends.")
        }
        (SCHED_SLICE | SCHED | THREAD_STATE, "utid") => Some("The LWP."),
        (SCHED_SLICE | SCHED, "ts_end") => Some("Its end in nanoseconds since the first event."),
        (SCHED_SLICE | SCHED, "priority") => Some("NULL: it is not kept."),
        (THREAD_STATE, "waker_utid") => {
            Some("The LWP that woke it, of a wait for a CPU after a wakeup; 0 is the idle task.")
        }
        (THREAD_STATE, "irq_context") => Some("Of the same, 1 if it was woken in an interrupt, else 0."),
        (THREAD_STATE, "state") => Some(
            "Running, or the letters of the kernel: R, R+ (preempted), S, D, I, T, X; NULL if it is not known.",
        ),
        _ => None,
    }
}

/// Whether a view has Perfetto's name, and therefore Perfetto's units.
pub(crate) fn is_of_perfetto(view: &str) -> bool {
    matches!(
        view,
        SCHED_SLICE
            | SCHED
            | THREAD_STATE
            | "thread"
            | "process"
            | "thread_track"
            | "slice"
            | "slices"
            | "thread_slice"
            | "counter"
            | "counter_track"
            | "cpu_counter_track"
            | "process_counter_track"
    )
}

/// The distance between the numbers of two hosts. It is larger than any number of threads, and leaves room for 2000
/// hosts.
const PER_HOST: i64 = 1 << 52;

/// A column of one of these views for a host of a fleet. Numbers that identify a row or track are made different for
/// each host. So Perfetto's queries, which have no hosts, join only rows of the same host.
pub(crate) fn of_host(view: &str, column: &str, host: usize) -> Expr {
    let is_row =
        matches!(view, SCHED_SLICE | SCHED | THREAD_STATE | "slice" | "slices" | "thread_slice" | "counter");
    let number = || cast(ident(column), DataType::Int64);
    match column {
        "id" if is_row && host > 0 => {
            row_id().call(vec![number(), lit(host as i64), lit(0_i64)]).alias(column)
        }
        "parent_id" if is_row && host > 0 => {
            let of_host = row_id().call(vec![number(), lit(host as i64), lit(0_i64)]);
            let has_one = when(ident(column).is_not_null(), of_host).end();
            has_one.unwrap_or_else(|_| ident(column)).alias(column)
        }
        "id" | "parent_id" if is_row => ident(column),
        "id" | "utid" | "waker_utid" | "upid" | "parent_upid" | "track_id" => {
            (number() + lit(host as i64 * PER_HOST)).alias(column)
        }
        _ => ident(column),
    }
}

/// The plan of one of these views.
pub(crate) async fn view(
    context: &SessionContext,
    name: &str,
    info: &Info,
) -> Result<Arc<dyn TableProvider>> {
    let states = context.table(TableReference::bare(raw_name(&LWP_STATES))).await?;
    let states = states.filter(ident("lwp").not_eq(lit(0)))?;
    let number = |column: &str| cast(ident(column), DataType::Int64);
    // The end is part of the id, because an LWP may leave a state at the instant at which it entered it.
    let id = || row_id().call(vec![number("lwp"), ident("ts_tick"), ident("dur_tick")]);
    let place = || {
        vec![
            id().alias("id"),
            nanos::instant(ident("ts_tick"), info).alias("ts"),
            nanos::length_from(ident("ts_tick"), ident("dur_tick"), info).alias("dur"),
            ident("cpu"),
            ident("lwp").alias("utid"),
        ]
    };
    let tail = || vec![ident("ts_tick"), ident("dur_tick"), ident("lwp")];

    if name == THREAD_STATE {
        let with_wakers = with_wakers(context, states).await?;
        let wakers = vec![ident("waker_utid"), ident("irq_context")];
        let mut columns = [place(), vec![state()?.alias("state")], wakers, tail()].concat();
        // An LWP may leave several states at the same instant.
        columns[0] = row_id().call(vec![id(), state_number()?, lit(0_i64)]).alias("id");
        return Ok(with_wakers.select(columns)?.into_view());
    }
    let running = states.filter(ident("state").eq(lit(LwpState::Running.name())))?;
    let ts_end = nanos::instant(ident("ts_tick") + ident("dur_tick"), info);
    let priority = lit(ScalarValue::Int32(None)).alias("priority");
    let ends = vec![ident("end_state"), ident("end_reason"), ts_end.alias("ts_end"), priority];
    Ok(running.select([place(), ends, tail()].concat())?.into_view())
}

/// The states of LWPs. A wait for a CPU also has who woke the LWP, and whether that was in an interrupt. The wakeup
/// that began a wait is the one whose latency ends with the wait. (A query that uses neither column does not join:
/// `EliminateUnusedJoin`.)
async fn with_wakers(context: &SessionContext, states: DataFrame) -> Result<DataFrame> {
    let raw = raw_name(&WAKEUPS);
    if !context.table_exist(TableReference::bare(raw.as_str()))? {
        let nobody = |ty, name: &str| cast(lit(ScalarValue::Null), ty).alias(name);
        let missing = [nobody(DataType::Int32, "waker_utid"), nobody(DataType::Int64, "irq_context")];
        let columns = LWP_STATES.columns.iter().map(|column| ident(column.name));
        return states.select(columns.chain(missing));
    }
    let wakeups = context.table(TableReference::bare(raw)).await?;
    let is_interrupt = ident("context").in_list(["irq", "softirq", "nmi"].map(lit).to_vec(), false);
    let wakeups =
        wakeups.filter(ident("level").eq(lit("KERN")).and(ident("latency_tick").is_not_null()))?.select([
            ident("lwp").alias("woken"),
            (ident("ts_tick") + ident("latency_tick")).alias("ran_tick"),
            ident("waker_lwp").alias("waker"),
            cast(is_interrupt, DataType::Int64).alias("in_interrupt"),
        ])?;
    let first = |column: &str, name: &str| min(ident(column)).alias(name);
    let wakeups = wakeups.aggregate(
        vec![ident("woken"), ident("ran_tick")],
        vec![first("waker", "waker_utid"), first("in_interrupt", "irq_context")],
    )?;
    // NULL for states that are no wait for a CPU, so that these match no wakeup.
    let ran = when(ident("state").eq(lit(LwpState::Runnable.name())), ident("ts_tick") + ident("dur_tick"))
        .end()?;
    let columns = LWP_STATES.columns.iter().map(|column| ident(column.name));
    let states = states.select(columns.chain([ran.alias("ran")]))?;
    states.join(wakeups, JoinType::Left, &["lwp", "ran"], &["woken", "ran_tick"], None)
}

/// A number for each state; NULL for one that is not known.
fn state_number() -> Result<Expr> {
    use LwpState::{DiskSleep, Exited, Idle, Runnable, Running, Sleeping, Stopped};
    let is = |state: LwpState| ident("state").eq(lit(state.name()));
    let mut numbers = when(is(Running), lit(0_i64));
    for (number, state) in (1_i64..).zip([Runnable, Sleeping, DiskSleep, Idle, Stopped, Exited]) {
        numbers = numbers.when(is(state), lit(number));
    }
    numbers.end()
}

/// Perfetto's letters for states. NULL if the trace does not show why the LWP is off-CPU.
fn state() -> Result<Expr> {
    let is = |state: LwpState| ident("state").eq(lit(state.name()));
    when(is(LwpState::Running), lit("Running"))
        .when(is(LwpState::Runnable).and(ident("end_state").eq(lit("R+"))), lit("R+"))
        .when(is(LwpState::Runnable), lit("R"))
        .when(is(LwpState::Sleeping), lit("S"))
        .when(is(LwpState::DiskSleep), lit("D"))
        .when(is(LwpState::Idle), lit("I"))
        .when(is(LwpState::Stopped), lit("T"))
        .when(is(LwpState::Exited), lit("X"))
        .end()
}
