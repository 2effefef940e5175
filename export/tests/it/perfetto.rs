//! Perfetto traces: as Perfetto's message definitions read them, and as its trace processor understands them.

use std::{collections::BTreeMap, fs, io, path::Path, sync::Arc};

use serde_json::Value;
use sigmund_export::{
    perfetto::Perfetto,
    timeline::{Cast, Change, CpuId, LwpId, Sink, Track},
};
use sigmund_model::{Cpu, Lwp, LwpState, Thread, Ticks};

use crate::{story, story::Random, tally::Tally, viewer};

type Tell<'a> = &'a dyn Fn(&mut dyn Sink);

fn tell_small(sink: &mut dyn Sink) {
    story::small(sink).unwrap();
}

/// Writes a story to a file, and sums it up.
fn write(path: &Path, cast: &Cast, tell: Tell<'_>) -> Tally {
    let mut perfetto = Perfetto::new(fs::File::create(path).unwrap(), Arc::new(cast.clone())).unwrap();
    tell(&mut perfetto);
    let mut tally = Tally::default();
    tell(&mut tally);
    tally
}

/// What Perfetto's definitions read of it, after the checks of `read_perfetto.py`.
fn read(path: &Path) -> Option<Value> {
    viewer::run("read_perfetto.py", &[path.as_os_str()])
}

/// The rows that a reader names, by the tally's names for tracks.
fn rows(cast: &Cast, of: impl Fn(Track) -> String) -> BTreeMap<String, String> {
    let threads = cast.thread_ids().map(Track::Thread);
    let tracks = threads.chain(cast.lwp_ids().map(Track::Lwp)).chain(cast.cpu_ids().map(Track::Cpu));
    tracks.map(|track| (format!("{track:?}"), of(track))).collect()
}

fn process(cast: &Cast, process: sigmund_export::timeline::ProcessId) -> String {
    let process = &cast[process];
    match process.pid {
        Some(pid) => format!("process {pid}: {}", process.name.as_deref().unwrap_or("")),
        None => process.label(),
    }
}

fn state_row(cast: &Cast, track: Track) -> String {
    let Track::Thread(thread) = track else { return String::new() };
    let thread = &cast[thread];
    format!("{} / User threads / {}", process(cast, thread.process), thread.label())
}

fn slice_row(cast: &Cast, track: Track) -> String {
    match track {
        Track::Thread(_) => format!("{}: spans, events", state_row(cast, track)),
        Track::Cpu(cpu) => format!("Interrupts on CPUs / CPU {}", cast[cpu]),
        Track::Lwp(lwp) => {
            let lwp = &cast[lwp];
            let name = lwp.name.as_deref().unwrap_or("");
            match cast[lwp.process].pid {
                Some(pid) => format!("{} / LWP {} of {pid}: {name}", process(cast, lwp.process), lwp.lwp),
                None => format!("{} / {}", process(cast, lwp.process), lwp.label()),
            }
        }
    }
}

/// Compares counts, and sums of nanoseconds: each interval is rounded at both ends, to the nearest.
fn assert_states(cast: &Cast, tally: &Tally, read: &Value) {
    let rows = rows(cast, |track| state_row(cast, track));
    let mut states = BTreeMap::new();
    for state in read["states"].as_array().unwrap() {
        let key = (state[0].as_str().unwrap(), state[1].as_str().unwrap());
        states.insert(key, (state[2].as_u64().unwrap(), state[3].as_u64().unwrap()));
    }
    let mut compared = 0;
    for ((track, state), count) in tally.states.iter().filter(|((track, _), _)| track.starts_with("Thread")) {
        let (read, nanos) = states[&(rows[track].as_str(), *state)];
        assert_eq!(read, *count, "{track} {state}");
        assert_near(nanos, tally.ticks_in_state[&(track.clone(), *state)], *count, cast);
        compared += 1;
    }
    assert_eq!(compared, states.len());
}

fn assert_near(nanos: u64, ticks: u64, intervals: u64, cast: &Cast) {
    let expected = ticks as f64 * 1e9 / cast.clock.rate.unwrap().per_second();
    assert!((nanos as f64 - expected).abs() <= intervals as f64, "{nanos} ns, expected {expected}");
}

fn assert_slices(cast: &Cast, tally: &Tally, read: &Value) {
    let rows = rows(cast, |track| slice_row(cast, track));
    let expected: BTreeMap<_, _> =
        tally.slices.iter().map(|((track, name), n)| ((rows[track].clone(), name.clone()), *n)).collect();
    let mut slices = BTreeMap::new();
    for slice in read["slices"].as_array().unwrap() {
        let text = |index: usize| slice[index].as_str().unwrap().to_owned();
        if !["mounted", "executing"].contains(&text(1).as_str()) {
            *slices.entry((text(0), text(2))).or_default() += slice[3].as_u64().unwrap();
        }
    }
    assert_eq!(slices, expected);
}

#[test]
fn the_small_story_is_read_by_perfettos_definitions_as_it_was_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.pftrace");
    let cast = story::cast(11_000);
    let tally = write(&path, &cast, &tell_small);
    let Some(read) = read(&path) else { return };
    assert_states(&cast, &tally, &read);
    assert_slices(&cast, &tally, &read);
    assert_eq!(read["instants"]["user"], tally.events);
    // One user thread wakes another; one goes to another LWP. The wakeup and the migration of an LWP are the kernel's.
    assert_eq!(read["flows"], 2);
    assert_eq!(read["kernel"]["sched_waking"], 1);
    assert_eq!(read["kernel"]["sched_migrate_task"], 1);
    // CPU 0: LWP 70 until it is preempted (0: it stays runnable), nobody, LWP 71 until the end (3: nobody says why).
    let expected = serde_json::json!([[0, 0, 70], [1000, 0, 0], [2000, 0, 71], [4000, 3, 0]]);
    assert_eq!(read["switches"], serde_json::json!({ "0": expected }));
    let counts = serde_json::json!({
        "Run queues / CPU 0": [[480, 1], [2000, 0]],
        "process 70: sumtime / Ready queue": [[1000, 1], [2000, 0]],
    });
    assert_eq!(read["counts"], counts);
    // The event's number that has a name, and who executed it where.
    let main = slice_row(&cast, Track::Thread(sigmund_export::timeline::ThreadId(0)));
    let notes = serde_json::json!([
        main,
        "received_msg",
        [["len", 64], ["from", 24], ["from name", "eth0"], ["on lwp", 70], ["on cpu", 0], ["cpu seen", 0]]
    ]);
    assert!(read["notes"].as_array().unwrap().contains(&notes), "{}", read["notes"]);
}

#[test]
fn random_stories_are_read_by_perfettos_definitions_as_they_were_told() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 1..4 {
        let random = Random::new(seed, 20_000);
        let path = folder.path().join("random.pftrace");
        let tally = write(&path, &random.cast, &|sink| random.tell(sink).unwrap());
        let Some(read) = read(&path) else { return };
        assert_states(&random.cast, &tally, &read);
        assert_slices(&random.cast, &tally, &read);
        assert_eq!(read["instants"]["user"], tally.events);
        assert_eq!(read["flows"], tally.wakeups);
        let counts = read["counts"]["process 70: sumtime / Ready queue"].as_array().unwrap();
        assert_eq!(counts.len() as u64, tally.counts);
    }
}

#[test]
fn scratch() {
    let folder = Path::new("/tmp/pf/out");
    fs::create_dir_all(folder).unwrap();
    let cast = story::cast(11000);
    write(&folder.join("small.pftrace"), &cast, &tell_small);
    let random = Random::new(7, 20_000);
    write(&folder.join("random.pftrace"), &random.cast, &|sink| random.tell(sink).unwrap());
}
