//! Timelines as printed by OTF2's readers.

use std::{path::Path, sync::Arc};

use otf2_writer::Options;
use sigmund_export::{
    sinks::otf2::Otf2,
    timeline::{
        Actors, Change, CpuId, EventTypeId, Hold, LwpId, RecordedEvent, Sink, Slice, SliceKind, Team,
        ThreadActor, ThreadId, Track,
    },
};
use sigmund_model::{Params, Thread, ThreadState, Ticks, WaitKind};

use super::{
    read::{Read, can_read, read},
    truth::{ArchiveSums, escape},
};
use crate::known_timelines::{self, RandomTimeline};

/// The readers' output for the archive of a timeline.
fn drawn(actors: &Actors, events: bool, emit: impl FnOnce(&mut dyn Sink)) -> Read {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("archive");
    emit(&mut Otf2::create(&folder, Arc::new(actors.clone())).unwrap());
    read(&folder, events)
}

fn of_location<'a>(read: &'a Read, location: &str) -> Vec<&'a str> {
    let begin = format!("{location} | ");
    read.events.iter().filter_map(|event| event.strip_prefix(&begin)).collect()
}

// thread 1   | active   | stalled| blocked     |   span "outer" { function "sumtime::node" } on it
// ticks     1000      3500     6000         11000
#[test]
fn states_and_spans_of_a_thread_do_not_cut_each_other() {
    if !can_read() {
        return;
    }
    let actors = known_timelines::actors(11000);
    let read = drawn(&actors, true, |sink| known_timelines::small(sink).unwrap());
    let main = [
        "1000 | ThreadCreate | 1",
        "1000 | ThreadCreate | 2",
        "1000 | Enter | active | lwp=sumtime (70) | cpu=CPU 0",
        "3500 | Leave | active",
        "3500 | Enter | stalled | lwp=sumtime (70)",
        "6000 | Leave | stalled",
        "6000 | Enter | blocked (mutex) | blocked_on=48879",
        "11000 | Leave | blocked (mutex)",
    ];
    assert_eq!(of_location(&read, "1 main"), main);
    let spans = [
        "1200 | Enter | outer",
        "1300 | Enter | sumtime::node",
        "4000 | Leave | sumtime::node",
        "11000 | Leave | outer",
    ];
    assert_eq!(of_location(&read, "1 main: spans"), spans);
}

#[test]
fn the_small_timeline_is_read_back() {
    if !can_read() {
        return;
    }
    let actors = known_timelines::actors(11000);
    let read = drawn(&actors, true, |sink| known_timelines::small(sink).unwrap());
    let mut truth = ArchiveSums::new(&actors);
    known_timelines::small(&mut truth).unwrap();
    truth.check(&read);

    assert_eq!(read.clock, "2500000000 1000 10000 1700000000000000000");
    let events = [
        "1450 | Enter | received_msg | cpu=CPU 0 | lwp=sumtime (70) | thread=1 main | context=task | cpu_seen=0 \
         | len=64 | from: number=24 | from=eth0",
        "1450 | Leave | received_msg",
    ];
    assert_eq!(of_location(&read, "1 main: events"), events);
    let work = [
        "3500 | Enter | wakeup | by=1 main",
        "3500 | Leave | wakeup",
        "6000 | Enter | migration | from=sumtime (70) | to=sumtime \"2\"\\n (71)",
        "6000 | Leave | migration",
    ];
    assert_eq!(of_location(&read, "2 work/6 \"x\": events"), work);
    assert_eq!(of_location(&read, "CPU 0: run queue"), ["2200 | Metric | 1", "6000 | Metric | 0"]);
    assert_eq!(of_location(&read, "thread 3"), ["1000 | ThreadBegin | 2"]);

    assert_eq!(read.locations[&0], ["CPU 0", "CPUs", "CPU_THREAD"]);
    assert_eq!(read.locations[&6], ["CPU 3: interrupts", "CPUs", "CPU_THREAD"]);
    assert_eq!(read.locations[&16], ["kworker/0:1 (9)", "other LWPs", "CPU_THREAD"]);
    assert_eq!(read.locations[&20], ["1 main", "sumtime (70)", "CPU_THREAD"]);
    assert_eq!(read.locations[&33], ["sumtime (70): ready queue", "sumtime (70)", "METRIC"]);
    assert_eq!(
        read.groups[..3],
        [" | COMM_LOCATIONS | 3", "user threads | COMM_GROUP | 3", "spans | REGIONS | 1"]
    );
}

#[test]
fn random_timelines_with_hostile_names_are_read_back() {
    if !can_read() {
        return;
    }
    for seed in 1..4 {
        let random = RandomTimeline::new(seed, 10_000);
        let read = drawn(&random.actors, false, |sink| random.emit(sink).unwrap());
        let mut truth = ArchiveSums::new(&random.actors);
        random.emit(&mut truth).unwrap();
        truth.check(&read);
    }
}

// created     1100            2000                       created before, in and after the export 1000..=5000
// thread 2       |--New--|       |  ended at 4000
#[test]
fn creations_and_ends_are_written_between_the_changes() {
    if !can_read() {
        return;
    }
    let mut actors = known_timelines::actors(5000);
    let thread = |thread, born, died: Option<u64>| ThreadActor {
        thread: Thread(thread),
        born: Ticks(born),
        died: died.map(Ticks),
        ..actors.threads[2]
    };
    let others = [thread(4, 999, Some(2000)), thread(5, 2000, Some(9000)), thread(6, 9000, None)];
    actors.threads[1].born = Ticks(1100);
    actors.threads[1].died = Some(Ticks(4000));
    actors.threads[2].created_by = None;
    actors.threads.extend(others);
    let state = |thread, state| Change::Thread {
        thread: ThreadId(thread),
        state,
        lwp: None,
        cpu: None,
        blocked_on: Some(-7).filter(|_| state == Some(ThreadState::Blocked)),
        blocked_for: Some(WaitKind::Condvar),
    };
    let read = drawn(&actors, true, |sink| {
        sink.change(Ticks(1050), &state(0, Some(ThreadState::Ready))).unwrap();
        sink.change(Ticks(1100), &state(1, Some(ThreadState::New))).unwrap();
        sink.change(Ticks(2500), &state(0, Some(ThreadState::Blocked))).unwrap();
        sink.change(Ticks(4000), &state(1, None)).unwrap();
        sink.change(Ticks(5000), &state(0, None)).unwrap();
        sink.finish().unwrap();
    });
    let main = [
        "1050 | Enter | ready",
        "1100 | ThreadCreate | 1",
        "2000 | ThreadCreate | 4",
        "2500 | Leave | ready",
        "2500 | Enter | blocked (condvar) | blocked_on=-7",
        "5000 | Leave | blocked (condvar)",
    ];
    assert_eq!(of_location(&read, "1 main"), main);
    let forever = u64::MAX;
    let work = ["1100 | ThreadBegin | 1".into(), "1100 | Enter | new".into(), "4000 | Leave | new".into()];
    let end = format!("4000 | ThreadEnd | {forever}");
    assert_eq!(of_location(&read, "2 work/6 \"x\""), work.iter().chain([&end]).collect::<Vec<&String>>());
    assert_eq!(of_location(&read, "thread 3"), [""; 0]);
    assert_eq!(of_location(&read, "thread 4"), [""; 0]);
    assert_eq!(of_location(&read, "thread 5"), ["2000 | ThreadBegin | 4"]);
}

// thread 1   |-- lock 0 --|      blocked until 2 ends |-- continues
// thread 2      |-- lock 1 ---|  ends                         1 is dispatched before 2 has ended
// thread 3                       ends before another thread waits for it
#[test]
fn locks_and_waits_for_ends_are_read_back() {
    if !can_read() {
        return;
    }
    let mut actors = known_timelines::actors(5000);
    let died = [None, Some(Ticks(3000)), Some(Ticks(1500))];
    actors.threads.iter_mut().zip(died).for_each(|(thread, died)| thread.died = died);
    let [main, work, _] = [0, 1, 2].map(ThreadId);
    let hold = |number, lock| Hold { number, lock, address: 0x1000, kind: WaitKind::Mutex };
    let state = |thread, state, joins: Option<i64>| {
        let blocked_for = joins.map(|_| WaitKind::Join);
        Change::Thread { thread, state, lwp: None, cpu: None, blocked_on: joins, blocked_for }
    };
    let (one, two) = (Track::Thread(main), Track::Thread(work));
    let emitted = [
        (1100, Change::Locked { by: one, hold: hold(1, 0) }),
        (1200, Change::Locked { by: two, hold: hold(2, 1) }),
        (1300, Change::Unlocked { by: one, hold: hold(1, 0) }),
        (1400, Change::Unlocked { by: two, hold: hold(2, 1) }),
        (2000, state(main, Some(ThreadState::Blocked), Some(2))),
        (2900, state(main, Some(ThreadState::Ready), None)),
        (2950, state(main, Some(ThreadState::Mounted), None)),
        (4000, state(main, Some(ThreadState::Blocked), Some(3))),
        (4500, state(main, None, None)),
    ];
    let read = drawn(&actors, true, |sink| {
        emitted.iter().for_each(|(tick, change)| sink.change(Ticks(*tick), change).unwrap());
        sink.finish().unwrap();
    });
    let main = [
        "1000 | ThreadCreate | 1",
        "1000 | ThreadCreate | 2",
        "1100 | ThreadAcquireLock | lock 0 acquisition 1",
        "1300 | ThreadReleaseLock | lock 0 acquisition 1",
        "2000 | Enter | blocked (join) | blocked_on=2",
        "2900 | Leave | blocked (join)",
        "2900 | Enter | ready",
        "2950 | Leave | ready",
        "2950 | Enter | mounted",
        "3000 | ThreadWait | 1",
        "4000 | Leave | mounted",
        "4000 | Enter | blocked (join) | blocked_on=3",
        "4500 | Leave | blocked (join)",
    ];
    assert_eq!(of_location(&read, "1 main"), main);
    let work = [
        "1000 | ThreadBegin | 1",
        "1200 | ThreadAcquireLock | lock 1 acquisition 2",
        "1400 | ThreadReleaseLock | lock 1 acquisition 2",
        "3000 | ThreadEnd | 1",
    ];
    assert_eq!(of_location(&read, "2 work/6 \"x\""), work);
    let forever = u64::MAX;
    let third = ["1000 | ThreadBegin | 2".into(), format!("1500 | ThreadEnd | {forever}")];
    assert_eq!(of_location(&read, "thread 3"), third);
    assert_eq!(read.locks.values().copied().collect::<Vec<_>>(), [[1, 1], [1, 1]]);
}

// main       |--fork--- team of 3 ---------------------join--|    in it, work forks another
// work          |--new--- fork - join ---|  ends
// third               |--new--|                                   created for the inner team
// fourth            |--new------------------------------------|   leaves the team at the join, and ends later
#[test]
fn teams_are_forked_and_joined_one_inside_the_other() {
    if !can_read() {
        return;
    }
    let mut actors = known_timelines::actors(5000);
    let lives = [(1000, None), (1200, Some(3000)), (1400, Some(1600)), (1300, Some(4100))];
    actors.threads.push(ThreadActor { thread: Thread(4), ..actors.threads[2] });
    for (thread, (born, died)) in actors.threads.iter_mut().zip(lives) {
        (thread.born, thread.died, thread.created_by) = (Ticks(born), died.map(Ticks), None);
    }
    let [main, work, third, fourth] = [0, 1, 2, 3].map(ThreadId);
    actors.teams = vec![
        Team { by: main, forked: Ticks(1100), joined: Ticks(4000), members: vec![work, fourth] },
        Team { by: work, forked: Ticks(1350), joined: Ticks(1650), members: vec![third] },
        Team { by: main, forked: Ticks(4500), joined: Ticks(4500), members: vec![] },
    ];
    let read = drawn(&actors, true, |sink| sink.finish().unwrap());
    let emitted = [
        (
            "1 main",
            vec![
                "1100 | ThreadFork | 3",
                "1100 | ThreadTeamBegin | team of 1 main",
                "4000 | ThreadTeamEnd | team of 1 main",
                "4000 | ThreadJoin",
                "4500 | ThreadFork | 1",
                "4500 | ThreadTeamBegin | team of 1 main",
                "4500 | ThreadTeamEnd | team of 1 main",
                "4500 | ThreadJoin",
            ],
        ),
        (
            "2 work/6 \"x\"",
            vec![
                "1200 | ThreadTeamBegin | team of 1 main",
                "1350 | ThreadFork | 2",
                "1350 | ThreadTeamBegin | team of 2 work/6 \"x\"",
                "1650 | ThreadTeamEnd | team of 2 work/6 \"x\"",
                "1650 | ThreadJoin",
                "3000 | ThreadTeamEnd | team of 1 main",
            ],
        ),
        (
            "thread 3",
            vec![
                "1400 | ThreadTeamBegin | team of 2 work/6 \"x\"",
                "1600 | ThreadTeamEnd | team of 2 work/6 \"x\"",
            ],
        ),
        (
            "thread 4",
            vec!["1300 | ThreadTeamBegin | team of 1 main", "4000 | ThreadTeamEnd | team of 1 main"],
        ),
    ];
    for (location, events) in emitted {
        assert_eq!(of_location(&read, location), events, "{location}");
    }
    let groups = [
        " | COMM_LOCATIONS | 4",
        "team of 1 main | COMM_GROUP | 3",
        "team of 2 work/6 \"x\" | COMM_GROUP | 2",
        "team of 1 main | COMM_GROUP | 1",
    ];
    assert_eq!(read.groups[..4], groups);
}

#[test]
fn a_timeline_without_changes_and_without_actors_is_an_archive() {
    if !can_read() {
        return;
    }
    let actors = known_timelines::actors(1000);
    let read = drawn(&Actors { threads: vec![], ..actors.clone() }, false, |sink| sink.finish().unwrap());
    assert_eq!((read.count[0].as_str(), read.locations.len()), ("0", 5));

    let mut nobody = Actors { cpus: vec![], processes: vec![], lwps: vec![], threads: vec![], ..actors };
    nobody.clock.rate = None;
    nobody.clock.realtime_at_first = None;
    let read = drawn(&nobody, false, |sink| sink.finish().unwrap());
    // The readers reject an archive without locations.
    assert_eq!((read.count[0].as_str(), read.locations.len()), ("0", 1));
    assert_eq!(read.clock, format!("1000000000 1000 0 {}", u64::MAX));
}

#[test]
fn an_event_without_an_actor_is_at_a_separate_location() {
    if !can_read() {
        return;
    }
    let actors = known_timelines::actors(2000);
    let params = Params::default();
    let event = RecordedEvent {
        kind: EventTypeId(0),
        cpu: None,
        lwp: None,
        thread: None,
        context: None,
        cpu_seen: None,
        params: &params,
    };
    let read = drawn(&actors, true, |sink| {
        sink.change(Ticks(1500), &Change::Event(&event)).unwrap();
        sink.finish().unwrap();
    });
    assert_eq!(
        of_location(&read, "CPU not known: events"),
        ["1500 | Enter | sched_switch", "1500 | Leave | sched_switch"]
    );
}

#[test]
fn long_and_hostile_names_are_kept_within_the_limits_of_the_format() {
    if !can_read() {
        return;
    }
    let mut actors = known_timelines::actors(5000);
    let long = "ü".repeat(5000);
    actors.threads[0].name = Some(actors.thread_names.add(&long));
    actors.processes[0].name = Some("a\0b".into());
    let too_long = "x".repeat(3 << 20);
    let track = Track::Thread(ThreadId(0));
    let read = drawn(&actors, false, |sink| {
        for name in [&long, "", "a\0b", &too_long] {
            let slice = Slice { kind: SliceKind::Span, name };
            sink.change(Ticks(2000), &Change::Enter(track, slice)).unwrap();
        }
        for _ in 0..4 {
            sink.change(Ticks(3000), &Change::Leave(track, SliceKind::Span)).unwrap();
        }
        sink.finish().unwrap();
    });
    let cut = "x".repeat(1 << 20);
    let names = [&escape(&long), "", "a\\u2400b", &cut];
    let regions: Vec<&str> = read.regions.keys().map(|(_, name)| name.as_str()).collect();
    assert_eq!(regions.len(), 4);
    assert!(names.iter().all(|name| regions.contains(name)));
    assert_eq!(read.locations[&20][0], format!("1 {}", escape(&long)));
    assert_eq!(read.locations[&20][1], "a\\u2400b (70)");
}

#[test]
fn events_span_many_chunks() {
    if !can_read() {
        return;
    }
    let actors = known_timelines::actors(1000 + 30_000 * 10);
    let thread = ThreadId(0);
    let emit = |sink: &mut dyn Sink| {
        for number in 0..30_000 {
            let state = (number < 29_999).then_some(ThreadState::ALL[number as usize % 9]);
            let (lwp, cpu, blocked_on) = (Some(LwpId(0)), Some(CpuId(1)), Some(i64::MAX));
            let blocked_for = WaitKind::from_number(number % 16);
            let change = Change::Thread { thread, state, lwp, cpu, blocked_on, blocked_for };
            sink.change(Ticks(1000 + number * 10), &change).unwrap();
        }
        sink.finish().unwrap();
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("archive");
    let options = Options { event_chunk: 256 << 10, ..Options::default() };
    emit(&mut Otf2::with_options(&folder, Arc::new(actors.clone()), options).unwrap());
    assert_eq!(chunks_are_numbered(&folder.join("traces/20.evt"), 256 << 10), 5);
    let mut truth = ArchiveSums::new(&actors);
    emit(&mut truth);
    truth.check(&read(&folder, false));
}

#[test]
fn the_time_of_flushes_does_not_change_the_files() {
    let random = RandomTimeline::new(7, 200_000);
    let folder = tempfile::tempdir().unwrap();
    let actors = Arc::new(random.actors.clone());
    let [pieces, whole] = [(10_000, "pieces"), (1 << 30, "whole")].map(|(memory, name)| {
        let folder = folder.path().join(name);
        let options = Options { memory, ..Options::default() };
        random.emit(&mut Otf2::with_options(&folder, actors.clone(), options).unwrap()).unwrap();
        folder
    });
    for entry in std::fs::read_dir(pieces.join("traces")).unwrap() {
        let name = entry.unwrap().file_name();
        let [pieces, whole] =
            [&pieces, &whole].map(|folder| std::fs::read(folder.join("traces").join(&name)).unwrap());
        assert!(pieces == whole, "{name:?}");
    }
}

/// Checks that the event numbers of chunks are consecutive. Returns the number of chunks.
fn chunks_are_numbered(path: &Path, chunk_size: usize) -> usize {
    let bytes = std::fs::read(path).unwrap();
    let number = |chunk: &[u8], at: usize| u64::from_le_bytes(chunk[at..at + 8].try_into().unwrap());
    let mut next = 1;
    for chunk in bytes.chunks(chunk_size) {
        assert_eq!((chunk[0], chunk[1], number(chunk, 2)), (3, 0x42, next));
        next = number(chunk, 10) + 1;
    }
    bytes.chunks(chunk_size).len()
}

#[test]
fn many_locations_are_written_without_open_files() {
    if !can_read() {
        return;
    }
    let mut actors = known_timelines::actors(1_000_000);
    let thread = |number| ThreadActor { thread: Thread(number), ..actors.threads[2] };
    let more: Vec<_> = (10..300).map(thread).collect();
    actors.threads.extend(more);
    let emit = |sink: &mut dyn Sink| {
        for round in 0..20u64 {
            for thread in actors.thread_ids() {
                let tick = Ticks(1000 + round * 40_000 + u64::from(thread.0));
                let state = if round == 19 { None } else { Some(ThreadState::ALL[round as usize % 9]) };
                let (lwp, cpu) = (Some(LwpId(0)), Some(CpuId(1)));
                sink.change(
                    tick,
                    &Change::Thread { thread, state, lwp, cpu, blocked_on: None, blocked_for: None },
                )
                .unwrap();
            }
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("archive");
    let options = Options { memory: 30_000, ..Options::default() };
    let mut sink = Otf2::with_options(&folder, Arc::new(actors.clone()), options).unwrap();
    emit(&mut sink);
    assert!(folder.join("traces/20.evt").exists());
    assert_eq!(open_files(&folder), 0);
    sink.finish().unwrap();

    let mut truth = ArchiveSums::new(&actors);
    emit(&mut truth);
    truth.check(&read(&folder, false));
}

/// Files of this folder that this process has open.
fn open_files(folder: &Path) -> usize {
    let links =
        std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    links.filter(|path| path.starts_with(folder) && path.is_file()).count()
}
