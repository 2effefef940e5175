//! Lengths of queues: ready user threads of each process, runnable LWPs of each CPU.

use crate::timeline::{Actors, Counter, CpuId, LwpId, ProcessId, ThreadId};

/// New values of the counters that changed.
pub(super) type Counts = [Option<(Counter, u64)>; 2];

/// The queue of each waiting actor, and the lengths.
pub(super) struct QueueLengths {
    lwp_in: Vec<Option<u32>>,
    thread_in: Vec<Option<u32>>,
    run_queues: Vec<u64>,
    ready_queues: Vec<u64>,
}

impl QueueLengths {
    pub(super) fn new(actors: &Actors) -> QueueLengths {
        QueueLengths {
            lwp_in: vec![None; actors.lwps.len()],
            thread_in: vec![None; actors.threads.len()],
            run_queues: vec![0; actors.cpus.len()],
            ready_queues: vec![0; actors.processes.len()],
        }
    }

    /// Moves an LWP to the run queue of this CPU, or to none.
    pub(super) fn lwp_waits(&mut self, lwp: LwpId, cpu: Option<CpuId>) -> Counts {
        let was = std::mem::replace(&mut self.lwp_in[lwp.index()], cpu.map(|cpu| cpu.0));
        moved(&mut self.run_queues, was, cpu.map(|cpu| cpu.0)).map(|count| {
            let (queue, length) = count?;
            Some((Counter::RunQueue(CpuId(queue)), length))
        })
    }

    /// Moves a user thread to the ready queue of this process, or to none.
    pub(super) fn thread_waits(&mut self, thread: ThreadId, process: Option<ProcessId>) -> Counts {
        let was = std::mem::replace(&mut self.thread_in[thread.index()], process.map(|process| process.0));
        moved(&mut self.ready_queues, was, process.map(|process| process.0)).map(|count| {
            let (queue, length) = count?;
            Some((Counter::ReadyQueue(ProcessId(queue)), length))
        })
    }
}

/// Moves one from a queue to another. Returns the queues whose length changed, and their lengths.
fn moved(queues: &mut [u64], from: Option<u32>, to: Option<u32>) -> [Option<(u32, u64)>; 2] {
    if from == to {
        return [None, None];
    }
    let left = from.map(|queue| {
        queues[queue as usize] -= 1;
        (queue, queues[queue as usize])
    });
    let entered = to.map(|queue| {
        queues[queue as usize] += 1;
        (queue, queues[queue as usize])
    });
    [left, entered]
}
