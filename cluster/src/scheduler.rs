//! `sigmund scheduler`: Ballista's scheduler, which knows our operators and functions.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use ballista_core::config::TaskSchedulingPolicy;
use ballista_scheduler::{
    cluster::BallistaCluster,
    config::{SchedulerConfig, TaskDistributionPolicy},
    scheduler_process::{create_scheduler, start_grpc_service_with_listener},
};
use datafusion::execution::SessionStateBuilder;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;

use crate::{
    MESSAGE,
    codec::Codec,
    log::{self, Print},
    stalled::end_stalled,
    traces::NamedFiles,
};

/// How a scheduler is started.
#[derive(Clone, Debug)]
pub struct SchedulerOptions {
    /// The address where it listens. Port 0 is any free port.
    pub listen: SocketAddr,
    /// The name by which executors reach it, if it is not the address.
    pub host: Option<String>,
    /// If an executor has not reported for this long, it counts as lost, and its tasks go to others.
    pub lost_after: Duration,
}

/// Runs a scheduler. `started` gets its address; warnings are printed.
///
/// # Errors
/// When the address is taken, or the server fails.
pub async fn run_scheduler(
    options: SchedulerOptions,
    started: impl FnOnce(SocketAddr),
    print: Print,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    log::start(print);
    let listener = TcpListener::bind(options.listen).await?;
    let address = listener.local_addr()?;
    let lost_after = options.lost_after.as_secs().max(1);
    let config = SchedulerConfig {
        external_host: options.host.unwrap_or_else(|| address.ip().to_string()),
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        // Distributes the hosts of a fleet over all executors, not over as few as possible.
        task_distribution: TaskDistributionPolicy::RoundRobin,
        executor_timeout_seconds: lost_after,
        expire_dead_executor_interval_seconds: (lost_after / 3).max(1),
        no_executors_grace_period_seconds: lost_after,
        // Executors repeat failed requests to stores themselves.
        task_max_failures: 2,
        grpc_server_max_decoding_message_size: MESSAGE,
        grpc_server_max_encoding_message_size: MESSAGE,
        grpc_client_max_message_size: MESSAGE,
        override_session_builder: Some(Arc::new(|config| {
            let runtime = NamedFiles::default().runtime().build_arc()?;
            let session = SessionStateBuilder::new_with_default_features().with_config(config);
            Ok(session.with_runtime_env(runtime).build())
        })),
        override_physical_codec: Some(Arc::new(Codec::default())),
        ..SchedulerConfig::default()
    };
    config.validate()?;
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let state = cluster.cluster_state();
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config)).await?;
    started(address);
    let stalled = end_stalled(scheduler.clone(), state, options.lost_after);
    tokio::select! {
        ended = start_grpc_service_with_listener(listener, scheduler) => Ok(ended?),
        () = stalled => Ok(()),
    }
}
