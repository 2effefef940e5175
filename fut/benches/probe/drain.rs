//! The recorder's side of the bench. It takes the packets between two bursts, on the measuring thread, and never during
//! a burst. So there is room for all records of a burst, even on a busy machine.

use std::{path::Path, sync::Mutex};

use fut::{
    ENV_ARENA_DIR, Init,
    drain::{Drain, DrainSummary},
    shm::Arena,
};

static DRAIN: Mutex<Option<Drain<Arena>>> = Mutex::new(None);

/// Starts to record to `folder`.
pub(crate) fn start(folder: &Path) {
    // SAFETY: there is no other thread yet.
    unsafe { std::env::set_var(ENV_ARENA_DIR, folder) };
    match fut::init() {
        Init::Recording => {}
        other => panic!("{other:?}"),
    }
    let arena = Arena::open(&folder.join(format!("{}.arena", std::process::id()))).expect("our arena");
    *DRAIN.lock().expect("unpoisoned") = Some(Drain::new(arena, &folder.join("user.fut")).expect("a trace"));
}

/// Takes all finished packets.
pub(crate) fn empty_the_rings() {
    let mut drain = DRAIN.lock().expect("unpoisoned");
    let drain = drain.as_mut().expect("started");
    while drain.poll().expect("the trace is written") > 0 {}
}

/// Totals of recorded and lost records.
pub(crate) fn finish() -> DrainSummary {
    let drain = DRAIN.lock().expect("unpoisoned").take().expect("started");
    fut::keys::set(0).expect("switched");
    drain.finish().expect("the trace is written")
}
