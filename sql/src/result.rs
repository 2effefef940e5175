//! The result of a query. Rows are computed on demand.

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{
    execution::SendableRecordBatchStream, logical_expr::LogicalPlan,
    physical_plan::stream::RecordBatchReceiverStreamBuilder, prelude::DataFrame,
};
use futures::{StreamExt, future::BoxFuture};

use crate::{
    Drawn, Error,
    drawing::{Drawing, PART},
    files::Sources,
    running::Running,
};

/// Number of batches that are computed ahead.
const AHEAD: usize = 2;

/// The result of a query that has not run yet.
#[derive(Debug)]
pub struct QueryResult {
    frame: DataFrame,
    query: String,
    /// The files that it may read.
    sources: Sources,
    /// If a table is wider than this, each row is drawn as a block of lines.
    width: Option<usize>,
}

impl QueryResult {
    pub(crate) fn new(frame: DataFrame, query: &str, sources: Sources) -> QueryResult {
        QueryResult { frame, query: query.to_string(), sources, width: None }
    }

    /// Sets the width of the terminal for drawing. If a table is wider, each row is drawn as a block of lines.
    #[must_use]
    pub fn within(mut self, width: usize) -> QueryResult {
        self.width = Some(width);
        self
    }

    /// Its columns.
    pub fn schema(&self) -> SchemaRef {
        self.frame.schema().inner().clone()
    }

    /// Runs the query in its own task. Batches come as they are computed. Dropping the stream ends the task.
    ///
    /// # Errors
    /// When it cannot be planned. Errors of the running query are items of the stream. [`Error::from_datafusion`]
    /// converts these; for a damaged file, the error has the file's name.
    pub fn stream(self) -> BoxFuture<'static, Result<SendableRecordBatchStream, Error>> {
        Box::pin(async move {
            let QueryResult { frame, query, sources, .. } = self;
            let mut running = match Running::start(frame).await {
                Ok(running) => running,
                Err(error) => return Err(Error::from_datafusion(query, error)),
            };
            let mut stream = RecordBatchReceiverStreamBuilder::new(running.batches().schema(), AHEAD);
            let sender = stream.tx();
            stream.spawn(async move {
                while let Some(batch) = running.next(&sources).await {
                    if sender.send(batch).await.is_err() {
                        break;
                    }
                }
                Ok(())
            });
            Ok(stream.build())
        })
    }

    /// Runs the query and keeps all rows.
    ///
    /// # Errors
    /// When it fails, for instance on a damaged file.
    pub fn collect(self) -> BoxFuture<'static, Result<Vec<RecordBatch>, Error>> {
        Box::pin(async move {
            let QueryResult { frame, query, sources, .. } = self;
            let collected = async {
                let mut running = Running::start(frame).await?;
                let mut batches = Vec::new();
                while let Some(batch) = running.next(&sources).await {
                    batches.push(batch?);
                }
                Ok(batches)
            };
            collected.await.map_err(|error| Error::from_datafusion(query, error))
        })
    }

    /// Runs the query and draws its rows as a table for people, with control characters escaped. `each` gets the lines
    /// as rows are computed, some thousand lines at a time. So a table of any length needs little memory. Returns the
    /// number of rows.
    ///
    /// # Errors
    /// When it fails, for instance on a damaged file; those of `each`.
    pub async fn draw_parts<E: From<Error>>(
        self,
        each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<usize, E> {
        Ok(self.draw_at_most(usize::MAX, each).await?.0)
    }

    /// Draws at most `most` rows. Returns their number, and whether these are all.
    async fn draw_at_most<E: From<Error>>(
        self,
        most: usize,
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(usize, bool), E> {
        let is_plan = matches!(self.frame.logical_plan(), LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
        let query = self.query.clone();
        let failed = |error| E::from(Error::from_datafusion(query.clone(), error));
        let width = self.width.filter(|_| !is_plan);
        let mut drawing = Drawing::new(&self.schema(), is_plan, width);
        let mut stream = self.stream().await?;
        let (mut part, mut rows, mut is_all) = (Vec::new(), 0, true);
        while let Some(batch) = stream.next().await {
            let mut batch = batch.map_err(failed)?;
            let left = most - drawing.rows() - rows;
            is_all = batch.num_rows() <= left;
            batch = batch.slice(0, batch.num_rows().min(left));
            while batch.num_rows() > 0 {
                let taken = batch.num_rows().min(PART - rows);
                part.push(batch.slice(0, taken));
                batch = batch.slice(taken, batch.num_rows() - taken);
                rows += taken;
                if rows == PART {
                    each(&drawing.next(&part).map_err(|error| failed(error.into()))?)?;
                    part.clear();
                    rows = 0;
                }
            }
            if !is_all {
                break;
            }
        }
        if !part.is_empty() {
            each(&drawing.next(&part).map_err(|error| failed(error.into()))?)?;
        }
        let rows = drawing.rows();
        each(&drawing.end().map_err(|error| failed(error.into()))?)?;
        Ok((rows, is_all))
    }

    /// Runs the query and draws all rows as one text.
    ///
    /// # Errors
    /// As [`draw_parts`](Self::draw_parts).
    pub async fn draw(self) -> Result<Drawn, Error> {
        Ok(self.draw_first(usize::MAX).await?.0)
    }

    /// Draws the first rows. Also returns whether these are all. The other rows are not computed, unless the query
    /// needs them.
    ///
    /// # Errors
    /// As [`draw_parts`](Self::draw_parts).
    pub async fn draw_first(self, most: usize) -> Result<(Drawn, bool), Error> {
        let mut text = String::new();
        let each = |lines: &str| {
            text.push_str(lines);
            Ok::<_, Error>(())
        };
        let (rows, is_all) = self.draw_at_most(most, each).await?;
        text.truncate(text.trim_end().len());
        Ok((Drawn { text, rows }, is_all))
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
