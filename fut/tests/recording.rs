//! A complete recording in one process: all events of threads, user threads and signal handlers are in the file, once.

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use fut::{
    Recording, Runtime,
    model::{Event, EventStream, LossKind, Params},
    shm::Geometry,
    spawn,
    trace::{LwpPackets, UserTrace},
    yield_now,
};

fut::events! {
    /// From a plain thread.
    fn plain(thread: u64, number: u64) => "{thread}: {number}";
    /// From a user thread.
    fn step(number: u64, what: &str) => "step {number}: {what}";
    /// From a signal handler that may interrupt any of the others.
    fn signalled(number: u64);
}

const PLAIN_THREADS: u64 = 4;
const EVENTS_EACH: u64 = 200_000;
const STEPS: u64 = 50;

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: libc::c_int) {
    signalled(SIGNALS.fetch_add(1, Ordering::Relaxed));
}

/// 10 000 signals a second, to whichever thread runs.
fn interrupt_all_the_time(on: bool) {
    let every = libc::timeval { tv_sec: 0, tv_usec: if on { 100 } else { 0 } };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the handler only records an event, which is meant for signal handlers.
    unsafe { libc::signal(libc::SIGPROF, on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    // SAFETY: `timer` is valid, and the old one is not asked for.
    unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut()) };
}

fn emit_plain(thread: u64) {
    plain(thread, 0);
    (1..EVENTS_EACH).for_each(|number| plain(thread, number));
}

/// The timer counts CPU time, in whole ticks of the kernel: a fast machine is done with all of the above within a few.
fn emit_until_signals_have_come() -> u64 {
    let start = Instant::now();
    let mut number = 0;
    while SIGNALS.load(Ordering::Relaxed) <= 10 && start.elapsed() < Duration::from_secs(60) {
        plain(PLAIN_THREADS, number);
        number += 1;
        // Slow enough that no event is lost.
        (0..1000).for_each(|_| std::hint::spin_loop());
    }
    number
}

fn emit_from_user_threads() {
    Runtime::builder().lwps(3).build().unwrap().run(|| {
        let thread = || {
            for number in 0..STEPS {
                step(number, "of a user thread");
                yield_now();
            }
        };
        let threads: Vec<_> = (0..20).map(|_| spawn(thread)).collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}

#[test]
fn everything_that_was_emitted_is_stored_or_counted_as_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("user.fut");
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    interrupt_all_the_time(true);
    std::thread::scope(|scope| {
        (0..PLAIN_THREADS).for_each(|thread| drop(scope.spawn(move || emit_plain(thread))));
    });
    emit_from_user_threads();
    let more = emit_until_signals_have_come();
    interrupt_all_the_time(false);
    let summary = recording.finish().unwrap();

    let trace = UserTrace::open(&path).unwrap();
    // A signal handler may record while its thread is given a ring.
    assert!(trace.losses().iter().all(|loss| loss.kind == LossKind::Dropped), "{:?}", trace.losses());
    assert!(trace.unattached_lost() <= summary.lost);
    let codes: HashMap<u32, &str> =
        trace.declarations().iter().map(|d| (d.event.code.unwrap(), d.event.name.as_str())).collect();
    let mut counts: HashMap<&str, u64> = HashMap::new();
    let mut plain_seen = HashSet::new();
    for lwp in trace.lwps() {
        check_packets(lwp);
        for index in 0..lwp.len() {
            let packet = lwp.packet(index).unwrap().unwrap().unwrap();
            for record in packet.records() {
                let name = codes[&record.head.code];
                *counts.entry(name).or_default() += 1;
                let words = (record.word(0), record.word(1));
                assert!(name != "plain" || plain_seen.insert(words), "{words:?} twice");
            }
        }
    }
    let emitted = PLAIN_THREADS * EVENTS_EACH + more + SIGNALS.load(Ordering::Relaxed);
    let stored = counts["plain"] + counts["signalled"];
    assert!(SIGNALS.load(Ordering::Relaxed) > 10, "the timer did not fire");
    assert!(stored <= emitted && stored + summary.lost >= emitted, "{emitted}: {stored} and {summary:?}");
    assert_eq!(summary.unfinished, 0);
    if summary.lost == 0 {
        assert_eq!(stored, emitted);
        assert_eq!(counts["step"], 20 * STEPS);
        assert_eq!(counts["USER_THREAD_NEW"], 21);
    }
    texts_come_back(&trace);
    streams_are_in_the_order_of_time(&trace, counts.values().sum());
}

/// Sequence numbers without a gap, and ticks that go back only where a signal handler came between.
fn check_packets(lwp: &LwpPackets) {
    assert!(lwp.ended);
    let sequences: Vec<u64> = lwp.heads().map(|head| head.sequence).collect();
    let counted: Vec<u64> = (0..sequences.len() as u64).collect();
    assert_eq!(sequences, counted, "LWP {}", lwp.lwp);
    let mut last = 0;
    let mut back = 0;
    for index in 0..lwp.len() {
        let packet = lwp.packet(index).unwrap().unwrap().unwrap();
        for record in packet.records() {
            back += u64::from(record.tick.0 < last);
            last = record.tick.0.max(last);
        }
    }
    assert!(back <= SIGNALS.load(Ordering::Relaxed), "{back} ticks go back");
}

fn texts_come_back(trace: &UserTrace) {
    let step = trace.declarations().iter().find(|d| d.event.name == "step").unwrap();
    for lwp in trace.lwps() {
        for index in 0..lwp.len() {
            let packet = lwp.packet(index).unwrap().unwrap().unwrap();
            for record in packet.records().filter(|r| Some(r.head.code) == step.event.code) {
                let mut params = Params::default();
                record.params(step.event.fields.iter().map(|f| f.ty), &mut params);
                assert_eq!(params.get(1).unwrap().text, Some("of a user thread"));
            }
        }
    }
}

fn streams_are_in_the_order_of_time(trace: &UserTrace, stored: u64) {
    let mut event = Event::default();
    let mut streamed = 0;
    for mut stream in trace.streams() {
        let mut last = 0;
        while stream.next_into(&mut event).unwrap() {
            assert!(event.tick.0 >= last);
            last = event.tick.0;
            streamed += 1;
        }
    }
    assert_eq!(streamed, stored);
}
