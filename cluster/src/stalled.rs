//! Ends queries that cannot go on: all executors are idle, and the scheduler waits for their tasks.
//!
//! Ballista's scheduler (55.0) refuses what an executor reports of a task if its plan has more or fewer operators than that of the
//! first task of the stage, and then waits for this task without end. One such plan is known, and not sent ([`rows`](crate::rows)).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use ballista_core::{JobId, error::Result, serde::protobuf::AvailableVcores};
use ballista_scheduler::{
    cluster::{BoundTask, ClusterState, DistributionPolicy},
    config::TaskDistributionPolicy,
    scheduler_server::SchedulerServer,
    state::task_manager::JobInfoCache,
};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};

/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

type Scheduler = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// Cancels each query of which nothing has run for so long, although executors are there and idle. It does not end.
pub(crate) async fn end_stalled(scheduler: Scheduler, cluster: Arc<dyn ClusterState>, patience: Duration) {
    let mut since: HashMap<JobId, (Instant, Progress)> = HashMap::new();
    loop {
        tokio::time::sleep(LOOK).await;
        let jobs = scheduler.state.task_manager.get_running_job_cache();
        if jobs.is_empty() || !is_idle(cluster.as_ref()).await.unwrap_or(false) {
            since.clear();
            continue;
        }
        since.retain(|job, _| jobs.contains_key(job));
        for (id, job) in jobs.iter() {
            let now = Progress::of(job).await;
            let (begin, before) = since.entry(id.clone()).or_insert_with(|| (Instant::now(), now.clone()));
            if *before != now {
                (*begin, *before) = (Instant::now(), now);
            } else if begin.elapsed() >= patience {
                log::error!(target: "ballista", "query {id}: nothing of it has run for {patience:?}: it is cancelled");
                // When it fails, the scheduler ends.
                let _ = scheduler.cancel_job(id.clone()).await;
            }
        }
    }
}

/// What is another when a query goes on.
#[derive(Clone, PartialEq)]
struct Progress {
    stages: usize,
    /// By stage and number.
    running: Vec<(usize, usize)>,
    available: usize,
}

impl Progress {
    async fn of(job: &JobInfoCache) -> Progress {
        let graph = job.execution_graph.read().await;
        let running = graph.running_tasks().iter().map(|task| (task.stage_id, task.task_id)).collect();
        Progress { stages: graph.completed_stages(), running, available: graph.available_tasks() }
    }
}

/// Whether there are executors, and none of them has a task.
async fn is_idle(cluster: &dyn ClusterState) -> Result<bool> {
    let free = Arc::new(Free::default());
    let policy = TaskDistributionPolicy::Custom(Arc::clone(&free) as Arc<dyn DistributionPolicy>);
    cluster.bind_schedulable_tasks(policy, Arc::default(), None).await?;
    let free = *free.0.lock().unwrap_or_else(PoisonError::into_inner);
    let executors = cluster.registered_executor_metadata().await;
    let all = executors.iter().map(|executor| executor.specification.vcores).sum::<u32>();
    Ok(all > 0 && free >= all)
}

/// Counts the free slots, and gives no task to any.
#[derive(Debug, Default)]
struct Free(Mutex<u32>);

#[async_trait]
impl DistributionPolicy for Free {
    async fn bind_tasks(
        &self,
        budgets: Vec<&mut AvailableVcores>,
        _: Arc<HashMap<JobId, JobInfoCache>>,
    ) -> datafusion::error::Result<Vec<BoundTask>> {
        let free = budgets.iter().map(|budget| budget.vcores).sum();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = free;
        Ok(Vec::new())
    }

    fn name(&self) -> &str {
        "free slots"
    }
}
