//! Chrome's JSON, read with Python and with Perfetto's trace processor.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use serde_json::{Value, json};
use sigmund_export::{
    sinks::chrome::Chrome,
    timeline::{Actors, Process, ThreadId, Track},
};
use sigmund_model::Lwp;

use crate::{
    known_timelines,
    known_timelines::RandomTimeline,
    machine::Machine,
    perfetto::{Emit, FAULTS, assert_near, emit_small},
    tally::Tally,
    viewer,
};

fn write(path: &Path, actors: &Actors, emit: Emit<'_>) -> Tally {
    let mut chrome = Chrome::new(fs::File::create(path).unwrap(), Arc::new(actors.clone())).unwrap();
    emit(&mut chrome);
    let mut tally = Tally::default();
    emit(&mut tally);
    tally
}

/// The contents as read with Python, after the checks of `read_chrome.py`.
fn read(path: &Path) -> Option<Value> {
    viewer::run("read_chrome.py", &[path.as_os_str()])
}

/// The names of the rows of states and of slices, by the tally's names of tracks.
fn rows(actors: &Actors) -> BTreeMap<String, [String; 2]> {
    let process = |process| {
        let process: &Process = &actors[process];
        process.name.clone().unwrap_or_else(|| process.label())
    };
    let threads = actors.thread_ids().map(|id| {
        let row = format!("{} / {}", process(actors[id].process), actors.thread_label(id));
        (Track::Thread(id), [row.clone(), format!("{row}: spans, events")])
    });
    let lwps = actors.lwp_ids().map(|id| {
        let row = format!("{} / {}", process(actors[id].process), actors[id].label());
        (Track::Lwp(id), [row.clone(), format!("{row}: calls, events")])
    });
    let cpus = actors.cpu_ids().map(|id| {
        let row = format!("CPUs / CPU {}", actors[id]);
        (Track::Cpu(id), [row.clone(), format!("{row}: interrupts")])
    });
    threads.chain(lwps).chain(cpus).map(|(track, rows)| (format!("{track:?}"), rows)).collect()
}

fn assert_sums(actors: &Actors, tally: &Tally, read: &Value) {
    let rows = rows(actors);
    let mut states = BTreeMap::new();
    for state in read["states"].as_array().unwrap() {
        let key = (state[0].as_str().unwrap(), state[1].as_str().unwrap());
        states.insert(key, (state[2].as_u64().unwrap(), state[3].as_u64().unwrap()));
    }
    for (key, count) in &tally.states {
        let (read, nanos) = states[&(rows[&key.0][0].as_str(), key.1)];
        assert_eq!(read, *count, "{key:?}");
        assert_near(nanos, tally.ticks_in_state[key], *count, actors);
    }
    assert_eq!(states.len(), tally.states.len());

    let expected: BTreeMap<_, _> =
        tally.slices.iter().map(|((track, name), n)| ((rows[track][1].clone(), name.clone()), *n)).collect();
    let mut slices = BTreeMap::new();
    for slice in read["slices"].as_array().unwrap() {
        let text = |index: usize| slice[index].as_str().unwrap().to_owned();
        *slices.entry((text(0), text(2))).or_default() += slice[3].as_u64().unwrap();
    }
    assert_eq!(slices, expected);

    let of = |what: &str, which: &str| read[what][which].as_u64().unwrap_or(0);
    assert_eq!(of("instants", "user"), tally.events);
    assert_eq!(of("instants", "migration"), tally.migrations);
    assert_eq!(of("phases", "C"), tally.counts);
}

#[test]
fn the_small_timeline_is_read_by_python_as_it_was_emitted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.json");
    let actors = known_timelines::actors(11_000);
    let tally = write(&path, &actors, &emit_small);
    let Some(read) = read(&path) else { return };
    assert_sums(&actors, &tally, &read);
    assert_eq!(read["phases"]["s"], tally.wakeups);
    let counts = json!({
        "CPUs / run queue of CPU 0": [[480, 1], [2000, 0]],
        "sumtime / ready queue": [[1000, 1], [2000, 0]],
    });
    assert_eq!(read["counts"], counts);
    let args = json!({ "len": 64, "from": 24, "from name": "eth0", "on lwp": 70, "on cpu": 0 });
    let migration = json!({ "from cpu": 3, "to cpu": 0 });
    let notes = read["notes"].as_array().unwrap();
    assert!(notes.contains(&json!(["sumtime / 1 main: spans, events", "received_msg", args])), "{notes:?}");
    assert!(
        notes.contains(&json!(["sumtime / sumtime (70): calls, events", "migration", migration])),
        "{notes:?}"
    );
}

#[test]
fn random_timelines_are_read_by_python_as_they_were_emitted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("random.json");
    for seed in 1..4 {
        let random = RandomTimeline::new(seed, 20_000);
        let tally = write(&path, &random.actors, &|sink| random.emit(sink).unwrap());
        let Some(read) = read(&path) else { return };
        assert_sums(&random.actors, &tally, &read);
        assert_eq!(read["phases"]["s"], tally.wakeups);
    }
    let machine = Machine::new(1, 5000, 4, 12);
    let tally = write(&path, &machine.actors, &|sink| machine.emit(sink).unwrap());
    let Some(read) = read(&path) else { return };
    assert_sums(&machine.actors, &tally, &read);
}

#[test]
fn an_empty_timeline_is_a_valid_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.json");
    let actors = known_timelines::actors(11_000);
    let tally = write(&path, &actors, &|sink| sink.finish().unwrap());
    let Some(read) = read(&path) else { return };
    assert_sums(&actors, &tally, &read);
}

#[test]
fn tids_of_added_rows_differ_from_those_of_lwps() {
    let mut actors = known_timelines::actors(11_000);
    actors.lwps[1].lwp = Lwp(1_000_000_004);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.json");
    write(&path, &actors, &emit_small);
    let Some(read) = read(&path) else { return };
    let tid = |name: &str| {
        let rows = read["rows"].as_array().unwrap();
        rows.iter().find(|row| row[2] == name).unwrap_or_else(|| panic!("{name} in {rows:?}"))[1].clone()
    };
    assert_eq!(tid("sumtime (70)"), 70);
    assert_eq!(tid("sumtime \"2\"\n (1000000004)"), 1_000_000_004);
    let base = 2_000_000_000_u64;
    assert_eq!(tid("1 main"), base);
    assert_eq!(tid("1 main: spans, events"), base + 1);
    assert_eq!(tid(&actors.thread_label(ThreadId(1))), base + 2);
}

#[test]
fn perfettos_trace_processor_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.json");
    let actors = known_timelines::actors(11_000);
    write(&path, &actors, &emit_small);
    let queries = [
        FAULTS,
        "select t.name, s.name, s.ts, s.dur from slice s join thread_track k on s.track_id = k.id
         join thread t using (utid) where s.category = 'state' order by s.ts, t.tid",
        "select o.name, i.name from flow f join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id
         order by f.id",
    ];
    let Some(answers) = viewer::trace_processor(&path, &queries) else { return };
    assert_eq!(json!(answers[0]), json!([]));
    let (second, main) = ("sumtime \"2\"\n (71)", "1 main");
    let states = json!([
        ["sumtime (70)", "running", 0, 1000],
        [second, "sleeping", 0, 480],
        [main, "active", 0, 1000],
        [second, "runnable", 480, 1520],
        ["sumtime (70)", "runnable", 1000, 3000],
        [main, "stalled", 1000, 1000],
        ["2 work/6 \"x\"", "ready", 1000, 1000],
        [second, "running", 2000, 2000],
        [main, "blocked (mutex)", 2000, 2000],
        ["2 work/6 \"x\"", "active", 2000, 2000],
    ]);
    assert_eq!(json!(answers[1]), states);
    // The waker stops executing at the same instant.
    assert_eq!(json!(answers[2]), json!([["NET_RX", "runnable"], ["stalled", "ready"]]));
}
