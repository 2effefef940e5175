//! A query while it runs: its place among others, its time limit.
//!
//! Queries have threads of their own, so a query that is busy with one batch for seconds does not keep its client waiting
//! beyond the limit, and the server goes on answering. It does keep its thread until the batch is done, even after its place
//! was given to another: as many such queries as there are threads delay all other queries by that long. Nor does a client that
//! reads slowly, or no more, keep a place beyond the limit.

use std::{sync::Arc, time::Duration};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use arrow_flight::error::FlightError;
use futures::{Stream, StreamExt, stream};
use sigmund_sql::{Error, ErrorKind, SuperTrace};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, mpsc, oneshot},
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tonic::Status;

use crate::statement::Statement;

/// A call that may take this long, from its beginning.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Deadline {
        Deadline { at: Instant::now() + limit, limit }
    }

    /// What `work` gives, if it ends in time.
    async fn wait<T>(self, work: impl Future<Output = T>) -> Result<T, Status> {
        timeout_at(self.at, work).await.map_err(|_| self.late())
    }

    fn late(self) -> Status {
        let message =
            format!("expected a query of at most {:?}, the limit of this server (--time)", self.limit);
        Status::deadline_exceeded(message)
    }
}

/// Batches that are ready before the client reads them.
const AHEAD: usize = 1;

/// Where queries run, and how many.
#[derive(Clone)]
pub(crate) struct Queries {
    pub(crate) trace: Arc<SuperTrace>,
    /// One for each query that may run.
    pub(crate) places: Arc<Semaphore>,
    /// Their threads.
    pub(crate) threads: Handle,
}

impl Queries {
    /// Starts a statement. It is cancelled, and its place is free again, when the stream is dropped.
    pub(crate) async fn run(
        &self,
        statement: Statement,
        deadline: Deadline,
    ) -> Result<(SchemaRef, impl Stream<Item = Result<RecordBatch, FlightError>> + Send + 'static), Status>
    {
        let place = deadline.wait(Arc::clone(&self.places).acquire_owned()).await?;
        let place = place.map_err(|_| Status::unavailable("the server is ending"))?;
        let trace = Arc::clone(&self.trace);
        let (schema, batches) = self
            .on_their_threads(deadline, async move {
                let result = trace.sql_with(&statement.query, &statement.parameters()).await?;
                let schema = without_dictionaries(&result.schema());
                Ok((schema, result.stream().await?))
            })
            .await?;
        let (sender, receiver) = mpsc::channel(AHEAD);
        let (ended, has_ended) = oneshot::channel();
        let mut task = JoinSet::new();
        let sending = async move {
            let mut batches = batches;
            while let Some(batch) = batches.next().await {
                // A query that always has rows, for a client that always reads them, waits for nothing else.
                if Instant::now() >= deadline.at {
                    return Err(deadline.late());
                }
                let has_failed = batch.is_err();
                let batch = batch.map_err(|error| {
                    FlightError::Tonic(Box::new(status(&Error::from_datafusion("query", error))))
                });
                if sender.send(batch).await.is_err() || has_failed {
                    break;
                }
            }
            Ok(())
        };
        let until_late = async move {
            let sent = deadline.wait(sending).await;
            // What the query holds is free by now, and so is its place, whether the client reads or not.
            drop(place);
            let _ = ended.send(sent.and_then(|sent| sent));
        };
        // Not on the threads of queries: all of them may be busy with one batch.
        task.spawn(until_late);
        // Dropping the task cancels it.
        let rows =
            stream::unfold((receiver, Some(has_ended), task), |(mut receiver, has_ended, task)| async move {
                if let Some(batch) = receiver.recv().await {
                    return Some((batch, (receiver, has_ended, task)));
                }
                // Rows that end without a word about it are not all of them.
                let status = has_ended?.await.unwrap_or_else(|_| Err(failed())).err()?;
                Some((Err(FlightError::Tonic(Box::new(status))), (receiver, None, task)))
            });
        Ok((schema, rows))
    }

    /// The columns of a statement, without running it.
    pub(crate) async fn columns(
        &self,
        statement: Statement,
        deadline: Deadline,
    ) -> Result<SchemaRef, Status> {
        let trace = Arc::clone(&self.trace);
        let columns = async move {
            let result = trace.sql_with(&statement.query, &statement.parameters()).await?;
            Ok(without_dictionaries(&result.schema()))
        };
        self.on_their_threads(deadline, columns).await
    }

    async fn on_their_threads<T: Send + 'static>(
        &self,
        deadline: Deadline,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Status> {
        // Dropping it cancels what is in it.
        let mut task = JoinSet::new();
        task.spawn_on(work, &self.threads);
        match deadline.wait(task.join_next()).await? {
            Some(Ok(result)) => result.map_err(|error| status(&error)),
            _ => Err(failed()),
        }
    }
}

fn failed() -> Status {
    Status::internal("the query ended without an answer: this is a defect of sigmund")
}

/// The columns as they are sent: many clients know no dictionaries.
pub(crate) fn without_dictionaries(schema: &Schema) -> SchemaRef {
    fn plain(field: &Field) -> Field {
        let ty = match field.data_type() {
            DataType::Dictionary(_, values) => values.as_ref().clone(),
            DataType::List(items) => DataType::List(Arc::new(plain(items))),
            other => other.clone(),
        };
        field.clone().with_data_type(ty)
    }
    let fields: Vec<Field> = schema.fields().iter().map(|field| plain(field)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// What a client is told of an error.
pub(crate) fn status(error: &Error) -> Status {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Query => Status::invalid_argument(text),
        ErrorKind::Refused => Status::permission_denied(text),
        ErrorKind::BeyondMemory => Status::resource_exhausted(text),
        _ => Status::internal(text),
    }
}
