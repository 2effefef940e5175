//! What an operation costs when there are many user threads: all of them live, and do the same things step by step. A
//! barrier ends each step, so its cost is in all of them; the step that does nothing else shows it.

mod sockets;
mod tasks;
mod user_threads;

use std::{sync::Mutex, time::Duration};

use crate::{echo::cpu_time, live, sample::Sample, steps::Steps};

pub(crate) use self::{
    sockets::{
        STEPS as SOCKET_STEPS, rounds as socket_rounds, run as run_sockets, run_tokio as run_tokio_sockets,
    },
    tasks::{run_current_thread, run_multi_thread},
    user_threads::run,
};

/// What each thread does, in this order.
pub(crate) const STEPS: [&str; 8] =
    ["spawn", "barrier", "yield", "lock", "talk", "talk, with a time limit", "sleep", "end and join"];

/// How often all threads together do it, at least: few of them more often, so that a step is long enough to be measured.
pub(crate) const OPERATIONS: u64 = 1_000_000;

/// How often a thread does it, if all together are to do it so often.
pub(crate) fn rounds(threads: u64, operations: u64, step: usize) -> u64 {
    match STEPS[step] {
        "spawn" | "end and join" => 1,
        // Each takes time that nothing shortens.
        "sleep" => (operations / 50 / threads).clamp(1, 100),
        _ => (operations / threads).clamp(2, 10_000),
    }
}

/// How long a thread sleeps: all together long enough for each to fall asleep before the first awakes, and then one
/// after the other.
fn sleep_time(thread: u64, threads: u64) -> Duration {
    // A permutation, if `threads` is no multiple of the prime: timers are not added in the order in which they are due.
    let place = thread.wrapping_mul(7_654_321) % threads;
    Duration::from_micros(5_000 + 4 * threads + 3 * place)
}

/// How long the last thread that is not blocked sleeps to find out what idling costs; twice, the second time measured.
fn idle_time(threads: u64) -> Duration {
    Duration::from_millis(400) + Duration::from_micros(5 * threads)
}

/// The CPU time of this process when each step has ended.
struct Stopwatch(Mutex<Vec<Duration>>);

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch(Mutex::new(vec![cpu_time()]))
    }

    fn lap(&self) {
        self.0.lock().expect("no lap panics").push(cpu_time());
    }

    /// Ends the last step.
    fn stop(&self, idle_ns: u64, resident: u64) -> Sample {
        self.lap();
        let laps = self.0.lock().expect("no lap panics");
        let mut cpu_ns = [0; STEPS.len()];
        for (ns, times) in cpu_ns.iter_mut().zip(laps.windows(2)) {
            *ns = (times[1] - times[0]).as_nanos() as u64;
        }
        let elapsed = laps[laps.len() - 1] - laps[0];
        Sample { steps: Some(Steps { cpu_ns, idle_ns, resident }), ..Sample::of(elapsed) }
    }
}

fn per_second(cpu_time: Duration, length: Duration) -> u64 {
    (cpu_time.as_nanos() as f64 / length.as_secs_f64()) as u64
}

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    live::memory().map_or(0, |memory| memory.resident)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_sleeps_for_another_time() {
        for threads in [100, 10_000] {
            let mut times: Vec<_> = (0..threads).map(|thread| sleep_time(thread, threads)).collect();
            times.sort();
            times.dedup();
            assert_eq!(times.len() as u64, threads);
        }
    }
}
