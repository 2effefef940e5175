//! What a program needs beside threads: files, signals, child processes, stacks of their own size, an orderly end.

#[path = "../common/kind.rs"]
pub(crate) mod kind;

mod files;
mod processes;
mod shutdown;
mod signals;
mod stacks;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Runs `wait` on one LWP, which another thread needs too: only when that has had five turns, `end_wait` is called, on a
/// plain thread. So if `wait` kept the LWP, it would last for 20 s, and this would panic.
fn beside_another<T: Send + 'static>(
    end_wait: impl FnOnce() + Send + 'static,
    wait: impl FnOnce() -> T + Send + 'static,
) -> T {
    let turns = Arc::new(AtomicUsize::new(0));
    let (counted, seen) = (Arc::clone(&turns), Arc::clone(&turns));
    let had_turns = move || seen.load(Ordering::Relaxed) >= 5;
    let ender = thread::spawn(move || {
        let start = Instant::now();
        while !had_turns() && start.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(1));
        }
        end_wait();
        assert!(had_turns(), "the LWP waited");
    });
    let result = kind::builder().lwps(1).build().unwrap().run(move || {
        let stop = fut::sync::CancellationToken::new();
        let waits = fut::spawn({
            let stop = stop.clone();
            move || {
                let result = wait();
                stop.cancel();
                result
            }
        });
        // It waits by then, or will on its next turn.
        while !stop.is_cancelled() {
            fut::sleep(Duration::from_millis(1));
            counted.fetch_add(1, Ordering::Relaxed);
        }
        waits.join().unwrap()
    });
    ender.join().unwrap();
    result
}
