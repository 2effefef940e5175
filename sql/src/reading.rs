//! How the rows of a plan are read: in which order, and what of them is decoded.

use arrow::array::RecordBatch;
use datafusion::{error::DataFusionError, prelude::DataFrame};
use futures::StreamExt;
use sigmund_model::tables::Table;
use tokio::sync::mpsc;

use crate::{Error, SuperTrace};

/// Number of batches that are decoded ahead of the current one.
const AHEAD: usize = 4;

impl SuperTrace {
    /// The same plan, read by a single task, file by file. So rows keep the order that they have in the files.
    ///
    /// For `events` that is time order; events with equal ticks are in the order in which the merge wrote them. It
    /// needs no sort, so memory does not grow with the trace. It uses one CPU.
    pub fn in_file_order(&self, frame: DataFrame) -> DataFrame {
        let (mut state, plan) = frame.into_parts();
        state.config_mut().options_mut().execution.target_partitions = 1;
        DataFrame::new(state, plan)
    }

    /// The same plan, which decodes all columns of a batch before it filters the rows.
    ///
    /// Usually, the columns of the filter are decoded first, and the others only where rows pass. Where rows that pass and rows that do
    /// not alternate, as the states of LWPs do, that takes longer than decoding all.
    pub fn filtering_late(&self, frame: DataFrame) -> DataFrame {
        let (mut state, plan) = frame.into_parts();
        state.config_mut().options_mut().execution.parquet.pushdown_filters = false;
        DataFrame::new(state, plan)
    }

    /// Calls `each` with the batches of a plan on a table, in the order of its files. Another task decodes batches in
    /// the meantime.
    ///
    /// # Errors
    /// When a file is damaged. The message names the table.
    pub async fn each_batch(
        &self,
        table: &str,
        frame: DataFrame,
        mut each: impl FnMut(&RecordBatch),
    ) -> Result<(), Error> {
        let on_table = |error| self.error(table, error);
        let mut batches = self.in_file_order(frame).execute_stream().await.map_err(on_table)?;
        let (sender, mut receiver) = mpsc::channel(AHEAD);
        // This task ends at the end of the table, or when the receiver is dropped.
        let decoding = tokio::spawn(async move {
            while let Some(batch) = batches.next().await {
                if sender.send(batch).await.is_err() {
                    return;
                }
            }
        });
        while let Some(batch) = receiver.recv().await {
            each(&batch.map_err(on_table)?);
        }
        // If the task panicked, the table was not read to its end.
        decoding.await.map_err(|error| on_table(DataFusionError::External(Box::new(error))))
    }

    /// As [`each_batch`](Self::each_batch), for some columns of a table as it is stored.
    ///
    /// # Errors
    /// Those of [`each_batch`](Self::each_batch); when the table has no such column.
    pub async fn each_batch_of(
        &self,
        table: &Table,
        columns: &[&str],
        each: impl FnMut(&RecordBatch),
    ) -> Result<(), Error> {
        let frame = self.raw(table).await?.select_columns(columns);
        let frame = frame.map_err(|error| self.error(table.name, error))?;
        self.each_batch(table.name, frame, each).await
    }
}
