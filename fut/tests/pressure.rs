//! Producers that are faster than the drain, short-lived LWPs, many events: every emitted event is stored or counted.
//!
//! `FUT_LONG=1` emits 10^8 events.

mod common;

use std::{collections::HashMap, path::Path};

use common::{code, long, opened, packets, words};
use fut::{Init, drain::Drain, shm::Arena};

fut::events! {
    fn fast(thread: u64, number: u64);
    fn short_lived(thread: u64, number: u64);
}

const THREADS: u64 = 4;
const LWPS: u64 = 5000;

/// A recorder, in this process: the arena that `init` made, and a drain that the test calls.
fn recorder(folder: &Path) -> Arena {
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe { std::env::set_var(fut::ENV_ARENA_DIR, folder) };
    // SAFETY: as above.
    unsafe { std::env::set_var(fut::ENV_PACKETS, "4") };
    assert!(matches!(fut::init(), Init::Recording));
    let arena = folder.join(format!("{}.arena", std::process::id()));
    Arena::open(&arena).unwrap()
}

#[test]
fn what_was_emitted_is_stored_or_counted() {
    let events = if long() { 100_000_000 } else { 4_000_000 };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    let mut drain = Drain::new(recorder(folder.path()), &path).unwrap();
    let start = std::time::Instant::now();
    let producers: Vec<_> = (0..THREADS)
        .map(|thread| std::thread::spawn(move || (0..events / THREADS).for_each(|n| fast(thread, n))))
        .collect();
    // Far too slow, for rings of 256 KiB.
    while producers.iter().any(|producer| !producer.is_finished()) {
        drain.poll().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(3));
    }
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    println!("{events} events in {:.2} s", start.elapsed().as_secs_f64());
    threads_are_born_and_die(&mut drain);
    let summary = drain.finish().unwrap();
    println!("{summary:?}");

    let trace = opened(&path);
    let mut stored = HashMap::<u64, u64>::new();
    for (thread, number) in each_in_order(&trace) {
        *stored.entry(thread).or_default() += 1;
        assert!(number < events / THREADS);
    }
    let stored: u64 = stored.values().sum();
    // Each LWP says that it attached and detached, if there was room for it.
    let markers = summary.records - stored - LWPS;
    assert!(summary.lost > 0 && stored > 0, "{stored}, {summary:?}");
    assert_eq!(stored + LWPS + markers + summary.lost, events + LWPS + 2 * (THREADS + LWPS));
    assert_eq!(trace.lwps().iter().map(|lwp| lwp.lost).sum::<u64>(), summary.lost, "in the trace, too");
    assert_eq!((summary.unfinished, summary.unwritten), (0, 0));

    let mut lived: Vec<u64> = words(&trace, code(&trace, "short_lived")).into_iter().map(|w| w.0).collect();
    lived.sort_unstable();
    assert!(lived.into_iter().eq(0..LWPS), "nothing of them is lost");
}

/// Thread and number of all stored events; those of one thread ascend.
fn each_in_order(trace: &fut::trace::UserTrace) -> Vec<(u64, u64)> {
    let code = code(trace, "fast");
    let mut all = Vec::new();
    for lwp in trace.lwps() {
        let mut last = None;
        for packet in packets(lwp) {
            for record in packet.records().filter(|r| r.head.code == code) {
                let (thread, number) = (record.word(0).unwrap(), record.word(1).unwrap());
                assert!(last < Some(number), "thread {thread}: {number} behind {last:?}");
                last = Some(number);
                all.push((thread, number));
            }
        }
    }
    all
}

/// 5000 LWPs over 512 rings: none finds no ring, because the drain frees them.
fn threads_are_born_and_die(drain: &mut Drain<Arena>) {
    for batch in (0..LWPS).step_by(10) {
        let threads: Vec<_> =
            (batch..batch + 10).map(|n| std::thread::spawn(move || short_lived(n, 0))).collect();
        drain.poll().unwrap();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
