//! Ends queries that cannot continue, and gives back slots of executors that no task has.
//!
//! Ballista's scheduler (55.0) rejects a task's report if the plan in it has more or fewer operators than the plan of
//! the first task of the stage. It then waits for that task forever. One such plan is known, and is not sent
//! ([`rows`](crate::rows)).
//!
//! When an executor is lost, the stages that need its results are rolled back. For a task of such a stage that still runs on another
//! executor, the scheduler does not free the slot when the task ends: the stage no longer has the task. So a surviving
//! executor may have no free slot, although it has no task.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use ballista_core::{
    JobId,
    error::{BallistaError, Result},
    serde::protobuf::{AvailableVcores, UpdateTaskStatusParams, scheduler_grpc_server::SchedulerGrpc},
};
use ballista_scheduler::{
    cluster::{BoundTask, ClusterState, DistributionPolicy, ExecutorSlot},
    config::TaskDistributionPolicy,
    scheduler_server::SchedulerServer,
    state::task_manager::JobInfoCache,
};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};

/// The time between two checks.
const LOOK: Duration = Duration::from_secs(1);

type Scheduler = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// Watches all queries. If no task of any query has run for `patience`, the slots that are still taken are given back. A query of
/// which nothing has run for `patience` then, although there are executors and all are idle, is cancelled. This function
/// does not return.
pub(crate) async fn end_stalled(scheduler: Scheduler, cluster: Arc<dyn ClusterState>, patience: Duration) {
    let mut since: HashMap<JobId, (Instant, Progress)> = HashMap::new();
    let mut without_tasks: Option<Instant> = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let jobs = scheduler.state.task_manager.get_running_job_cache();
        let Some(slots) =
            Slots::of(cluster.as_ref()).await.ok().filter(|slots| slots.all > 0 && !jobs.is_empty())
        else {
            (without_tasks, since) = (None, HashMap::new());
            continue;
        };
        let progress = progress_of(&jobs).await;
        if !slots.taken.is_empty() {
            since.clear();
            if is_any_running(&progress) {
                without_tasks = None;
            } else if without_tasks.get_or_insert_with(Instant::now).elapsed() >= patience {
                without_tasks = None;
                // A task may have been assigned since, and a slot freed.
                let jobs = scheduler.state.task_manager.get_running_job_cache();
                let now = Slots::of(cluster.as_ref()).await.map(|now| now.taken).unwrap_or_default();
                let taken = both(slots.taken, &now);
                if is_any_running(&progress_of(&jobs).await) {
                    continue;
                }
                if let Err(error) = give_back(&scheduler, cluster.as_ref(), taken).await {
                    log::error!(target: "ballista", "giving back slots that no task has: {error}");
                }
            }
            continue;
        }
        without_tasks = None;
        since.retain(|job, _| jobs.contains_key(job));
        for (id, now) in progress {
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

async fn progress_of(jobs: &HashMap<JobId, JobInfoCache>) -> HashMap<JobId, Progress> {
    let mut progress = HashMap::new();
    for (id, job) in jobs {
        progress.insert(id.clone(), Progress::of(job).await);
    }
    progress
}

fn is_any_running(jobs: &HashMap<JobId, Progress>) -> bool {
    jobs.values().any(|job| !job.running.is_empty())
}

/// The slots that are taken in both.
fn both(before: Vec<ExecutorSlot>, now: &[ExecutorSlot]) -> Vec<ExecutorSlot> {
    let still = |(executor, before): ExecutorSlot| {
        let now = now.iter().find(|(other, _)| *other == executor).map_or(0, |(_, taken)| *taken);
        Some((executor, before.min(now))).filter(|(_, taken)| *taken > 0)
    };
    before.into_iter().filter_map(still).collect()
}

/// Frees these slots, and lets the scheduler assign tasks to them.
async fn give_back(
    scheduler: &Scheduler,
    cluster: &dyn ClusterState,
    slots: Vec<ExecutorSlot>,
) -> Result<()> {
    let Some((executor, _)) = slots.first().cloned() else { return Ok(()) };
    log::warn!(target: "ballista", "executors have slots that no task has: they are given back");
    cluster.unbind_tasks(slots).await?;
    // Tasks are assigned when a report arrives. This one is of no task.
    let report = UpdateTaskStatusParams { executor_id: executor, task_status: Vec::new() };
    let sent = SchedulerGrpc::update_task_status(scheduler, tonic::Request::new(report)).await;
    sent.map(|_| ()).map_err(|status| BallistaError::General(status.message().to_string()))
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

/// The slots of all executors.
struct Slots {
    all: u32,
    /// For each executor, how many are taken; without those of which none is.
    taken: Vec<ExecutorSlot>,
}

impl Slots {
    async fn of(cluster: &dyn ClusterState) -> Result<Slots> {
        let free = Arc::new(Free::default());
        let policy = TaskDistributionPolicy::Custom(Arc::clone(&free) as Arc<dyn DistributionPolicy>);
        cluster.bind_schedulable_tasks(policy, Arc::default(), None).await?;
        let free = std::mem::take(&mut *free.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut slots = Slots { all: 0, taken: Vec::new() };
        for executor in cluster.registered_executor_metadata().await {
            let all = executor.specification.vcores;
            slots.all += all;
            let taken = all.saturating_sub(free.get(&executor.id).copied().unwrap_or(0));
            slots.taken.extend((taken > 0).then_some((executor.id, taken)));
        }
        Ok(slots)
    }
}

/// Notes the free slots of each executor, and assigns no tasks.
#[derive(Debug, Default)]
struct Free(Mutex<HashMap<String, u32>>);

#[async_trait]
impl DistributionPolicy for Free {
    async fn bind_tasks(
        &self,
        budgets: Vec<&mut AvailableVcores>,
        _: Arc<HashMap<JobId, JobInfoCache>>,
    ) -> datafusion::error::Result<Vec<BoundTask>> {
        let free = budgets.iter().map(|budget| (budget.executor_id.clone(), budget.vcores)).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = free;
        Ok(Vec::new())
    }

    fn name(&self) -> &str {
        "free slots"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_were_freed_or_taken_meanwhile_are_not_given_back() {
        let slots = |slots: &[(&str, u32)]| {
            slots.iter().map(|(executor, taken)| ((*executor).into(), *taken)).collect::<Vec<ExecutorSlot>>()
        };
        let now = slots(&[("b", 1), ("c", 3), ("d", 1)]);
        assert_eq!(both(slots(&[("a", 1), ("b", 2), ("c", 2)]), &now), slots(&[("b", 1), ("c", 2)]));
    }
}
