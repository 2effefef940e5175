//! The flight recorder in one process: snapshots while threads continue, on a signal, on a panic.

mod common;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use common::{code, opened, words};
use fut::{FlightRecorder, model::EventStream, shm::Geometry, trace::UserTrace};

fut::events! {
    /// Sequence number of the event in its thread.
    fn tick(thread: u64, number: u64);
    fn short_lived(number: u64);
}

const THREADS: usize = 2;
const PACKETS: u64 = 8;
/// Records of 32 bytes in a packet.
const IN_PACKET: u64 = (65536 - 64) / 32;

static STOP: AtomicBool = AtomicBool::new(false);
static RECORDED: [AtomicU64; THREADS] = [const { AtomicU64::new(0) }; THREADS];

fn record_until_stopped(thread: usize) {
    for number in 1_u64.. {
        tick(thread as u64, number);
        RECORDED[thread].store(number, Ordering::Release);
        if STOP.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// In every snapshot, a thread's last numbers are there, in order and without a gap; gives how many.
fn check(trace: &UserTrace, thread: u64, before: u64) -> usize {
    let numbers: Vec<u64> =
        words(trace, code(trace, "tick")).into_iter().filter(|w| w.0 == thread).map(|w| w.1).collect();
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return 0 };
    assert!(numbers.iter().copied().eq(*first..=*last), "thread {thread}: a gap");
    assert!(*last >= before, "thread {thread}: {before} was recorded before, and {last} is the last");
    numbers.len()
}

fn snapshots_in(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Waits for a snapshot that is whole: its file ends with the clocks.
fn wait_for_snapshot(folder: &Path, count: usize) {
    let start = Instant::now();
    while snapshots_in(folder)
        .iter()
        .filter(|p| UserTrace::open(p).is_ok_and(|t| t.snapshots().len() > 4))
        .count()
        < count
    {
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", snapshots_in(folder));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn snapshots_contain_the_last_events_at_any_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let recorder = FlightRecorder::start(Geometry { packets: PACKETS as u32, rings: 6 }).unwrap();
    assert!(FlightRecorder::start(FlightRecorder::GEOMETRY).is_err());
    assert!(FlightRecorder::running().is_some());

    std::thread::scope(|scope| {
        (0..THREADS).for_each(|thread| drop(scope.spawn(move || record_until_stopped(thread))));
        while RECORDED.iter().any(|recorded| recorded.load(Ordering::Acquire) < 2 * PACKETS * IN_PACKET) {
            std::thread::yield_now();
        }
        let mut kept = 0;
        for number in 0..20 {
            let before: Vec<u64> = RECORDED.iter().map(|r| r.load(Ordering::Acquire)).collect();
            let path = path(&format!("{number}.fut"));
            let summary = recorder.snapshot(&path).unwrap();
            assert_eq!(summary.lost, 0);
            assert!(summary.overwritten_packets > 0, "{summary:?}");
            let trace = opened(&path);
            for (thread, before) in before.iter().enumerate() {
                kept += check(&trace, thread as u64, *before);
            }
        }
        assert!(kept > 0, "20 snapshots, and all was overwritten before it could be copied");
        snapshot_on_signal(recorder, &path("signal"));
        STOP.store(true, Ordering::Relaxed);
    });
    all_at_rest(recorder, &path("rest.fut"));
    snapshot_on_panic(recorder, &path("panic"));
    lwps_come_and_go(recorder, &path("many.fut"));
    nothing_is_overwritten_by_mistake(recorder, &path("rest.fut"));
}

fn snapshot_on_signal(recorder: FlightRecorder, folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    recorder.snapshot_on_signal(libc::SIGUSR2, folder).unwrap();
    assert!(recorder.snapshot_on_signal(12345, folder).is_err());
    for count in 1..=3 {
        // SAFETY: the handler for it was installed just now.
        unsafe { libc::raise(libc::SIGUSR2) };
        wait_for_snapshot(folder, count);
    }
    for path in snapshots_in(folder) {
        let trace = opened(&path);
        (0..THREADS as u64).for_each(|thread| _ = check(&trace, thread, 1));
    }
}

/// The threads have ended: all their packets are there, and what is not was overwritten, to the byte.
fn all_at_rest(recorder: FlightRecorder, path: &Path) {
    let summary = recorder.snapshot(path).unwrap();
    assert_eq!((summary.unfinished, summary.lost), (0, 0));
    let trace = opened(path);
    let kept: u64 =
        (0..THREADS).map(|t| check(&trace, t as u64, RECORDED[t].load(Ordering::Acquire)) as u64).sum();
    assert!(kept >= THREADS as u64 * (PACKETS - 1) * (IN_PACKET - 1), "{kept}");
    let recorded: u64 = RECORDED.iter().map(|r| r.load(Ordering::Acquire)).sum();
    // Each LWP also records that it attached (24 bytes), which was overwritten.
    assert_eq!(32 * kept + summary.overwritten_bytes, 32 * recorded + 24 * THREADS as u64);
    decodable_from_any_packet(&trace);
    the_trace_says_what_was_overwritten(&trace, recorded - kept);
}

fn decodable_from_any_packet(trace: &UserTrace) {
    let code = code(trace, "tick");
    for lwp in trace.lwps() {
        for packet in common::packets(lwp) {
            let mut numbers = packet.records().filter(|r| r.head.code == code).map(|r| r.word(1).unwrap());
            let Some(first) = numbers.next() else { continue };
            assert!(numbers.zip(first + 1..).all(|(number, expected)| number == expected));
            assert!(packet.head.first_tick <= packet.records().next().unwrap().tick);
        }
    }
}

fn the_trace_says_what_was_overwritten(trace: &UserTrace, records: u64) {
    let overwritten: u64 = trace.lwps().iter().map(|lwp| lwp.overwritten_bytes).sum();
    assert_eq!(overwritten, 32 * records + 24 * THREADS as u64);
    for mut stream in trace.streams() {
        let mut event = fut::model::Event::default();
        while stream.next_into(&mut event).unwrap() {}
        let losses = stream.take_losses();
        assert!(losses.iter().all(|loss| loss.kind.name() == "overwritten"), "{losses:?}");
    }
}

fn snapshot_on_panic(recorder: FlightRecorder, folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    recorder.snapshot_on_panic(folder);
    for _ in 0..10 {
        std::thread::spawn(|| panic!("on purpose")).join().unwrap_err();
    }
    let _ = std::panic::take_hook();
    assert_eq!(snapshots_in(folder).len(), 8);
    snapshots_in(folder).iter().for_each(|path| _ = opened(path));
}

/// 500 LWPs over 6 rings, one after the other: the last are there, the others are counted.
fn lwps_come_and_go(recorder: FlightRecorder, path: &Path) {
    for number in 0..500 {
        std::thread::spawn(move || short_lived(number)).join().unwrap();
    }
    let summary = recorder.snapshot(path).unwrap();
    let trace = opened(path);
    let mut kept: Vec<u64> = words(&trace, code(&trace, "short_lived")).into_iter().map(|w| w.0).collect();
    kept.sort_unstable();
    assert!(
        (1..=6).contains(&kept.len()) && kept.iter().copied().eq(500 - kept.len() as u64..500),
        "{kept:?}"
    );
    assert_eq!(summary.lost, 0);
    assert!(summary.overwritten_packets >= 490, "{summary:?}");
    assert!(trace.overwritten_lwps() >= 490, "{}", trace.overwritten_lwps());
}

fn nothing_is_overwritten_by_mistake(recorder: FlightRecorder, path: &Path) {
    assert_eq!(recorder.snapshot(path).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    opened(path);
}
