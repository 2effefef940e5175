//! Ends queries that cannot continue: all executors are idle, although the scheduler waits for their tasks.
//!
//! Ballista's scheduler (55.0) rejects a task's report if the plan in it has more or fewer operators than the plan of
//! the first task of the stage. It then waits for that task forever. One such plan is known, and is not sent
//! ([`rows`](crate::rows)).

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

/// The time between two checks.
const LOOK: Duration = Duration::from_secs(1);

type Scheduler = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// Cancels each query of which nothing has run for `patience`, although there are executors and they are idle. This
/// function does not return.
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
                // If this fails, the scheduler ends.
                let _ = scheduler.cancel_job(id.clone()).await;
            }
        }
    }
}

/// The progress of a query: it changes whenever the query continues.
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

/// Counts the free slots, and assigns no tasks.
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
