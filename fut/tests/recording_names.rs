//! A recording that starts while user threads live has their names.

use fut::{Recording, shm::Geometry, trace::UserTrace};

#[test]
fn threads_older_than_the_recording_have_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    let to = path.clone();
    fut::Runtime::builder().lwps(1).build().unwrap().run(move || {
        let (end, asked) = fut::sync::channel::bounded(1);
        let older = fut::Builder::new().name("older").spawn(move || asked.recv().unwrap());
        let ended = fut::Builder::new().name("ended").spawn(fut::yield_now);
        ended.join().unwrap();
        let recording = Recording::start(&to, Geometry::default()).unwrap();
        let newer = fut::Builder::new().name("newer").spawn(fut::yield_now);
        newer.join().unwrap();
        end.send(()).unwrap();
        older.join().unwrap();
        recording.finish().unwrap();
    });
    let trace = UserTrace::open(&path).unwrap();
    assert_eq!(trace.losses(), []);
    let names: Vec<&str> = trace.live().iter().map(|(_, facts)| &*facts.name).collect();
    assert!(names.contains(&"older") && !names.contains(&"ended") && !names.contains(&"newer"), "{names:?}");
}
