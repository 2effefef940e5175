//! A process that forks: parent and child record into arenas of their own, and neither into the other's; however the child
//! was made.

#[path = "common/skipped.rs"]
mod skipped;

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{c_int, c_void},
    path::Path,
};

use fut::{Init, drain::Drain, shm::Arena, trace::UserTrace};

fut::events! {
    /// The sender's identity.
    fn i_am(who: u64);
}

const PARENT: u64 = 1;
const CHILD: u64 = 2;

const IN_PLACE_OF_PARENT: u64 = 3;

/// A way to make a child: 0 in the child, its pid in the parent.
type Fork = fn() -> libc::pid_t;

fn by_fork() -> libc::pid_t {
    // SAFETY: the child records events and ends with `_exit`, nothing else.
    unsafe { libc::fork() }
}

/// Without the C library: no handler of `pthread_atfork` runs.
fn by_raw_clone() -> libc::pid_t {
    // SAFETY: as above. No flag but the signal at its end: the child has a copy of everything.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    pid as libc::pid_t
}

/// `_Fork` of POSIX 2024 (glibc 2.34), which runs no handlers either; looked up, since older ones do not have it.
fn by_underscore_fork() -> libc::pid_t {
    // SAFETY: looks a name up, which is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_Fork".as_ptr()) };
    if found.is_null() {
        skipped::skipped("this C library has no _Fork");
        return by_raw_clone();
    }
    // SAFETY: `_Fork` has this signature.
    let fork = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> libc::pid_t>(found) };
    fork()
}

/// Makes a child that does this and ends; the parent waits for it. Gives its pid.
fn in_child(fork: Fork, body: impl FnOnce() -> bool) -> u32 {
    let pid = fork();
    assert!(pid >= 0);
    if pid == 0 {
        let done = body();
        // SAFETY: ends the child at once; the test harness in it must not go on.
        unsafe { libc::_exit(c_int::from(!done)) };
    }
    wait_for(pid);
    pid as u32
}

fn wait_for(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is a valid place.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((waited, status), (pid, 0));
}

extern "C" fn record_in_place_of_parent(_: *mut c_void) -> c_int {
    (0..5).for_each(|_| i_am(IN_PLACE_OF_PARENT));
    0
}

/// A child as `vfork` makes it: it has its parent's memory, which waits until it ends.
fn share_memory_and_record() {
    let mut stack = vec![0_u128; 1 << 12];
    let top = stack.as_mut_ptr_range().end.cast();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child has a stack of its own, and does nothing but to record.
    let pid = unsafe { libc::clone(record_in_place_of_parent, top, flags, std::ptr::null_mut()) };
    assert!(pid > 0);
    wait_for(pid);
}

fn drained(arena: &Path) -> UserTrace {
    let trace = arena.with_extension("fut");
    Drain::new(Arena::open(arena).unwrap(), &trace).unwrap().finish().unwrap();
    UserTrace::open(&trace).unwrap()
}

/// Number of events by sender.
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
fn a_child_records_for_itself_however_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe { std::env::set_var(fut::ENV_ARENA_DIR, dir.path()) };
    assert!(matches!(fut::init(), Init::Recording));
    assert!(matches!(fut::init(), Init::AlreadyRecording));
    (0..10).for_each(|_| i_am(PARENT));
    // The expected number of events by sender.
    let mut expected = HashMap::new();
    let record = |count: u64| (0..count).for_each(|_| i_am(CHILD));
    let forked = in_child(by_fork, || {
        record(1000);
        true
    });
    expected.insert(forked, (CHILD, 1000));
    for fork in [by_raw_clone, by_underscore_fork] {
        // It has not started a new session: its records are in no ring, and not in its parent's.
        in_child(fork, || {
            record(10_000);
            fut::note_modules();
            fut::costs().is_none()
        });
        i_am(PARENT);
        let begun = in_child(fork, || {
            record(10);
            let begun = matches!(fut::init(), Init::Recording);
            record(500);
            begun
        });
        expected.insert(begun, (CHILD, 500));
        i_am(PARENT);
    }
    share_memory_and_record();
    (0..10).for_each(|_| i_am(PARENT));

    let mut arenas: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
    arenas.retain(|path| path.extension().is_some_and(|e| e == "arena"));
    assert_eq!(arenas.len(), 4, "{arenas:?}");
    let of_parent = BTreeMap::from([(PARENT, 24), (IN_PLACE_OF_PARENT, 5)]);
    assert_eq!(said(&drained(&dir.path().join(format!("{}.arena", std::process::id())))), of_parent);
    for (pid, said_by_child) in expected {
        let arena = dir.path().join(format!("{pid}.arena"));
        assert_eq!(said(&drained(&arena)), BTreeMap::from([said_by_child]), "{}", arena.display());
    }
}
