//! Signal handlers that interrupt probes and record, 10 000 times a second on each of 4 LWPs: every event is stored
//! once.
//!
//! `FUT_LONG=1` does it for 10 seconds.

mod common;

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use common::{code, long, opened, words};
use fut::{Recording, shm::Geometry};

fut::events! {
    fn plain(thread: u64, number: u64);
    /// From a handler, with more words than fit at the end of most packets.
    fn signalled(number: u64, b: u64, c: u64, d: u64, e: u64);
}

const THREADS: u64 = 4;

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: libc::c_int) {
    let number = SIGNALS.fetch_add(1, Ordering::Relaxed);
    signalled(number, number, 0, 0, 0);
}

/// A timer that interrupts the calling thread, and no other, every 100 µs.
fn interrupt_me(on: bool) {
    thread_local!(static TIMER: std::cell::Cell<libc::timer_t> = const { std::cell::Cell::new(std::ptr::null_mut()) });
    if !on {
        // SAFETY: the timer that this thread made.
        unsafe { libc::timer_delete(TIMER.get()) };
        return;
    }
    // SAFETY: plain data, filled in next.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = libc::SIGUSR1;
    // SAFETY: takes no argument.
    event.sigev_notify_thread_id = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    let mut timer = std::ptr::null_mut();
    // SAFETY: both places are valid.
    let made = unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
    assert_eq!(made, 0);
    TIMER.set(timer);
    let every = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
    let times = libc::itimerspec { it_interval: every, it_value: every };
    // SAFETY: the timer was made above; the old times are not asked for.
    unsafe { libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut()) };
}

fn record_for(time: Duration, thread: u64) -> u64 {
    // A handler that comes while its LWP attaches finds no ring yet, and is counted.
    plain(thread, 0);
    interrupt_me(true);
    let start = Instant::now();
    let mut number = 1;
    while start.elapsed() < time {
        for _ in 0..50 {
            plain(thread, number);
            number += 1;
        }
        // 4 LWPs at full speed would be 6 GB/s.
        (0..500).for_each(|_| std::hint::spin_loop());
    }
    interrupt_me(false);
    number
}

#[test]
fn probes_inside_of_probes_lose_nothing_and_tear_nothing() {
    let time = if long() { Duration::from_secs(10) } else { Duration::from_secs(1) };
    // SAFETY: the handler only records an event, which is meant for signal handlers.
    unsafe { libc::signal(libc::SIGUSR1, on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    let recording = Recording::start(&path, Geometry { packets: 16, rings: 8 }).unwrap();
    let threads: Vec<_> =
        (0..THREADS).map(|thread| std::thread::spawn(move || record_for(time, thread))).collect();
    let plain: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let summary = recording.finish().unwrap();
    let signals = SIGNALS.load(Ordering::Relaxed);
    println!("{plain} events, {signals} signals, {summary:?}");

    let trace = opened(&path);
    let plain_stored = words(&trace, code(&trace, "plain"));
    let signals_stored = words(&trace, code(&trace, "signalled"));
    assert!(signals_stored.iter().all(|(a, b)| a == b), "torn");
    assert_eq!(plain_stored.iter().collect::<HashSet<_>>().len(), plain_stored.len(), "twice");
    assert_eq!(signals_stored.iter().collect::<HashSet<_>>().len(), signals_stored.len(), "twice");
    let markers = 2 * THREADS;
    assert_eq!(summary.records + summary.lost, plain + signals + markers);
    assert!(signals > 1000, "the timers did not fire: {signals}");
    assert_eq!(summary.unfinished, 0);
}
