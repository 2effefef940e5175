//! A snapshot of a flight recorder names the user threads that live, also those whose creation was overwritten.

use fut::{
    FlightRecorder,
    shm::Geometry,
    trace::{CarriedOwner, UserTrace},
};
use sigmund_model::{Event, EventStream};

fut::events! {
    fn happened(number: u64);
}

#[test]
fn threads_older_than_the_oldest_event_have_their_names() {
    let recorder = FlightRecorder::start(Geometry { packets: 4, rings: 8 }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("now.fut");
    let to = path.clone();
    let runtime = fut::Runtime::builder().lwps(1).build().unwrap();
    runtime.run(move || {
        let mutex: &'static fut::sync::Mutex<()> = Box::leak(Box::default());
        let held = mutex.lock();
        let waits = fut::Builder::new().name("waits").spawn(|| drop(mutex.lock()));
        let ended = fut::Builder::new().name("ended").spawn(fut::yield_now);
        ended.join().unwrap();
        (0..100_000).for_each(happened);
        recorder.snapshot(&to).unwrap();
        drop(held);
        waits.join().unwrap();
    });
    let trace = UserTrace::open(&path).unwrap();
    assert_eq!(trace.losses(), []);
    let names: Vec<&str> = trace.live().iter().map(|(_, facts)| &*facts.name).collect();
    assert!(names.contains(&"waits") && !names.contains(&"ended"), "{names:?}");
    assert!(trace.live().iter().all(|(owner, _)| matches!(owner, CarriedOwner::Thread(_))));
    // The first thread was created by another LWP, whose events are all there.
    let waits = trace.live().iter().find_map(|(owner, facts)| match owner {
        CarriedOwner::Thread(thread) if &*facts.name == "waits" => Some(thread.0 as i64),
        _ => None,
    });
    let created = trace.event_types().iter().position(|ty| ty.name == "USER_THREAD_NEW").unwrap();
    let mut event = Event::default();
    for mut stream in trace.streams() {
        while stream.next_into(&mut event).unwrap() {
            let is_created = event.kind as usize == created && event.params.number(0) == waits;
            assert!(!is_created, "its creation is overwritten");
        }
    }
}
