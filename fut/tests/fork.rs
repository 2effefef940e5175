//! A process that forks: parent and child record into arenas of their own, and neither into the other's.

use std::{collections::BTreeMap, path::Path};

use fut::{Init, drain::Drain, shm::Arena, trace::UserTrace};

fut::events! {
    /// Somebody says who it is.
    fn i_am(who: u64);
}

const PARENT: u64 = 1;
const CHILD: u64 = 2;

/// Forks; the child records its events and ends, the parent waits for it.
fn fork_and_record() {
    // SAFETY: the child records events and ends with `_exit`, nothing else.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        (0..1000).for_each(|_| i_am(CHILD));
        // SAFETY: ends the child at once; the test harness in it must not go on.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((waited, status), (pid, 0));
}

fn drained(arena: &Path) -> UserTrace {
    let trace = arena.with_extension("fut");
    Drain::new(Arena::open(arena).unwrap(), &trace).unwrap().finish().unwrap();
    UserTrace::open(&trace).unwrap()
}

/// Who said how often that it is there.
fn said(trace: &UserTrace) -> BTreeMap<u64, u64> {
    let code = trace.declarations().iter().find(|d| d.event.name == "i_am").unwrap().event.code.unwrap();
    let mut said = BTreeMap::new();
    for lwp in trace.lwps() {
        for packet in (0..lwp.len()).map(|index| lwp.packet(index).unwrap().unwrap().unwrap()) {
            for record in packet.records().filter(|r| r.head.code == code) {
                *said.entry(record.word(0).unwrap()).or_default() += 1;
            }
        }
    }
    said
}

#[test]
fn a_forked_child_records_for_itself() {
    let dir = tempfile::tempdir().unwrap();
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe { std::env::set_var(fut::ENV_ARENA_DIR, dir.path()) };
    assert!(matches!(fut::init(), Init::Recording));
    assert!(matches!(fut::init(), Init::AlreadyRecording));
    (0..10).for_each(|_| i_am(PARENT));
    fork_and_record();
    (0..10).for_each(|_| i_am(PARENT));

    let mut arenas: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
    arenas.retain(|path| path.extension().is_some_and(|e| e == "arena"));
    assert_eq!(arenas.len(), 2, "{arenas:?}");
    let parent = dir.path().join(format!("{}.arena", std::process::id()));
    for arena in arenas {
        let expected = if arena == parent { [(PARENT, 20)] } else { [(CHILD, 1000)] };
        assert_eq!(said(&drained(&arena)), BTreeMap::from(expected), "{}", arena.display());
    }
}
