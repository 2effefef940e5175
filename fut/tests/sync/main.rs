//! The synchronisation primitives on the runtime, with one LWP and with four.

mod barrier;
mod channel;
mod condvar;
mod ending;
mod guards;
#[path = "../common/kind.rs"]
mod kind;
mod messages;
mod mutex;
mod once_cell;
mod outside;
mod park;
mod rwlock;
mod select;
mod semaphore;

use std::time::Duration;

use fut::{JoinHandle, LiveState};
use kind::builder;

/// Short enough to be over soon, and no promise that it is.
const SOON: Duration = Duration::from_millis(5);
/// A test that waits this long has failed.
const LONG: Duration = Duration::from_secs(3600);

/// Runs the same on one LWP, where only the order of the queue decides, and on four, which are more than the CPUs of
/// most machines that run tests.
fn on_one_and_four_lwps(body: fn()) {
    for lwps in [1, 4] {
        builder().lwps(lwps).build().unwrap().run(body);
    }
}

/// All of them are spawned before the first is waited for.
fn join_all<T>(threads: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    let threads: Vec<_> = threads.into_iter().collect();
    threads.into_iter().map(|thread| thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
}

/// Yields until the thread is blocked; what it waits for, as switch events and `live_threads` have it.
fn blocked(thread: fut::model::Thread) -> (fut::WaitKind, usize) {
    loop {
        let live = fut::live_threads().into_iter().find(|live| live.thread == thread);
        match live.map(|live| live.state) {
            Some(LiveState::Blocked { kind, address, .. }) => return (kind, address),
            Some(_) => fut::yield_now(),
            None => panic!("thread {thread} has ended"),
        }
    }
}

/// Numbers that look random and are the same in each run (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}
