//! A process that records itself and forks: the recording belongs to the parent, and the child gets an error when it
//! tries to end it.

use fut::{Recording, shm::Geometry};

fut::events! {
    fn counted(number: u64);
}

mod common;

#[test]
fn a_forked_child_cannot_end_its_parents_recording_and_does_not_wait_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    counted(0);
    // SAFETY: the child ends the recording, and itself.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        counted(1);
        let refused =
            recording.finish().is_err_and(|error| error.to_string().contains("which forked this one"));
        // SAFETY: ends the child at once; the test harness in it must not go on.
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    assert_eq!(common::status_of(pid), Some(0), "the child waits for a thread that it does not have");
    counted(2);
    recording.finish().unwrap();
    let trace = common::opened(&path);
    let numbers = common::words(&trace, common::code(&trace, "counted")).into_iter().map(|(n, _)| n);
    assert!(numbers.eq([0, 2]));
}
