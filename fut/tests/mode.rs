//! The mode that a recorder requests in the environment, and a snapshot that it takes from outside.

mod common;

use common::{code, opened, words};
use fut::{
    FlightRecorder, Init,
    drain::{self, Drain},
    shm::{Arena, Mode},
};

fut::events! {
    fn counted(number: u64);
}

fn set(name: &str, value: &std::ffi::OsStr) {
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe { std::env::set_var(name, value) };
}

#[test]
fn a_recorder_asks_for_overwrite_mode_and_takes_snapshots_itself() {
    let folder = tempfile::tempdir().unwrap();
    set(fut::ENV_ARENA_DIR, folder.path().as_ref());
    set(fut::ENV_MODE, "overwritten".as_ref());
    let Init::Failed(error) = fut::init() else { panic!("a mode that does not exist") };
    let said = error.to_string();
    assert!(said.contains("FUT_MODE to be discard or overwrite") && said.contains("overwritten"), "{said}");
    set(fut::ENV_MODE, "overwrite".as_ref());
    set(fut::ENV_PACKETS, "2".as_ref());
    let Init::Failed(error) = fut::init() else { panic!("two packets are too few") };
    assert!(error.to_string().contains("4 to 65536 packets"), "{error}");
    set(fut::ENV_PACKETS, "4".as_ref());
    assert!(FlightRecorder::running().is_none());
    assert!(matches!(fut::init(), Init::Recording));
    assert!(FlightRecorder::running().is_some());

    let arena = Arena::open(&folder.path().join(format!("{}.arena", std::process::id()))).unwrap();
    assert_eq!(arena.mode(), Mode::Overwrite);
    (0..100_000).for_each(counted);
    let path = folder.path().join("snapshot.fut");
    let summary = drain::snapshot(&arena, &path).unwrap();
    last_numbers(&path);
    assert_eq!((summary.lost, summary.unfinished, summary.packets), (0, 0, 4));
    a_forked_child_has_one_of_its_own();

    // A recorder's drain leaves it alone until the end.
    let path = folder.path().join("end.fut");
    let mut drain = Drain::new(arena, &path).unwrap();
    assert_eq!(drain.poll().unwrap(), 0);
    assert_eq!(drain.finish().unwrap().overwritten_bytes, summary.overwritten_bytes);
    last_numbers(&path);
}

fn last_numbers(path: &std::path::Path) {
    let trace = opened(path);
    let numbers: Vec<u64> = words(&trace, code(&trace, "counted")).into_iter().map(|w| w.0).collect();
    assert!(numbers.len() > 3 * 2728, "{}", numbers.len());
    assert!(numbers.iter().copied().eq(100_000 - numbers.len() as u64..100_000));
}

fn a_forked_child_has_one_of_its_own() {
    // SAFETY: the child ends with `_exit`, and does nothing that another thread's lock could stop.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        counted(1);
        let recorder = FlightRecorder::running();
        let path = std::path::Path::new(&std::env::var_os(fut::ENV_ARENA_DIR).unwrap()).join("child.fut");
        let summary = recorder.and_then(|recorder| recorder.snapshot(&path).ok());
        // Its attaching, and its event.
        let own = summary.is_some_and(|summary| summary.records == 2);
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!own)) };
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((waited, status), (pid, 0));
}
