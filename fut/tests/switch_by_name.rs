//! Single events switched by name, in a recording.

use fut::{
    Recording, declared_events,
    model::{LeaveReason, Thread},
    scheduler,
    shm::Geometry,
    switch_events,
    trace::UserTrace,
};

fut::events! {
    fn kept(number: u64);
    fn dropped(number: u64);
}

mod another_crate {
    fut::events! {
        /// Declared here as well, and the same: one event.
        pub(crate) fn kept(number: u64);
    }
}

/// More than two packets hold.
const MANY: u64 = 6000;

#[test]
fn only_what_is_on_is_recorded_and_packets_name_the_mounted_thread_all_the_same() {
    assert_eq!(switch_events("drop*", false).unwrap(), 1, "before the recording, it counts as well");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("user.fut");
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    assert_eq!(switch_events("USER_CONTEXT_*", false).unwrap(), 1);
    kept(0);
    scheduler::switch(Some(Thread(7)), LeaveReason::Yield, 0, None);
    (1..MANY).for_each(kept);
    another_crate::kept(MANY);
    dropped(1);
    let off: Vec<&str> = declared_events().filter(|event| !event.is_on()).map(|event| event.name()).collect();
    // Locks are recorded when somebody asks for their key.
    assert_eq!(off, ["LOCK_ACQUIRE", "LOCK_RELEASE", "USER_CONTEXT_SWITCH", "dropped"]);
    recording.finish().unwrap();
    assert!(declared_events().all(|event| !event.is_on()));
    kept(MANY + 1);

    let trace = UserTrace::open(&path).unwrap();
    let declared = trace.declarations().iter().filter(|d| d.event.name == "kept").collect::<Vec<_>>();
    let [kept] = declared[..] else { panic!("declared once: {declared:?}") };
    let mut numbers = Vec::new();
    for lwp in trace.lwps() {
        let threads: Vec<_> = lwp.heads().map(|head| head.thread).collect();
        assert_eq!(threads, [None, Some(Thread(7)), Some(Thread(7))]);
        for packet in (0..lwp.len()).map(|index| lwp.packet(index).unwrap().unwrap().unwrap()) {
            let records = packet.records().filter(|record| Some(record.head.code) == kept.event.code);
            numbers.extend(records.map(|record| record.word(0).unwrap()));
            assert_eq!(packet.records().filter(|record| is_off(&trace, record.head.code)).count(), 0);
        }
    }
    assert_eq!(numbers, (0..=MANY).collect::<Vec<_>>());
}

fn is_off(trace: &UserTrace, code: u32) -> bool {
    let event = trace.declarations().iter().find(|d| d.event.code == Some(code)).unwrap();
    ["USER_CONTEXT_SWITCH", "dropped"].contains(&event.event.name.as_str())
}
