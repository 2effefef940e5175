//! The steps of fut's user threads.

use std::{io, sync::Arc, time::Duration};

use fut::{
    RuntimeBuilder,
    sync::{
        Barrier, Mutex,
        channel::{Receiver, Sender, bounded},
    },
};

use super::{Stopwatch, idle_time, per_second, resident, rounds, sleep_time};
use crate::{echo::cpu_time, sample::Sample};

/// What the threads share.
struct World {
    threads: u64,
    operations: u64,
    barrier: Barrier,
    count: Mutex<u64>,
    /// To each thread.
    senders: Vec<Sender<u64>>,
    stopwatch: Stopwatch,
}

pub(crate) fn run(
    builder: RuntimeBuilder,
    (threads, operations): (u64, u64),
    lwps: usize,
) -> io::Result<Sample> {
    let runtime = builder.lwps(lwps).build()?;
    Ok(runtime.run(move || {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| bounded(1)).unzip();
        let barrier = Barrier::new(threads as usize);
        let (count, stopwatch) = (Mutex::new(0), Stopwatch::start());
        let world = Arc::new(World { threads, operations, barrier, count, senders, stopwatch });
        let live = |(number, receiver)| {
            let world = Arc::clone(&world);
            fut::spawn(move || world.live(number, &receiver))
        };
        let all: Vec<_> = (0..).zip(receivers).map(live).collect();
        let ended = all.into_iter().map(|one| one.join().expect("a user thread panicked"));
        let (idle_ns, memory) = ended.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let locks: u64 = threads * rounds(threads, operations, 3);
        assert_eq!(*world.count.lock(), locks, "the lock lost some");
        world.stopwatch.stop(idle_ns, memory)
    }))
}

impl World {
    /// One thread, from its first step to its last. One returns the CPU time of a second of idling, the leader of the last
    /// barrier the resident memory, others 0.
    fn live(&self, number: u64, receiver: &Receiver<u64>) -> (u64, u64) {
        let next = &self.senders[((number + 1) % self.threads) as usize];
        let times = |step| 0..rounds(self.threads, self.operations, step);
        self.end_of_step();
        times(1).for_each(|_| _ = self.barrier.wait());
        self.end_of_step();
        times(2).for_each(|_| fut::yield_now());
        self.end_of_step();
        for _ in times(3) {
            let mut count = self.count.lock();
            *count += 1;
            // All others come, and wait for it.
            fut::yield_now();
        }
        self.end_of_step();
        for _ in times(4) {
            next.send(number).expect("it lives");
            receiver.recv().expect("one sends");
        }
        self.end_of_step();
        for _ in times(5) {
            next.send(number).expect("it lives");
            receiver.recv_timeout(Duration::from_secs(600)).expect("one sends");
        }
        self.end_of_step();
        times(6).for_each(|_| fut::sleep(sleep_time(number, self.threads)));
        let memory = if self.end_of_step() { resident() } else { 0 };
        let mut idle_ns = 0;
        if number == 0 {
            let time = idle_time(self.threads);
            fut::sleep(time);
            let before = cpu_time();
            fut::sleep(time);
            idle_ns = per_second(cpu_time() - before, time);
        }
        self.barrier.wait();
        (idle_ns, memory)
    }

    /// Waits until all others have done the step; true for the last.
    fn end_of_step(&self) -> bool {
        let is_last = self.barrier.wait().is_leader();
        if is_last {
            self.stopwatch.lap();
        }
        is_last
    }
}
