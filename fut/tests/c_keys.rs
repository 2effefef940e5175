//! One key mask for C and for Rust: C programs test the word `fut_keys` (fut.h), the probes of Rust are patched from it.

use std::{path::Path, ptr};

use fut::{
    Recording, keys,
    model::{Event, EventStream},
    shm::Geometry,
    trace::UserTrace,
};

unsafe extern "C" {
    static fut_keys: u64;
}

/// `FUT_KEYMASK3`.
const KEY: u64 = 1 << (32 + 3);

fut::events! {
    fn shared(round: u64) in KEY;
    fn rusts_own(round: u64) in keys::PROGRAM;
}

/// What `fut_active` of fut.h is.
fn active() -> u32 {
    // SAFETY: fut defines it. It is an atomic, and other threads change it, hence volatile, as in C.
    let word = unsafe { ptr::read_volatile(&raw const fut_keys) };
    (word >> 32) as u32
}

fn both(round: u64) {
    shared(round);
    rusts_own(round);
}

fn recorded(trace: &Path) -> Vec<String> {
    let trace = UserTrace::open(trace).unwrap();
    let types = trace.event_types();
    let mut events = Vec::new();
    let mut event = Event::default();
    for mut stream in trace.streams() {
        while stream.next_into(&mut event).unwrap() {
            let name = &types[event.kind as usize].name;
            if name == "shared" || name == "rusts_own" {
                events.push(format!("{name} {}", event.params.get(0).unwrap()));
            }
        }
    }
    events
}

/// One recording in a process's life, so one test.
#[test]
fn a_key_switches_the_word_that_c_tests_and_the_probes_of_rust() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    keys::set(keys::ALL).unwrap();
    assert_eq!(active(), 0, "nothing is recorded");
    both(0);
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    assert_eq!(active(), u32::MAX);
    both(1);
    keys::set(keys::ALL & !KEY).unwrap();
    assert_eq!(active(), !(1 << 3));
    both(2);
    keys::set(KEY | keys::LWP).unwrap();
    assert_eq!(active(), 1 << 3);
    both(3);
    // As `fut_keychange(FUT_SETMASK, 0, 0)` does: the lower half stays.
    keys::set(keys::ALL & !keys::C_PROGRAM).unwrap();
    assert_eq!(active(), 0);
    both(4);
    recording.finish().unwrap();
    assert_eq!(active(), 0);
    keys::set(keys::ALL).unwrap();
    assert_eq!((active(), fut::is_recording()), (0, false), "it has ended");
    both(5);
    assert_eq!(recorded(&path), ["shared 1", "rusts_own 1", "rusts_own 2", "shared 3", "rusts_own 4"]);
}
