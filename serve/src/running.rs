//! Runs queries: each has a place among a limited number, and a time limit.
//!
//! Queries run on threads of their own. So if a query is busy with one batch for seconds, its client still gets an
//! answer at the time limit, and the server answers other calls. Such a query keeps its thread until the batch is done,
//! even if its place has been given to another query. If there are as many such queries as threads, all other queries
//! are delayed that long. A client that reads slowly, or has stopped reading, does not keep its place beyond the limit
//! either.

use std::{sync::Arc, time::Duration};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use arrow_flight::error::FlightError;
use futures::{Stream, StreamExt, future::BoxFuture, stream};
use sigmund_sql::{Error, ErrorKind, SuperTrace};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, mpsc, oneshot},
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tonic::Status;

use crate::statement::Statement;

/// The time at which a call has to be finished.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Deadline {
        Deadline { at: Instant::now() + limit, limit }
    }

    /// The result of `work`, if it ends in time.
    async fn wait<T>(self, work: impl Future<Output = T>) -> Result<T, Status> {
        timeout_at(self.at, work).await.map_err(|_| self.late())
    }

    fn late(self) -> Status {
        let message =
            format!("expected a query of at most {:?}, the limit of this server (--time)", self.limit);
        Status::deadline_exceeded(message)
    }
}

/// The number of batches that are computed before the client reads them.
const AHEAD: usize = 1;

/// The threads of queries, and the limit of their number.
#[derive(Clone)]
pub(crate) struct Queries {
    pub(crate) trace: Arc<SuperTrace>,
    /// One permit for each query that may run.
    pub(crate) places: Arc<Semaphore>,
    /// The threads of queries.
    pub(crate) threads: Handle,
}

impl Queries {
    /// Starts a statement. If the stream is dropped, the statement is cancelled, and its place is free again.
    pub(crate) async fn run(
        &self,
        statement: Statement,
        deadline: Deadline,
    ) -> Result<(SchemaRef, impl Stream<Item = Result<RecordBatch, FlightError>> + Send + 'static), Status>
    {
        let place = deadline.wait(Arc::clone(&self.places).acquire_owned()).await?;
        let place = place.map_err(|_| Status::unavailable("the server is ending"))?;
        let trace = Arc::clone(&self.trace);
        let started = async move {
            let result = trace.sql_with(&statement.query, &statement.parameters()).await?;
            let schema = without_dictionaries(&result.schema());
            Ok((schema, result.stream().await?))
        };
        let (schema, batches) = self.on_their_threads(deadline, Box::pin(started)).await?;
        let (sender, receiver) = mpsc::channel(AHEAD);
        let (ended, has_ended) = oneshot::channel();
        let mut task = JoinSet::new();
        let sending = async move {
            let mut batches = batches;
            while let Some(batch) = batches.next().await {
                // If a query always has rows, and the client always reads them, nothing else would check the deadline.
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
            // The query's resources are free now. Its place is freed too, whether the client reads or not.
            drop(place);
            let _ = ended.send(sent.and_then(|sent| sent));
        };
        // Not on the threads of queries, because all of these may be busy with one batch.
        task.spawn(until_late);
        // Dropping the task cancels it.
        let rows =
            stream::unfold((receiver, Some(has_ended), task), |(mut receiver, has_ended, task)| async move {
                if let Some(batch) = receiver.recv().await {
                    return Some((batch, (receiver, has_ended, task)));
                }
                // If the rows end and the status is missing, some rows are missing.
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
        self.on_their_threads(deadline, Box::pin(columns)).await
    }

    /// The work is boxed: otherwise rustc looks through all that its future holds, for 6 s in each method of the service.
    async fn on_their_threads<T: Send + 'static>(
        &self,
        deadline: Deadline,
        work: BoxFuture<'static, Result<T, Error>>,
    ) -> Result<T, Status> {
        // Dropping the set cancels its task.
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

/// The schema as it is sent. Many clients do not support dictionaries.
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

/// The status that a client gets for an error.
pub(crate) fn status(error: &Error) -> Status {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Query => Status::invalid_argument(text),
        ErrorKind::Refused => Status::permission_denied(text),
        ErrorKind::BeyondMemory => Status::resource_exhausted(text),
        _ => Status::internal(text),
    }
}
