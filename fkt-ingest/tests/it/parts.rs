//! A recording that is cut into parts: no event is missing or there twice, whatever the parts are made of.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fkt_ingest::TraceDat;
use fkt_ingest::live::{
    ClosedPart, EventFilter, Recorder, RecorderOptions, Rotator, Scope, finish_parts, is_part, is_unfinished,
    part_name, remove_part, write_part, write_part_compressed,
};
use sigmund_files::Folder;
use sigmund_model::{Cpu, Event, EventStream, Pid, Ticks};

use crate::killed::{Counting, SYSTEM_CALL, calls_of};
use crate::live::{ONE_AT_A_TIME, can_record, count, count_report, tool_exists};
use crate::skipped::skipped;

/// Calls with numbers, of a thread on each CPU, and switches.
fn options() -> RecorderOptions {
    let calls =
        EventFilter { event: "raw_syscalls:sys_enter".into(), condition: format!("id == {SYSTEM_CALL}") };
    RecorderOptions {
        program_events: vec!["raw_syscalls:sys_enter".into()],
        filters: vec![calls],
        ..RecorderOptions::default()
    }
}

/// Records for some tenths of a second, and cuts that into five parts.
fn record_in_parts(folder: &Folder) -> Vec<(ClosedPart, Ticks)> {
    let recorder =
        Recorder::start_in_parts(&options(), Scope::Program(Pid(std::process::id())), folder).unwrap();
    let mut rotator: Rotator = recorder.rotator();
    let mut parts = Vec::new();
    // On a busy machine, those who read the buffers begin late.
    for length in [400, 60, 60, 60] {
        std::thread::sleep(Duration::from_millis(length));
        let closed = rotator.next_part(folder).unwrap();
        parts.push((closed, ticks()));
    }
    std::thread::sleep(Duration::from_millis(60));
    drop(rotator);
    let (last, failures) = recorder.stop().unwrap().close_part(folder).unwrap();
    assert_eq!(failures, Vec::<String>::new());
    parts.push((last, ticks()));
    parts
}

fn sorted_names(folder: &Folder) -> Vec<OsString> {
    let mut names = folder.names().unwrap();
    names.sort();
    names
}

fn ticks() -> Ticks {
    // SAFETY: every x86-64 processor has this instruction, and it has no precondition.
    Ticks(unsafe { core::arch::x86_64::_rdtsc() })
}

/// The events of each CPU of each buffer.
fn events(path: &Path) -> BTreeMap<(String, Cpu), Vec<Event>> {
    let trace = TraceDat::open(path).unwrap();
    assert_eq!(trace.losses(), []);
    let mut all = BTreeMap::new();
    for mut stream in trace.streams() {
        let place = (stream.buffer().to_owned(), stream.cpu());
        let events = crate::fixture::drain(&mut stream);
        assert_eq!(stream.take_losses(), []);
        all.insert(place, events);
    }
    all
}

#[test]
fn all_parts_together_have_every_event_once_and_each_has_what_the_kernel_counted() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    if !can_record() {
        return;
    }
    let cpus = std::thread::available_parallelism().unwrap().get().min(4);
    let counting: Vec<Counting> = (0..cpus).map(Counting::start).collect();
    let lwps: Vec<_> = counting.iter().map(Counting::lwp).collect();
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open_own(dir.path(), None).unwrap();
    let parts = record_in_parts(&folder);
    counting.into_iter().for_each(Counting::end);
    assert!(is_unfinished(&folder));
    assert_eq!(parts.iter().map(|(closed, _)| closed.part).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);

    // One compressed, one plain, and the others as after a kill.
    let stopped = write_part_compressed(&folder, 2, &AtomicBool::new(true)).unwrap_err();
    assert_eq!(stopped.kind(), fkt_ingest::ErrorKind::Io, "{stopped}");
    let go_on = AtomicBool::new(false);
    let before = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let compressed = write_part_compressed(&folder, 2, &go_on).unwrap().unwrap();
    let after = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let ms = (after.tv_sec - before.tv_sec) as f64 * 1e3 + (after.tv_nsec - before.tv_nsec) as f64 / 1e6;
    let (plain, packed) = (compressed.summary.page_bytes(), compressed.summary.bytes);
    eprintln!("zstd: {plain} bytes of pages to {packed} in {ms:.1} ms of CPU time");
    assert!(compressed.stopped);
    assert!(compressed.summary.bytes < compressed.summary.page_bytes() / 2, "{compressed:?}");
    assert!(write_part(&folder, 3).unwrap().unwrap().stopped);
    assert_eq!(write_part_compressed(&folder, 3, &go_on).unwrap(), None, "it is written already");
    let finished: Vec<u32> = finish_parts(&folder).unwrap().into_iter().map(|(part, _)| part).collect();
    assert_eq!(finished, [1, 4, 5]);
    assert!(!is_unfinished(&folder));
    let names = (1..=5).map(|part| part_name(part).into()).collect::<Vec<OsString>>();
    assert_eq!(sorted_names(&folder), names, "nothing else is left");
    assert!(names.iter().all(|name| is_part(name.to_str().unwrap())));

    let mut last: BTreeMap<(String, Cpu), Ticks> = BTreeMap::new();
    let mut numbers = vec![Vec::new(); lwps.len()];
    for (closed, until) in &parts {
        let path = dir.path().join(part_name(closed.part));
        let mut read = 0;
        for (place, events) in events(&path) {
            read += events.len() as u64;
            let last = last.entry(place.clone()).or_insert(Ticks(0));
            for event in &events {
                assert!(*last <= event.tick && event.tick < *until, "part {} of {place:?}", closed.part);
                *last = event.tick;
            }
        }
        assert_eq!(read, closed.events, "part {}", closed.part);
        assert!(read > 0 && closed.lost.iter().all(|(_, lost)| *lost == 0), "{closed:?}");
        let trace = TraceDat::open(&path).unwrap();
        for (lwp, numbers) in lwps.iter().zip(&mut numbers) {
            numbers.extend(calls_of(&trace, *lwp));
        }
        if tool_exists("trace-cmd") {
            assert_eq!(count(&trace), count_report(&path), "part {}", closed.part);
        } else {
            skipped("trace-cmd is not installed");
        }
    }
    for numbers in numbers {
        assert!(numbers.len() > 1000, "{} calls", numbers.len());
        let missing = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        assert_eq!(missing, 0, "of {} calls", numbers.len());
    }
}

#[test]
fn a_part_that_is_removed_leaves_the_others() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    if !can_record() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open_own(dir.path(), None).unwrap();
    record_in_parts(&folder);
    write_part_compressed(&folder, 1, &AtomicBool::new(false)).unwrap();
    // Written or not, it is gone; twice, too.
    for part in [1, 2, 2] {
        remove_part(&folder, part).unwrap();
    }
    assert_eq!(write_part(&folder, 2).unwrap(), None);
    finish_parts(&folder).unwrap();
    assert_eq!(sorted_names(&folder), [3, 4, 5].map(|part| OsString::from(part_name(part))));
}
