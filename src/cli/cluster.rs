//! The arguments of clusters: which one is asked, and how its processes are started.

#[cfg(feature = "cluster")]
use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use anyhow::Result;
use clap::Args;
#[cfg(feature = "cluster")]
use clap::{ValueHint, value_parser};
use sigmund_sql::SuperTrace;

#[cfg(feature = "cluster")]
use super::{serve::time, sql::memory};

/// Where a question is answered. A command that was built without clusters has no choice.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    #[cfg(feature = "cluster")]
    /// Answer on the cluster with this scheduler (sigmund scheduler). Its executors read the super-traces at the same paths, or
    /// at s3://BUCKET/PATH.
    #[arg(long, value_name = "URL")]
    #[arg(conflicts_with = "keep_going")]
    cluster: Option<String>,
    /// It would be taken for another option that is similar.
    #[cfg(not(feature = "cluster"))]
    #[arg(long, value_name = "URL", hide = true, value_parser = none)]
    cluster: Option<String>,
}

#[cfg(not(feature = "cluster"))]
fn none(_: &str) -> Result<String, String> {
    Err(WITHOUT_CLUSTERS.into())
}

/// The error for options that a command without clusters does not support.
#[cfg(not(feature = "cluster"))]
pub(crate) const WITHOUT_CLUSTERS: &str =
    "this sigmund was built without clusters: cargo build --features cluster makes one that has them";

#[cfg(feature = "cluster")]
impl ClusterArgs {
    /// Whether a cluster is to answer.
    pub(crate) fn is_asked(&self) -> bool {
        self.cluster.is_some()
    }

    /// From now on, queries and measures of this super-trace are answered by the cluster.
    ///
    /// # Errors
    /// When no cluster answers, or it cannot be asked about this super-trace.
    pub(crate) fn join(&self, trace: &SuperTrace) -> Result<()> {
        let Some(url) = &self.cluster else { return Ok(()) };
        let cluster = sigmund_cluster::Cluster::at(url);
        let joined = cluster.and_then(|cluster| cluster.join(trace));
        joined.map_err(|error| anyhow::anyhow!("--cluster: {error}"))
    }
}

#[cfg(not(feature = "cluster"))]
impl ClusterArgs {
    /// Never true, because the option is refused.
    pub(crate) fn is_asked(&self) -> bool {
        self.cluster.is_some()
    }

    /// Nothing to join.
    pub(crate) fn join(&self, _: &SuperTrace) -> Result<()> {
        Ok(())
    }
}

#[cfg(feature = "cluster")]
#[derive(Debug, Args)]
#[command(after_help = "\
It prints its URL, for executors and for --cluster. Ctrl-C ends it. There is no authentication: anyone who can connect can run
queries on all that the executors can read. docs/cluster.md has more.

Example:
  sigmund scheduler --listen 127.0.0.1:50050
  sigmund executor --scheduler http://127.0.0.1:50050
  sigmund sql --cluster http://127.0.0.1:50050 server.supertrace 'SELECT count(*) FROM events GROUP BY name'

Exit status: 0 ended by a signal, 2 error.")]
pub(crate) struct SchedulerArgs {
    /// Where to listen; port 0 is any that is free.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:50050")]
    pub(crate) listen: SocketAddr,
    /// The name by which executors reach it, if that is not the address.
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// An executor that has not reported for this long is lost, and its tasks go to others. Executors report every 2 s.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = lost_after)]
    pub(crate) lost_after: Duration,
}

#[cfg(feature = "cluster")]
#[derive(Debug, Args)]
#[command(after_help = "\
It reads the super-traces that queries name: the paths, or s3://BUCKET/PATH, are those of the clients. Keys of stores come from
its own environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT). Ctrl-C ends it.

Exit status: 0 ended by a signal, 2 error.")]
pub(crate) struct ExecutorArgs {
    /// The scheduler.
    #[arg(long, value_name = "URL", value_parser = scheduler_url)]
    pub(crate) scheduler: (String, u16),
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// The ports: of rows, and of tasks. 0 is any that is free.
    #[arg(long, value_name = "PORT", num_args = 2, default_values_t = [0, 0])]
    pub(crate) ports: Vec<u16>,
    /// The name by which the scheduler, clients and other executors reach it, if that is not the address.
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// How many parts of queries it works on at once; all CPUs if not given.
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) cpus: Option<u16>,
    /// How much memory sorts, groups and joins may use; what needs more goes to temporary files. 70 % of the machine's if not
    /// given.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub(crate) memory: Option<usize>,
    /// Where rows are kept between the stages of a query, and temporary files; a new folder in the system's if not given.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) work: Option<PathBuf>,
}

/// At least three reports of an executor fit into this time.
#[cfg(feature = "cluster")]
fn lost_after(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    match time >= Duration::from_secs(6) {
        true => Ok(time),
        false => Err("expected 6s or more".into()),
    }
}

#[cfg(feature = "cluster")]
fn scheduler_url(text: &str) -> Result<(String, u16), String> {
    let address = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let parts = address.rsplit_once(':').filter(|(host, _)| !host.is_empty() && !host.contains('/'));
    let parts = parts.and_then(|(host, port)| Some((host.to_string(), port.parse().ok()?)));
    parts.ok_or_else(|| "expected http://HOST:PORT".into())
}
