//! The steps of tokio's tasks.

use std::{sync::Arc, time::Duration};

use tokio::{
    runtime::{Builder, Runtime},
    sync::{Barrier, Mutex, mpsc},
    task, time,
};

use super::{Stopwatch, idle_time, per_second, resident, rounds, sleep_time};
use crate::{echo::cpu_time, sample::Sample};

/// What the tasks share.
struct World {
    tasks: u64,
    operations: u64,
    barrier: Barrier,
    count: Mutex<u64>,
    /// To each task.
    senders: Vec<mpsc::Sender<u64>>,
    stopwatch: Stopwatch,
}

pub(crate) fn run_current_thread(tasks: u64, operations: u64) -> Sample {
    run((tasks, operations), &Builder::new_current_thread().enable_time().build().expect("a runtime"))
}

pub(crate) fn run_multi_thread(tasks: u64, operations: u64, workers: usize) -> Sample {
    run(
        (tasks, operations),
        &Builder::new_multi_thread().worker_threads(workers).enable_time().build().expect("a runtime"),
    )
}

fn run((tasks, operations): (u64, u64), runtime: &Runtime) -> Sample {
    let all = async move {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..tasks).map(|_| mpsc::channel(1)).unzip();
        let barrier = Barrier::new(tasks as usize);
        let (count, stopwatch) = (Mutex::new(0), Stopwatch::start());
        let world = Arc::new(World { tasks, operations, barrier, count, senders, stopwatch });
        let live = |(number, receiver)| task::spawn(Arc::clone(&world).live(number, receiver));
        let all: Vec<_> = (0..).zip(receivers).map(live).collect();
        let (mut idle_ns, mut memory) = (0, 0);
        for one in all {
            let (idle, resident) = one.await.expect("a task panicked");
            idle_ns += idle;
            memory += resident;
        }
        assert_eq!(*world.count.lock().await, tasks * rounds(tasks, operations, 3), "the lock lost some");
        world.stopwatch.stop(idle_ns, memory)
    };
    runtime.block_on(async { task::spawn(all).await.expect("the first task panicked") })
}

impl World {
    /// One task, from its first step to its last. One returns the CPU time of a second of idling, the leader of the last
    /// barrier the resident memory, others 0.
    async fn live(self: Arc<World>, number: u64, mut receiver: mpsc::Receiver<u64>) -> (u64, u64) {
        let next = &self.senders[((number + 1) % self.tasks) as usize];
        let times = |step| 0..rounds(self.tasks, self.operations, step);
        self.end_of_step().await;
        for _ in times(1) {
            self.barrier.wait().await;
        }
        self.end_of_step().await;
        for _ in times(2) {
            task::yield_now().await;
        }
        self.end_of_step().await;
        for _ in times(3) {
            let mut count = self.count.lock().await;
            *count += 1;
            // All others come, and wait for it.
            task::yield_now().await;
        }
        self.end_of_step().await;
        for _ in times(4) {
            next.send(number).await.expect("it lives");
            receiver.recv().await.expect("one sends");
        }
        self.end_of_step().await;
        for _ in times(5) {
            next.send(number).await.expect("it lives");
            let received = time::timeout(Duration::from_secs(600), receiver.recv()).await;
            received.expect("in time").expect("one sends");
        }
        self.end_of_step().await;
        for _ in times(6) {
            time::sleep(sleep_time(number, self.tasks)).await;
        }
        let memory = if self.end_of_step().await { resident() } else { 0 };
        let mut idle_ns = 0;
        if number == 0 {
            let length = idle_time(self.tasks);
            time::sleep(length).await;
            let before = cpu_time();
            time::sleep(length).await;
            idle_ns = per_second(cpu_time() - before, length);
        }
        self.barrier.wait().await;
        (idle_ns, memory)
    }

    /// Waits until all others have done the step; true for the last.
    async fn end_of_step(&self) -> bool {
        let is_last = self.barrier.wait().await.is_leader();
        if is_last {
            self.stopwatch.lap();
        }
        is_last
    }
}
