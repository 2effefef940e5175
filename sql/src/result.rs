//! The result of a query. Rows are computed on demand.

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{
    error::DataFusionError, execution::SendableRecordBatchStream, logical_expr::LogicalPlan,
    physical_plan::stream::RecordBatchReceiverStreamBuilder, prelude::DataFrame,
};
use futures::StreamExt;

use crate::{Drawn, Error, drawing};

/// Number of batches that are computed ahead.
const AHEAD: usize = 2;

/// The result of a query that has not run yet.
#[derive(Debug)]
pub struct QueryResult {
    frame: DataFrame,
    query: String,
}

impl QueryResult {
    pub(crate) fn new(frame: DataFrame, query: &str) -> QueryResult {
        QueryResult { frame, query: query.to_string() }
    }

    /// Its columns.
    pub fn schema(&self) -> SchemaRef {
        self.frame.schema().inner().clone()
    }

    /// Runs the query in a task of its own, which ends when the stream is dropped; batches come as they are computed.
    ///
    /// # Errors
    /// When it cannot be planned. Errors of the running query are items of the stream.
    pub async fn stream(self) -> Result<SendableRecordBatchStream, Error> {
        let query = self.query;
        let mut batches = self.frame.execute_stream().await.map_err(|e| Error::from_datafusion(query, e))?;
        let mut stream = RecordBatchReceiverStreamBuilder::new(batches.schema(), AHEAD);
        let sender = stream.tx();
        stream.spawn(async move {
            while let Some(batch) = batches.next().await {
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
            Ok(())
        });
        Ok(stream.build())
    }

    /// Runs the query and keeps all rows.
    ///
    /// # Errors
    /// When it fails, for instance on a damaged file.
    pub async fn collect(self) -> Result<Vec<RecordBatch>, Error> {
        let query = self.query;
        self.frame.collect().await.map_err(|e| Error::from_datafusion(query, e))
    }

    /// Runs the query and draws all rows as a table for people, with control characters escaped.
    ///
    /// # Errors
    /// When it fails, for instance on a damaged file.
    pub async fn draw(self) -> Result<Drawn, Error> {
        let is_plan = matches!(self.frame.logical_plan(), LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
        let (schema, query) = (self.schema(), self.query.clone());
        let batches = self.collect().await?;
        drawing::draw(&schema, &batches, is_plan)
            .map_err(|e| Error::from_datafusion(query, DataFusionError::from(e)))
    }

    /// Draws the first rows; and whether these are all. The others are not computed, unless the query needs them.
    ///
    /// # Errors
    /// When it fails, for instance on a damaged file.
    pub async fn draw_first(self, most: usize) -> Result<(Drawn, bool), Error> {
        let is_plan = matches!(self.frame.logical_plan(), LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
        let (schema, query) = (self.schema(), self.query.clone());
        let mut stream = self.stream().await?;
        let (mut batches, mut rows, mut is_all) = (Vec::new(), 0, true);
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|error| Error::from_datafusion(query.clone(), error))?;
            is_all = batch.num_rows() <= most - rows;
            let batch = batch.slice(0, batch.num_rows().min(most - rows));
            rows += batch.num_rows();
            batches.push(batch);
            if !is_all {
                break;
            }
        }
        let drawn = drawing::draw(&schema, &batches, is_plan);
        drawn
            .map(|drawn| (drawn, is_all))
            .map_err(|e| Error::from_datafusion(query, DataFusionError::from(e)))
    }

    /// The lines of [`QueryResult::draw`].
    ///
    /// # Errors
    /// When it fails, for instance on a damaged file.
    pub async fn to_text(self) -> Result<String, Error> {
        Ok(self.draw().await?.text)
    }

    /// The DataFusion plan, to build on.
    pub fn into_frame(self) -> DataFrame {
        self.frame
    }
}
