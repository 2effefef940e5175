//! Columns of a batch, by their types in `sigmund_model::tables`.

use arrow::{
    array::{Array, AsArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray},
    datatypes::{Int32Type, Int64Type},
};
use datafusion::{error::DataFusionError, logical_expr::ident, prelude::DataFrame};
use futures::StreamExt;
use sigmund_measures::Interval;
use sigmund_model::{
    ThreadState,
    tables::{THREAD_STATES, Table},
};
use sigmund_sql::SuperTrace;

use crate::Error;

/// Calls `each` with the batches of a table, with these columns.
pub(super) async fn read(
    trace: &SuperTrace,
    table: &Table,
    columns: &[&str],
    window: Option<Interval>,
    each: impl FnMut(&RecordBatch),
) -> Result<(), Error> {
    read_lasting(trace, table, "dur_tick", columns, window, each).await
}

/// Like [`read`], of a table whose lengths are in another column.
pub(super) async fn read_lasting(
    trace: &SuperTrace,
    table: &Table,
    length: &str,
    columns: &[&str],
    window: Option<Interval>,
    each: impl FnMut(&RecordBatch),
) -> Result<(), Error> {
    let on_table = Error::on(trace, table.name);
    let frame = trace.raw(table).await?;
    let frame = overlapping(frame, table, length, window).map_err(&on_table)?;
    let frame = frame.select(columns.iter().map(|column| ident(*column))).map_err(&on_table)?;
    stream(trace, table.name, frame, each).await
}

/// Batches that are decoded ahead of the current one.
const AHEAD: usize = 4;

/// Calls `each` with the batches of a plan on a table. Another task decodes them meanwhile.
pub(super) async fn stream(
    trace: &SuperTrace,
    table: &str,
    frame: DataFrame,
    mut each: impl FnMut(&RecordBatch),
) -> Result<(), Error> {
    let on_table = Error::on(trace, table);
    let mut batches = trace.in_file_order(frame).execute_stream().await.map_err(&on_table)?;
    let (sender, mut receiver) = tokio::sync::mpsc::channel(AHEAD);
    // Ends at the end of the table, or when the receiver is dropped.
    let decoding = tokio::spawn(async move {
        while let Some(batch) = batches.next().await {
            if sender.send(batch).await.is_err() {
                return;
            }
        }
    });
    while let Some(batch) = receiver.recv().await {
        each(&batch.map_err(&on_table)?);
    }
    // If it panicked, the table was not read to its end.
    decoding.await.map_err(|error| on_table(DataFusionError::External(Box::new(error))))
}

/// Rows of intervals that overlap the window; but that user threads have exited before it is of no use to any measure, and a
/// trace may have millions of these.
fn overlapping(
    frame: DataFrame,
    table: &Table,
    length: &str,
    window: Option<Interval>,
) -> Result<DataFrame, DataFusionError> {
    use datafusion::logical_expr::lit;

    let Some(window) = window else { return Ok(frame) };
    let reaches = |column: &str| ident("ts_tick") + ident(column);
    let mut frame = frame;
    if window.to < i64::MAX {
        frame = frame.filter(ident("ts_tick").lt(lit(window.to)))?;
    }
    if window.from > i64::MIN {
        let mut endless = ident(length).is_null();
        if table.name == THREAD_STATES.name {
            let exited = lit(ThreadState::Exited.name());
            endless = endless.and(ident("state").not_eq(exited).or(ident("ts_tick").gt_eq(lit(window.from))));
        }
        frame = frame.filter(endless.or(reaches(length).gt_eq(lit(window.from))))?;
    }
    Ok(frame)
}

/// A column `Int64`.
pub(super) struct Wide<'b>(&'b Int64Array);

impl<'b> Wide<'b> {
    pub(super) fn of(batch: &'b RecordBatch, column: usize) -> Wide<'b> {
        Wide(batch.column(column).as_primitive::<Int64Type>())
    }

    pub(super) fn get(&self, row: usize) -> Option<i64> {
        self.0.is_valid(row).then(|| self.0.value(row))
    }

    pub(super) fn or_zero(&self, row: usize) -> i64 {
        self.get(row).unwrap_or_default()
    }

    pub(super) fn thread(&self, row: usize) -> Option<u64> {
        self.get(row).map(|number| number as u64)
    }
}

/// A column `Int32`, of a CPU, LWP or process, or a small count.
pub(super) struct Small<'b>(&'b Int32Array);

impl<'b> Small<'b> {
    pub(super) fn of(batch: &'b RecordBatch, column: usize) -> Small<'b> {
        Small(batch.column(column).as_primitive::<Int32Type>())
    }

    pub(super) fn get(&self, row: usize) -> Option<u32> {
        self.0.is_valid(row).then(|| self.0.value(row) as u32)
    }

    pub(super) fn or_zero(&self, row: usize) -> u32 {
        self.get(row).unwrap_or_default()
    }
}

/// A column of words, each looked up once a batch.
pub(super) struct Words<'b, T> {
    keys: &'b Int32Array,
    values: Vec<T>,
}

impl<'b, T: Copy> Words<'b, T> {
    pub(super) fn of(
        batch: &'b RecordBatch,
        column: usize,
        mut look_up: impl FnMut(&str) -> T,
    ) -> Words<'b, T> {
        let dictionary = batch.column(column).as_dictionary::<Int32Type>();
        let values = dictionary.values().as_string::<i32>();
        let values = values.iter().map(|word| look_up(word.unwrap_or_default())).collect();
        Words { keys: dictionary.keys(), values }
    }

    pub(super) fn get(&self, row: usize) -> Option<T> {
        if self.keys.is_valid(row) { self.values.get(self.keys.value(row) as usize).copied() } else { None }
    }
}

/// A column of texts.
pub(super) struct Texts<'b>(&'b StringArray);

impl<'b> Texts<'b> {
    pub(super) fn of(batch: &'b RecordBatch, column: usize) -> Texts<'b> {
        Texts(batch.column(column).as_string::<i32>())
    }

    pub(super) fn get(&self, row: usize) -> Option<&'b str> {
        self.0.is_valid(row).then(|| self.0.value(row))
    }
}

/// A column of booleans.
pub(super) fn booleans(batch: &RecordBatch, column: usize) -> &BooleanArray {
    batch.column(column).as_boolean()
}

/// From `ts_tick` and `dur_tick`; to the end of the trace if it has no length.
pub(super) fn interval(from: i64, length: Option<i64>, last: i64) -> Interval {
    Interval::new(from, length.map_or(last, |length| from.saturating_add(length)))
}
