//! A recording that is dropped ends like one that is finished.

mod common;

use fut::{Recording, shm::Geometry};

fut::events! {
    fn happened(number: u64);
}

#[test]
fn a_dropped_recording_has_all_its_events_and_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    (0..10).for_each(happened);
    // SAFETY: the child drops the recording of its parent, and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(recording);
        // SAFETY: the test harness in the child must not continue.
        unsafe { libc::_exit(0) };
    }
    assert!(child > 0);
    assert_eq!(common::status_of(child), Some(0), "the child waits for a thread that it does not have");
    happened(10);
    drop(recording);
    assert!(!fut::is_recording());
    happened(11);
    let trace = common::opened(&path);
    let numbers =
        common::words(&trace, common::code(&trace, "happened")).into_iter().map(|(number, _)| number);
    assert!(numbers.eq(0..=10));
    assert!(trace.lwps().iter().all(|lwp| lwp.ended));
    let again = Recording::start(&folder.path().join("again.fut"), Geometry::default()).unwrap_err();
    assert!(again.to_string().contains("has recorded already"), "{again}");
}
