//! Events of threads that have no ring are lost. The trace contains their number, also that of a program's own
//! recording and a snapshot.

mod common;

use std::process::Command;

use fut::{FlightRecorder, Recording, model::LossKind, shm::Geometry, trace::UserTrace};

fut::events! {
    fn happened(number: u64);
}

const GEOMETRY: Geometry = Geometry { packets: 4, rings: 2 };
const EVENTS: u64 = 100;

/// Four threads record at the same time, in two rings.
fn four_threads() {
    let all = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                happened(0);
                all.wait();
                (1..EVENTS).for_each(happened);
                all.wait();
            });
        }
    });
}

/// In a process of its own: a process has one session.
fn in_another_process(name: &str) -> bool {
    if std::env::var_os("FUT_TEST_ALONE").is_some() {
        return false;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let status = command.args(["--exact", name]).env("FUT_TEST_ALONE", "1").status();
    assert!(status.unwrap().success());
    true
}

fn check(trace: &std::path::Path, lost: u64) {
    let trace = UserTrace::open(trace).unwrap();
    assert_eq!(lost, 2 * EVENTS);
    let [loss] = trace.losses() else { panic!("{:?}", trace.losses()) };
    assert_eq!((loss.kind, loss.lwp, loss.count), (LossKind::Dropped, None, Some(lost)));
    assert!(loss.detail.contains("more threads at one time than buffers"), "{}", loss.detail);
    assert_eq!(trace.unattached_lost(), lost);
    assert_eq!(common::words(&trace, common::code(&trace, "happened")).len() as u64, 2 * EVENTS);
    assert_eq!(trace.lwps().len(), 2);
}

#[test]
fn a_recording_contains_the_number_of_events_without_a_ring() {
    if in_another_process("a_recording_contains_the_number_of_events_without_a_ring") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    let recording = Recording::start(&path, GEOMETRY).unwrap();
    four_threads();
    let summary = recording.finish().unwrap();
    check(&path, summary.lost);
}

#[test]
fn a_snapshot_contains_the_number_of_events_without_a_ring() {
    if in_another_process("a_snapshot_contains_the_number_of_events_without_a_ring") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("now.fut");
    let recorder = FlightRecorder::start(GEOMETRY).unwrap();
    four_threads();
    check(&path, recorder.snapshot(&path).unwrap().lost);
}
