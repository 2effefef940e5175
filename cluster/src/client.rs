//! A client of a cluster. The session of its super-trace plans queries as before, and the cluster executes the plans.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use ballista_core::{
    config::{
        BALLISTA_CLIENT_GRPC_HTTP2_KEEPALIVE_INTERVAL_SECONDS, BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK,
    },
    extension::SessionConfigExt,
    optimizer::with_ballista_optimizer_rules,
};
use datafusion::{
    common::{DataFusionError, Result},
    execution::{SessionStateBuilder, TaskContext},
    physical_optimizer::optimizer::PhysicalOptimizer,
    physical_plan::{ExecutionPlan, execute_stream},
};
use futures::StreamExt;
use sigmund_query::{Asked, Elsewhere, Error, Measured, measure_elsewhere};
use sigmund_sql::{SortByWholeKeys, SuperTrace};

use crate::{
    MESSAGE,
    answers::{Piece, measured},
    codec::Codec,
    measured::{MeasureExec, Question, pieces_of},
    place::Place,
    planner::{ClusterExec, ClusterPlanner},
    traces::NamedFiles,
};

/// The number of partitions of a plan. The same as in Ballista's own clients.
const PARTS: usize = 16;

/// How long a scheduler may take to answer that it is there.
const GREETING: Duration = Duration::from_secs(5);

/// While a client waits for an answer: how often it checks whether the scheduler is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// A scheduler that answers, and has executors.
#[derive(Debug)]
pub struct Cluster(Arc<Scheduler>);

impl Cluster {
    /// Checks whether there is a scheduler at `http://HOST:PORT`, or `HOST:PORT`, and whether it has executors.
    ///
    /// # Errors
    /// When there is no scheduler, or it has no executors. The message says what to do.
    pub fn at(url: &str) -> Result<Cluster, String> {
        let address = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
        let is_one = address
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if !is_one || address.contains('/') {
            return Err(format!("expected http://HOST:PORT of a scheduler, found {url}"));
        }
        match status(address) {
            Ok(200) => Ok(Cluster(Arc::new(Scheduler { url: format!("http://{address}") }))),
            Ok(503) => Err(format!(
                "the scheduler at {url} has no executor: start some with `sigmund executor --scheduler http://{address}`"
            )),
            Ok(other) => Err(format!("expected a scheduler at {url}, found a server that answers {other}")),
            Err(error) => Err(format!(
                "no scheduler answers at {url}: {error}; start one with `sigmund scheduler`, or check the address"
            )),
        }
    }

    /// From now on, queries and measures of this super-trace, and of those attached to it, run on the cluster.
    ///
    /// # Errors
    /// When other machines could not find a super-trace by its name.
    pub fn join(&self, trace: &SuperTrace) -> Result<(), String> {
        let mut places = BTreeMap::new();
        for trace in std::iter::once(trace).chain(trace.attached().values()) {
            // URLs of stores in plans end with this slash.
            places.insert(trace.files_url().as_str().to_string(), Place::of(trace)?);
        }
        let codec = Arc::new(Codec::default());
        let runtime = NamedFiles::default().runtime().build_arc().map_err(|error| error.to_string())?;
        let state = trace.session().state_ref();
        let mut state = state.write();
        let config = state.config().clone().upgrade_for_ballista().with_target_partitions(PARTS);
        // Ballista's adaptive planner makes other plans. These have not been compared with ours.
        let config = config.with_ballista_adaptive_query_planner(false);
        let mut config = config.with_ballista_grpc_client_max_message_size(MESSAGE as usize);
        let options = config.options_mut();
        let alive = KEEP_ALIVE.as_secs().to_string();
        options
            .set(BALLISTA_CLIENT_GRPC_HTTP2_KEEPALIVE_INTERVAL_SECONDS, &alive)
            .map_err(|error| error.to_string())?;
        // The encoding of a scan does not include two properties: that its files must not change places, and that it is
        // read backward. So both are switched off.
        options.execution.enable_file_stream_work_stealing = false;
        options.optimizer.enable_sort_pushdown = false;
        options.catalog.create_default_catalog_and_schema = false;
        let mut rules = PhysicalOptimizer::default().rules;
        rules.push(Arc::new(SortByWholeKeys));
        let joined = SessionStateBuilder::new_from_existing(state.clone())
            .with_config(config)
            .with_optimizer_rules(with_ballista_optimizer_rules(state.optimizers()))
            // Without our rule that makes queries yield: it is only for queries in this process.
            .with_physical_optimizer_rules(rules);
        let checking =
            SessionStateBuilder::new_from_existing(state.clone()).with_runtime_env(runtime).build();
        let planner = ClusterPlanner {
            scheduler: Arc::clone(&self.0),
            places,
            codec: Arc::clone(&codec),
            checking: checking.task_ctx(),
        };
        *state = joined.with_query_planner(Arc::new(planner)).build();
        drop(state);
        // Each super-trace has to be its own task. Otherwise an executor with several slots would take several at once,
        // and other executors none.
        let mut config = trace.session().copied_config();
        let one = config.options_mut().set(BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, "1");
        one.map_err(|error| error.to_string())?;
        let context = Arc::new(TaskContext::default().with_session_config(config));
        measure_elsewhere(trace, Arc::new(OnCluster { scheduler: Arc::clone(&self.0), codec, context }));
        Ok(())
    }
}

/// The HTTP status of the scheduler's answer to the question whether it is ready, that is, whether it has executors.
fn status(address: &str) -> io::Result<u16> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for candidate in address.to_socket_addrs()? {
        match greeted(&candidate, address) {
            Ok(status) => return Ok(status),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn greeted(candidate: &SocketAddr, host: &str) -> io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(candidate, GREETING)?;
    stream.set_read_timeout(Some(GREETING))?;
    stream.set_write_timeout(Some(GREETING))?;
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    // "HTTP/1.1 200"
    let mut line = [0; 12];
    stream.read_exact(&mut line)?;
    let status =
        std::str::from_utf8(&line).ok().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.parse().ok());
    status.ok_or_else(|| io::Error::other("it does not speak HTTP"))
}

/// The scheduler at a URL.
#[derive(Debug)]
pub(crate) struct Scheduler {
    url: String,
}

impl Scheduler {
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// An error of the cluster in one line, without the names of the errors that wrap it.
    pub(crate) fn error(&self, error: &DataFusionError) -> DataFusionError {
        let text = error.strip_backtrace();
        let message = match shortened(&text) {
            // If the client did not cancel it, `stalled.rs` did.
            "Cancelled" => {
                "nothing of the query ran, and executors were idle: leave out --cluster".to_string()
            }
            // What tonic says when a connection ends or cannot be made.
            other
                if ["h2 protocol error", "transport error", "tcp connect error"]
                    .iter()
                    .any(|of| text.contains(of)) =>
            {
                format!(
                    "it stopped to answer; is its scheduler still running? Start it again, or leave out --cluster ({other})"
                )
            }
            other => other.to_string(),
        };
        DataFusionError::External(format!("the cluster at {}: {message}", self.url).into())
    }
}

/// The first line of an error, without the prefixes of Ballista and DataFusion.
fn shortened(text: &str) -> &str {
    let mut rest = text.lines().next().unwrap_or_default();
    while let Some((before, behind)) = rest.split_once(": ") {
        let is_around =
            AROUND.contains(&before) || (before.starts_with("Job ") && before.ends_with(" failed"));
        if !is_around {
            break;
        }
        rest = behind;
    }
    rest
}

/// Prefixes that Ballista and DataFusion put before the text of an error.
const AROUND: [&str; 7] = [
    "Execution error",
    "External error",
    "Arrow error",
    "Object Store error",
    "Parquet error",
    "DataFusion error",
    "Job failed due to stage 1 failed",
];

/// Computes measures on a cluster.
struct OnCluster {
    scheduler: Arc<Scheduler>,
    codec: Arc<Codec>,
    context: Arc<TaskContext>,
}

impl std::fmt::Debug for OnCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnCluster").field("scheduler", &self.scheduler).finish_non_exhaustive()
    }
}

#[async_trait]
impl Elsewhere for OnCluster {
    async fn measure(
        &self,
        traces: &[&SuperTrace],
        asked: &Asked,
    ) -> Result<Vec<Result<Measured, Error>>, Error> {
        let places = traces.iter().map(|trace| Place::of(trace)).collect::<Result<Vec<Place>, String>>();
        let places = places.map_err(Error::elsewhere)?;
        let pieces = self.pieces(Question::new(asked), &places).await;
        let pieces = pieces.map_err(|error| Error::elsewhere(error.strip_backtrace()))?;
        Ok(pieces.into_iter().map(measured).collect())
    }
}

impl OnCluster {
    /// The pieces of the answer about each super-trace.
    async fn pieces(&self, question: Question, places: &[Place]) -> Result<Vec<Vec<Piece>>> {
        let plan = MeasureExec::about(question, places)?;
        let plan: Arc<dyn ExecutionPlan> =
            Arc::new(ClusterExec::new(Arc::clone(&self.scheduler), Arc::clone(&self.codec), plan));
        let mut rows = execute_stream(plan, Arc::clone(&self.context))?;
        let mut pieces: Vec<Vec<Piece>> = places.iter().map(|_| Vec::new()).collect();
        while let Some(batch) = rows.next().await.transpose()? {
            for (number, piece) in pieces_of(&batch)? {
                if let Some(pieces) = usize::try_from(number).ok().and_then(|number| pieces.get_mut(number)) {
                    pieces.push(piece);
                }
            }
        }
        Ok(pieces)
    }
}
