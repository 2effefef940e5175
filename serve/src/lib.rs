//! A server of Arrow Flight SQL: ADBC, JDBC and ODBC drivers, BI tools and data frames ask super-traces.
//!
//! ```text
//! token.rs      who may ask
//! service.rs    what a client may send, and what answers it
//! statement.rs  a query with the values of its parameters, as clients hold it between two calls
//! running.rs    a query while it runs: its threads, its place among others, its time limit
//! catalog.rs    which tables there are
//! ```
//!
//! 1. Every call has to have the token. Without it, no query is run.
//! 2. A client can only read: a statement that would change anything is refused by [`SuperTrace::sql`].
//! 3. A query ends when its client disconnects, or when its time is over. All queries share the memory limit of the
//!    session. At most a fixed number of queries run at once. Others wait, and the waiting counts as part of their
//!    time.
//! 4. The server keeps nothing for a client between two calls. Tickets and prepared statements contain the text of the
//!    query.
//!
//! The protocol: <https://arrow.apache.org/docs/format/FlightSql.html>.

#![forbid(unsafe_code)]

mod catalog;
mod running;
mod service;
mod statement;
mod token;

use std::{future::Future, io, net, sync::Arc, time::Duration};

use arrow_flight::flight_service_server::FlightServiceServer;
use sigmund_sql::SuperTrace;
use tokio::{
    net::TcpListener,
    runtime,
    sync::{Semaphore, oneshot},
};
use tonic::transport::{Server, server::TcpIncoming};

pub use self::token::Token;
use self::{running::Queries, service::Service};

/// The maximum number of concurrent streams of a connection.
const MOST_STREAMS: u32 = 64;

/// Limits of queries.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a query may take, from the call to its last row.
    pub time: Duration,
    /// How many queries run at once; others wait.
    pub queries: usize,
}

/// How long running queries may take to end when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// Answers clients until `shutdown` is ready. Queries that are running then have two seconds to end.
///
/// # Errors
/// When the socket cannot be used, or the server fails.
pub async fn serve(
    trace: Arc<SuperTrace>,
    listener: net::TcpListener,
    token: Token,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let incoming = TcpIncoming::from(TcpListener::from_std(listener)?).with_nodelay(Some(true));
    let places = Arc::new(Semaphore::new(limits.queries));
    let threads = runtime::Builder::new_multi_thread()
        .thread_name("sigmund-query")
        .thread_stack_size(sigmund_sql::QUERY_STACK)
        .enable_all()
        .build()?;
    let queries = Queries { trace, places, threads: threads.handle().clone() };
    let service = Service { queries, time: limits.time, bearer: token.bearer() };
    let service = FlightServiceServer::with_interceptor(service, move |request| token.check(request));
    let server = Server::builder().max_concurrent_streams(Some(MOST_STREAMS)).add_service(service);
    let (ended, is_ended) = oneshot::channel();
    let shutdown = async {
        shutdown.await;
        // If the server has failed, nothing receives this.
        let _ = ended.send(());
    };
    let last = async {
        let _ = is_ended.await;
        tokio::time::sleep(GRACE).await;
    };
    let result = tokio::select! {
        result = server.serve_with_incoming_shutdown(incoming, shutdown) => result.map_err(io::Error::other),
        () = last => Ok(()),
    };
    // Not waited for: no client needs the work that a query has left behind.
    threads.shutdown_background();
    result
}
