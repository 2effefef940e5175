//! CTF: babeltrace2 reads the emitted events.

mod babeltrace;
mod expected;
mod generated;
mod ingest;
mod trace_compass;

use std::path::Path;
use std::sync::Arc;

use sigmund_export::sinks::ctf::{Ctf, Summary};
use sigmund_export::timeline::{Actors, Change, CpuId, EventTypeId, RecordedEvent, Sink};
use sigmund_model::{Params, Ticks};

use crate::cpu_time;
use crate::known_timelines::{self, RandomTimeline};
use expected::{EmittedEvent, EventCollector};
use generated::Dice;

/// Writes a timeline to a folder.
fn write(folder: &Path, actors: &Actors, emit: impl FnOnce(&mut dyn Sink)) -> (Vec<EmittedEvent>, Summary) {
    let mut ctf = Ctf::create(folder, Arc::new(actors.clone())).unwrap();
    let mut listener = EventCollector { actors, emitted: Vec::new(), sink: &mut ctf };
    emit(&mut listener);
    let emitted = listener.emitted;
    (emitted, ctf.summary())
}

/// Writes a timeline, reads it with babeltrace2, and compares event by event. Returns the number of compared fields.
fn compare(actors: &Actors, emit: impl FnOnce(&mut dyn Sink)) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("trace");
    let (emitted, summary) = write(&folder, actors, emit);
    let lines = babeltrace::read(&folder);
    assert_eq!((emitted.len(), emitted.len() as u64), (lines.len(), summary.events));
    assert_eq!((summary.names_left_out, summary.as_text), (0, 0));
    emitted.iter().zip(&lines).map(|(emitted, line)| emitted.assert_is(line)).sum()
}

/// An event of the second declared type, without a known LWP or user thread.
fn on_the_first_cpu(params: &Params) -> RecordedEvent<'_> {
    let (kind, cpu) = (EventTypeId(1), Some(CpuId(0)));
    RecordedEvent { kind, cpu, lwp: None, thread: None, context: None, cpu_seen: None, params }
}

#[test]
fn babeltrace_reads_the_small_timeline() {
    if babeltrace::is_installed() {
        let fields = compare(&known_timelines::actors(11_000), |sink| known_timelines::small(sink).unwrap());
        assert_eq!(fields, 2);
    }
}

#[test]
fn babeltrace_reads_random_timelines_with_hostile_names() {
    if !babeltrace::is_installed() {
        return;
    }
    for seed in 1..6 {
        let random = RandomTimeline::new(seed, 8000);
        // About every eighth change is an event, with two fields.
        assert!(compare(&random.actors, |sink| random.emit(sink).unwrap()) > 1500);
    }
}

// Every type of field with every kind of parameter: fitting and not fitting, a text for a number, an unreadable one.
#[test]
fn babeltrace_reads_every_field_of_hostile_declarations() {
    if !babeltrace::is_installed() {
        return;
    }
    for seed in 1..9 {
        let actors = generated::actors(&mut Dice(seed), 3000);
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("trace");
        let emit = |sink: &mut dyn Sink| generated::emit(&mut Dice(seed + 100), &actors, 3000, sink).unwrap();
        let (emitted, summary) = write(&folder, &actors, emit);
        let lines = babeltrace::read(&folder);
        assert_eq!(emitted.len(), lines.len());
        let is_placed =
            |emitted: &&EmittedEvent| emitted.level == sigmund_model::Level::User || emitted.cpu.is_some();
        assert_eq!(summary.unplaced as usize, emitted.len() - emitted.iter().filter(is_placed).count());
        assert!(summary.unplaced > 100);
        if summary.as_text == 0 {
            emitted.iter().zip(&lines).for_each(|(emitted, line)| _ = emitted.assert_is(line));
        }
    }
}

#[test]
fn an_empty_timeline_is_a_valid_trace() {
    if babeltrace::is_installed() {
        assert_eq!(compare(&known_timelines::actors(11_000), |sink| sink.finish().unwrap()), 0);
    }
}

// 30 MB of one stream, so more than 100 packets; one event is longer than a packet.
#[test]
fn streams_of_many_packets_keep_every_event_in_order() {
    if !babeltrace::is_installed() {
        return;
    }
    let actors = known_timelines::actors(200_000);
    let long = "x".repeat(1_000_000);
    let fields = compare(&actors, |sink| {
        let mut params = Params::default();
        for number in 0..60_000u64 {
            params.clear();
            params.push_number(number as i64);
            params.push_text(if number == 30_000 { &long } else { &long[..400 + number as usize % 100] });
            let event = on_the_first_cpu(&params);
            // Several at each instant.
            sink.change(Ticks(1000 + number / 3), &Change::Event(&event)).unwrap();
        }
        sink.finish().unwrap();
    });
    assert_eq!(fields, 120_000);
}

#[test]
fn a_name_of_10_kb_survives_as_event_as_field_and_as_text() {
    if !babeltrace::is_installed() {
        return;
    }
    let mut actors = known_timelines::actors(11_000);
    let long = "a long \"näme\"\n".repeat(700);
    actors.event_types[1].name = long.clone();
    actors.event_types[1].fields[1].name = long.clone();
    actors.name = long.clone();
    let fields = compare(&actors, |sink| {
        let mut params = Params::default();
        params.push_number(1);
        params.push_text(&long);
        let event = RecordedEvent {
            kind: EventTypeId(1),
            cpu: None,
            lwp: None,
            thread: None,
            context: None,
            cpu_seen: None,
            params: &params,
        };
        sink.change(Ticks(2000), &Change::Event(&event)).unwrap();
        sink.finish().unwrap();
    });
    assert_eq!(fields, 2);
}

// 5 fields in 3 forms are 243 combinations: the first 64 have separate classes, the others are written as texts.
#[test]
fn events_of_too_many_forms_become_texts_and_are_counted() {
    if !babeltrace::is_installed() {
        return;
    }
    let mut actors = known_timelines::actors(11_000);
    let field = actors.event_types[1].fields[0].clone();
    actors.event_types[1].fields =
        (0..5).map(|n| sigmund_model::Field { name: format!("f{n}"), ..field.clone() }).collect();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("trace");
    let (emitted, summary) = write(&folder, &actors, |sink| {
        let mut params = Params::default();
        for number in 0..3u32.pow(5) {
            params.clear();
            for digit in 0..5 {
                match number / 3u32.pow(digit) % 3 {
                    0 => params.push_number(i64::from(number)),
                    1 => params.push_text("text"),
                    _ => params.push_unknown(),
                }
            }
            let event = on_the_first_cpu(&params);
            sink.change(Ticks(1000 + u64::from(number)), &Change::Event(&event)).unwrap();
        }
        sink.finish().unwrap();
    });
    let lines = babeltrace::read(&folder);
    assert_eq!((emitted.len(), lines.len(), summary.as_text), (243, 243, 243 - 64 - 1));
    emitted[..64].iter().zip(&lines).for_each(|(emitted, line)| _ = emitted.assert_is(line));
    // 242 is 22222 in base 3: no parameter was readable.
    let unknown = |name: &str| (name.to_owned(), babeltrace::Value::Text("?".into()));
    assert_eq!(lines[242].fields, ["f0", "f1", "f2", "f3", "f4"].map(unknown));
}

#[test]
fn a_folder_that_is_not_empty_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("kernel_0"), "another program's file").unwrap();
    let error = Ctf::create(dir.path(), Arc::new(known_timelines::actors(11_000))).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
}

// Two exports of the same timeline are identical.
#[test]
fn an_export_can_be_repeated_to_the_byte() {
    let dir = tempfile::tempdir().unwrap();
    let random = RandomTimeline::new(7, 5000);
    for name in ["a", "b"] {
        write(&dir.path().join(name), &random.actors, |sink| random.emit(sink).unwrap());
    }
    for file in ["metadata", "user_0"] {
        let [a, b] = ["a", "b"].map(|name| std::fs::read(dir.path().join(name).join(file)).unwrap());
        assert!(a == b && !a.is_empty(), "{file}");
    }
}

// 10⁷ changes, an eighth of them events; then 10⁷ kernel events of seven fields. Run it alone, in a release build:
// cargo test --release -p sigmund-export --test it -- --ignored --nocapture ctf::speed
#[test]
#[ignore = "measures"]
fn speed() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let random = RandomTimeline::new(1, 10_000_000);
    let mut ctf = Ctf::create(&dir.path().join("random"), Arc::new(random.actors.clone())).unwrap();
    let start = cpu_time::of_this_thread();
    random.emit(&mut ctf).unwrap();
    eprintln!("random: {:?}, {:?}", cpu_time::of_this_thread() - start, ctf.summary());
    std::fs::remove_dir_all(dir.path().join("random")).unwrap();

    let actors = known_timelines::actors(1000 + 100_000_000);
    let mut ctf = Ctf::create(&dir.path().join("switches"), Arc::new(actors)).unwrap();
    let mut params = Params::default();
    let start = cpu_time::of_this_thread();
    for number in 0..10_000_000 {
        params.clear();
        params.push_text("sumtime");
        [70, 120, 256].into_iter().for_each(|number| params.push_number(number));
        params.push_text("kworker/0:1");
        [9, 120].into_iter().for_each(|number| params.push_number(number));
        let (kind, cpu) = (EventTypeId(0), Some(CpuId(number % 2)));
        let event = RecordedEvent {
            kind,
            cpu,
            lwp: None,
            thread: None,
            context: None,
            cpu_seen: None,
            params: &params,
        };
        ctf.change(Ticks(1000 + u64::from(number)), &Change::Event(&event)).unwrap();
    }
    ctf.finish().unwrap();
    eprintln!("switches: {:?}, {:?}", cpu_time::of_this_thread() - start, ctf.summary());
}
