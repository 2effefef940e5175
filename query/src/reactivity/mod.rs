//! Reactivity: the time from the kernel's detection of an event (an interrupt) to its treatment by the program
//! (a user event of one thread). It measures the time, not the cause of a delay.

mod executing;
pub(crate) mod known;
mod pairing;
pub(crate) mod plan;
mod selector;

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::{Int32Type, Int64Type},
};
use futures::{StreamExt, future::BoxFuture};
use sigmund_model::{Cpu, Lwp, Thread, Ticks, tables::EVENTS};
use sigmund_sql::SuperTrace;

use crate::{Error, Filter};

pub use known::nearest_values;
pub use pairing::{Moment, Pair, Reactivity};
pub use selector::Selector;

use pairing::Pairing;

/// Pairs each event that `from` selects with the first event of `to` at a later tick.
///
/// Several events may have the same answer. Events without an answer are counted as unanswered. Only the window of the
/// filter is used: an event and its answer both lie in it. Memory grows with the number of pairs, not with the trace.
///
/// # Errors
/// When the filter has more than a window; when a selector names an event that the trace does not have, or a field that
/// the event does not have; when the trace cannot be read.
pub fn reactivity<'a>(
    trace: &'a SuperTrace,
    from: &'a Selector,
    to: &'a Selector,
    filter: &'a Filter,
) -> BoxFuture<'a, Result<Reactivity, Error>> {
    Box::pin(async move {
        let Filter { threads, lwps, processes, cpus, events, level, from: _, to: _ } = filter;
        let has_no_actors = threads.is_empty() && lwps.is_empty() && processes.is_empty();
        if !(has_no_actors && cpus.is_empty() && events.is_empty() && level.is_none()) {
            let message = "reactivity: expected no filter except from and to; the measure of the same name obeys those of threads, \
                       LWPs, processes and CPUs, and NAME@THREAD or NAME@LWP selects who executed at an event";
            return Err(Error::argument(message));
        }
        let on_table = Error::on(trace, EVENTS.name);
        for selector in [from, to] {
            known::check(trace, selector).await?;
        }
        let (from, to) = (plan::selects(trace, from).await?, plan::selects(trace, to).await?);
        let window = filter.window(trace)?.holds("ts_tick");
        let plan = plan::either(trace.raw(&EVENTS).await?, from, to, window).map_err(&on_table)?;
        let mut rows = trace.in_file_order(plan).execute_stream().await.map_err(&on_table)?;
        let mut pairing = Pairing::default();
        while let Some(batch) = rows.next().await {
            pair_batch(&mut pairing, &batch.map_err(&on_table)?);
        }
        Ok(pairing.finish())
    })
}

/// Columns: ts_tick, cpu, lwp, thread, is_from, is_to.
fn pair_batch(pairing: &mut Pairing, batch: &RecordBatch) {
    let tick = batch.column(0).as_primitive::<Int64Type>();
    let cpu = batch.column(1).as_primitive::<Int32Type>();
    let lwp = batch.column(2).as_primitive::<Int32Type>();
    let thread = batch.column(3).as_primitive::<Int64Type>();
    let (is_from, is_to) = (batch.column(4).as_boolean(), batch.column(5).as_boolean());
    for row in 0..batch.num_rows() {
        let moment = Moment {
            tick: Ticks(tick.value(row) as u64),
            cpu: cpu.is_valid(row).then(|| Cpu(cpu.value(row) as u32)),
            lwp: lwp.is_valid(row).then(|| Lwp(lwp.value(row) as u32)),
            thread: thread.is_valid(row).then(|| Thread(thread.value(row) as u64)),
        };
        pairing.event(moment, is_from.value(row), is_to.value(row));
    }
}
