//! `sigmund executor`: Ballista's executor, which opens super-traces and computes measures.

use std::{
    net::{IpAddr, SocketAddr, TcpListener},
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ballista_core::{config::TaskSchedulingPolicy, registry::BallistaFunctionRegistry};
use ballista_executor::{
    executor_process::{ExecutorProcessConfig, start_executor_process},
    executor_server::TERMINATING,
};
use datafusion::execution::SessionStateBuilder;
use tokio::net::TcpStream;

use crate::{
    MESSAGE,
    codec::Codec,
    log::{self, Print},
    traces::{NamedFiles, Traces},
};

/// Seconds between two reports to the scheduler.
const HEARTBEAT: u64 = 2;

/// How often it is checked whether the executor is listening.
const LOOK: Duration = Duration::from_millis(20);

/// How an executor is started.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// The scheduler's host and port.
    pub scheduler: (String, u16),
    /// The address where it listens.
    pub listen: IpAddr,
    /// The ports for rows and for tasks. 0 is any free port.
    pub ports: (u16, u16),
    /// The name by which the scheduler, clients and other executors reach it, if it is not the address.
    pub host: Option<String>,
    /// How many partitions it works on at once.
    pub cpus: usize,
    /// How much memory sorts, groups and joins may use, in bytes; 70 % of the machine's if not given.
    pub memory: Option<usize>,
    /// An existing folder for rows that other stages read.
    pub work: PathBuf,
}

/// Runs an executor until a signal ends it, or until its scheduler ends it because it received no report. `started`
/// gets its address. Warnings are printed.
///
/// # Errors
/// When there is no scheduler, an address is taken, or the server fails.
pub async fn run_executor(
    options: ExecutorOptions,
    started: impl FnOnce(SocketAddr),
    print: Print,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    log::start(print);
    let traces = Arc::new(Traces::default());
    let named = Arc::clone(&traces);
    let work = options.work.to_str().ok_or("the folder for rows: expected a path in UTF-8")?.to_string();
    let temporary = options.work.clone();
    let (port, grpc_port) = free_ports(options.listen, options.ports)?;
    let config = ExecutorProcessConfig {
        bind_host: options.listen.to_string(),
        external_host: Some(options.host.unwrap_or_else(|| options.listen.to_string())),
        port,
        grpc_port,
        scheduler_host: options.scheduler.0,
        scheduler_port: options.scheduler.1,
        vcores: options.cpus,
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        work_dir: Some(work),
        grpc_max_decoding_message_size: MESSAGE,
        grpc_max_encoding_message_size: MESSAGE,
        executor_heartbeat_interval_seconds: HEARTBEAT,
        memory_pool_size: options.memory.map(|bytes| bytes as u64),
        override_physical_codec: Some(Arc::new(Codec::of_executor(traces))),
        // Ballista's own list of functions lacks those for lists.
        override_function_registry: Some(Arc::new(BallistaFunctionRegistry::from(
            &SessionStateBuilder::new_with_default_features().build(),
        ))),
        override_runtime_producer: Some(Arc::new(move |_| {
            NamedFiles::of(Arc::clone(&named)).runtime().with_temp_file_path(temporary.clone()).build_arc()
        })),
        ..ExecutorProcessConfig::default()
    };
    // This flag is shared by all executors of the process. If an earlier executor was stopped, it would make this one
    // report that it is ending.
    TERMINATING.store(false, Ordering::Release);
    let address = SocketAddr::new(options.listen, port);
    let executor = start_executor_process(Arc::new(config));
    let listening = async {
        while TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(LOOK).await;
        }
        started(address);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = executor => Ok(ended?),
        () = listening => Ok(()),
    }
}

/// Replaces port 0 by free ports, because Ballista reports the configured ports to the scheduler.
fn free_ports(listen: IpAddr, (port, grpc_port): (u16, u16)) -> std::io::Result<(u16, u16)> {
    let listeners = [port, grpc_port].map(|port| TcpListener::bind((listen, port)));
    let [rows, tasks] = listeners;
    let (rows, tasks) = (rows?, tasks?);
    Ok((rows.local_addr()?.port(), tasks.local_addr()?.port()))
}
