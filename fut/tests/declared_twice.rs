//! Two different declarations of one event: a reader could not know its fields.

use fut::{Init, Recording, shm::Geometry};

mod here {
    fut::events! {
        pub fn happened(number: u64);
    }
}

mod there {
    fut::events! {
        pub fn happened(number: u64, where_: &str);
    }
}

#[test]
fn an_event_declared_twice_with_different_fields_is_refused_with_both_places() {
    let dir = tempfile::tempdir().unwrap();
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe { std::env::set_var(fut::ENV_ARENA_DIR, dir.path()) };
    let Init::Failed(error) = fut::init() else { panic!("it should have been refused") };
    // The lines of the two `events!`: the compiler does not tell a macro more.
    let file = file!();
    let expected = format!(
        "one event has two different declarations: happened(number: u64) in 0x100, declared at {file}:6; and \
         happened(number: u64, where_: text) in 0x100, declared at {file}:12"
    );
    assert_eq!(error.to_string(), expected);

    let recording = Recording::start(&dir.path().join("user.fut"), Geometry::default());
    assert_eq!(recording.unwrap_err().to_string(), expected);
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");

    here::happened(1);
    there::happened(1, "here");
}
