//! A trace that is cut into parts while a program records: each record is in one part, which is the one in which it was made.
//!
//! The program is this test again, with [`ROLE`] in its environment.

use std::{
    env,
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use fut::{
    clock,
    drain::{ArenaServer, Drain},
    shm::{Geometry, Mode},
    trace::{CarriedFile, CarriedOwner, CarriedState, UserTrace, carry_over},
};
use sigmund_model::{Event, EventStream};

fut::events! {
    fn counted(number: u64);
    fn happened_once(number: u64);
}

const ROLE: &str = "FUT_TEST_PARTS";
const PARTS: usize = 12;

/// The program: an LWP that records without pause, a user thread that waits for a mutex all the time, and an LWP that
/// records one event.
#[test]
fn plays_its_role() {
    if env::var_os(ROLE).is_none() {
        return;
    }
    let _ = fut::init();
    thread::spawn(|| {
        happened_once(7);
        thread::sleep(Duration::from_secs(60));
    });
    let runtime = fut::Runtime::builder().lwps(1).build().unwrap();
    runtime.run(|| {
        let mutex: &'static fut::sync::Mutex<()> = Box::leak(Box::default());
        let held = mutex.lock();
        let waits = fut::Builder::new().name("waits").spawn(|| drop(mutex.lock()));
        fut::yield_now();
        let end = Instant::now() + Duration::from_millis(900);
        let mut number = 0;
        while Instant::now() < end {
            for _ in 0..100 {
                counted(number);
                number += 1;
            }
            thread::sleep(Duration::from_millis(1));
        }
        drop(held);
        let _ = waits.join();
    });
}

/// Kills its process when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_record_is_in_the_part_in_which_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let geometry = Geometry { packets: 16, rings: 16 };
    let server = ArenaServer::start(folder.path(), geometry, Mode::Discard, None).unwrap();
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["--exact", "plays_its_role", "--nocapture"]).env(ROLE, "1");
    program.env(fut::ENV_ARENA_DIR, folder.path()).env(fut::control::ENV_CONTROL, "0").stdout(Stdio::null());
    let mut program = Killed(program.spawn().unwrap());
    let path = |part: usize| folder.path().join(format!("part-{part}"));
    let start = Instant::now();
    let arena = loop {
        assert!(start.elapsed() < Duration::from_secs(20), "an arena is handed out");
        match server.take().next() {
            Some(arena) => break arena,
            None => thread::sleep(Duration::from_millis(1)),
        }
    };
    while !arena.has_begun() {
        assert!(start.elapsed() < Duration::from_secs(20), "the program records");
        thread::sleep(Duration::from_millis(1));
    }
    let mut drain = Drain::new(arena, &path(0)).unwrap();
    // When each part ended, at the latest.
    let mut ends = Vec::new();
    for part in 1..PARTS {
        let next = Instant::now() + Duration::from_millis(60);
        while Instant::now() < next {
            drain.poll().unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        drain.next_part(File::create_new(path(part)).unwrap(), &path(part)).unwrap();
        ends.push(clock::ticks());
    }
    while program.0.try_wait().unwrap().is_none() {
        drain.poll().unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    let summary = drain.finish().unwrap();
    assert_eq!((summary.lost, summary.unfinished, summary.unwritten), (0, 0, 0));

    let parts: Vec<(PathBuf, File)> =
        (0..PARTS).map(|part| (path(part), File::open(path(part)).unwrap())).collect();
    let whole = UserTrace::of_parts(folder.path(), parts, false).unwrap();
    assert_eq!(read(&whole, "happened_once").0, [7]);
    let (numbers, records) = read(&whole, "counted");
    assert!(numbers.len() > 100 && numbers.iter().copied().eq(0..numbers.len() as u64));
    assert_eq!(records, summary.records);

    for (part, end) in ends.iter().enumerate() {
        let alone = UserTrace::open(&path(part)).unwrap();
        let mut event = Event::default();
        for mut stream in alone.streams() {
            while stream.next_into(&mut event).unwrap() {
                let begins = part.checked_sub(1).map_or(0, |before| ends[before]);
                // What was being recorded when the part began may be a little older.
                assert!(event.tick.0 <= *end && event.tick.0 + 10_000_000 >= begins, "part {part}");
            }
        }
    }
    assert_eq!(read(&UserTrace::open(&path(0)).unwrap(), "happened_once").0, [7]);
    threads_are_known_without_the_first_parts(&path);
}

/// What is carried over from all parts but the last.
fn threads_are_known_without_the_first_parts(path: &dyn Fn(usize) -> PathBuf) {
    let mut carried: Option<PathBuf> = None;
    for part in 0..PARTS - 3 {
        let before = carried.take().map(|path| CarriedFile::open(&path, File::open(&path).unwrap()).unwrap());
        let next = path(part).with_extension("carried");
        let parts = vec![(path(part), File::open(path(part)).unwrap())];
        carry_over(before, parts, File::create_new(&next).unwrap(), u64::MAX).unwrap();
        fs::remove_file(path(part)).unwrap();
        carried = Some(next);
    }
    let last = carried.unwrap();
    let file = CarriedFile::open(&last, File::open(&last).unwrap()).unwrap();
    let lwps = file.lwps().clone();
    let threads: Vec<_> =
        file.filter(|(owner, _)| matches!(owner, CarriedOwner::Thread(_))).map(|(_, facts)| facts).collect();
    let states: Vec<_> = threads.iter().map(|facts| (&*facts.name, facts.state(&lwps).unwrap())).collect();
    let of = |name: &str| states.iter().find(|(of, _)| *of == name).map(|(_, state)| *state);
    assert!(matches!(of("waits"), Some(CarriedState::Blocked(_))), "{states:?}");
    assert!(states.iter().any(|(_, state)| matches!(state, CarriedState::Mounted(_))), "{states:?}");
}

/// The numbers of the events of this name, and how many events there are.
fn read(trace: &UserTrace, name: &str) -> (Vec<u64>, u64) {
    let types = trace.event_types();
    let (mut numbers, mut records, mut event) = (Vec::new(), 0, Event::default());
    for mut stream in trace.streams() {
        while stream.next_into(&mut event).unwrap() {
            records += 1;
            if types[event.kind as usize].name == name {
                numbers.push(event.params.number(0).unwrap() as u64);
            }
        }
        assert_eq!(stream.take_losses(), []);
    }
    (numbers, records)
}
