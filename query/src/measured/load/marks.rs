//! The events that FROM or TO selects.

use arrow::array::RecordBatch;
use sigmund_measures::{Context, Interval, Mark, Slicer};
use sigmund_model::tables::EVENTS;
use sigmund_sql::SuperTrace;

use super::{
    AHEAD,
    cells::{Small, Wide, Words, booleans},
    reader::{Decoded, Reader, TableReader, Wanted},
};
use crate::{Error, Selector, reactivity::plan};

/// Columns of `events`.
const OF_MARKS: [&str; 7] = ["ts_tick", "cpu", "lwp", "thread", "context", "target_lwp", "target_thread"];

/// A reader of the events in the window.
pub(super) async fn reader(
    trace: &SuperTrace,
    (from, to): (&Selector, &Selector),
    wanted: Wanted,
) -> Result<Box<dyn Reader>, Error> {
    let (from, to) = (plan::selects(trace, from).await?, plan::selects(trace, to).await?);
    let conditions = vec![trace.row_condition(&EVENTS, from)?, trace.row_condition(&EVENTS, to)?];
    let mut columns = OF_MARKS.to_vec();
    for column in conditions.iter().flat_map(|condition| condition.columns()) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let window = wanted.window;
    let decode = move |batch: &RecordBatch| marks(batch, window);
    TableReader::open_if(trace, (&EVENTS, &columns), (wanted, &conditions), decode, Slicer::marks, AHEAD)
}

/// Decodes columns that begin with [`OF_MARKS`] and end with whether FROM and TO select the event.
fn marks(batch: &RecordBatch, window: Interval) -> Decoded<Mark> {
    let (tick, cpu) = (Wide::of(batch, 0), Small::of(batch, 1));
    let (lwp, thread) = (Small::of(batch, 2), Wide::of(batch, 3));
    let context = Words::of(batch, 4, Context::from_name);
    let (target_lwp, target_thread) = (Small::of(batch, 5), Wide::of(batch, 6));
    let last = batch.num_columns() - 1;
    let (is_from, is_to) = (booleans(batch, last - 1), booleans(batch, last));
    let mut decoded = Decoded::of_few();
    for row in 0..batch.num_rows() {
        let tick = tick.or_zero(row);
        if !window.contains(tick) {
            continue;
        }
        decoded.rows.push(Mark {
            tick,
            cpu: cpu.get(row),
            context: context.get(row).unwrap_or(Context::Unknown),
            lwp: lwp.get(row),
            thread: thread.thread(row),
            target_lwp: target_lwp.get(row),
            target_thread: target_thread.thread(row),
            // All events of a selector have the same key: it has one name, and one value of one field.
            key: 0,
            is_from: is_from.value(row),
            is_to: is_to.value(row),
        });
    }
    decoded
}
