//! Perfetto traces, read with Perfetto's message definitions and with its trace processor.

use std::{collections::BTreeMap, fs, io, path::Path, sync::Arc};

use serde_json::Value;
use sigmund_export::{
    sinks::perfetto::Perfetto,
    timeline::{Actors, Change, CpuId, EventTypeId, ProcessId, RecordedEvent, Sink, ThreadId, Track},
};
use sigmund_model::{Cpu, LwpState, Params, Ticks};

use crate::{
    known_timelines::{self, RandomTimeline},
    machine::Machine,
    tally::Tally,
    viewer,
};

pub(crate) type Emit<'a> = &'a dyn Fn(&mut dyn Sink);

pub(crate) fn emit_small(sink: &mut dyn Sink) {
    known_timelines::small(sink).unwrap();
}

/// Writes a timeline to a file. Returns its sums.
pub(crate) fn write(path: &Path, actors: &Actors, emit: Emit<'_>) -> Tally {
    let mut perfetto = Perfetto::new(fs::File::create(path).unwrap(), Arc::new(actors.clone())).unwrap();
    emit(&mut perfetto);
    let mut tally = Tally::default();
    emit(&mut tally);
    tally
}

/// The contents as read with Perfetto's definitions, after the checks of `read_perfetto.py`.
pub(crate) fn read(path: &Path) -> Option<Value> {
    viewer::run("read_perfetto.py", &[path.as_os_str()])
}

/// The reader's names of rows, by the tally's names of tracks.
fn rows(actors: &Actors, of: impl Fn(Track) -> String) -> BTreeMap<String, String> {
    let threads = actors.thread_ids().map(Track::Thread);
    let tracks = threads.chain(actors.lwp_ids().map(Track::Lwp)).chain(actors.cpu_ids().map(Track::Cpu));
    tracks.map(|track| (format!("{track:?}"), of(track))).collect()
}

fn process(actors: &Actors, process: ProcessId) -> String {
    let process = &actors[process];
    match process.pid {
        Some(pid) => format!("process {pid}: {}", process.name.as_deref().unwrap_or("")),
        None => process.label(),
    }
}

fn state_row(actors: &Actors, track: Track) -> String {
    let Track::Thread(thread) = track else { return String::new() };
    format!("{} / User threads / {}", process(actors, actors[thread].process), actors.thread_label(thread))
}

fn slice_row(actors: &Actors, track: Track) -> String {
    match track {
        Track::Thread(_) => format!("{}: spans, events", state_row(actors, track)),
        Track::Cpu(cpu) => format!("Interrupts on CPUs / CPU {}", actors[cpu]),
        Track::Lwp(lwp) => {
            let lwp = &actors[lwp];
            let name = lwp.name.as_deref().unwrap_or("");
            match actors[lwp.process].pid {
                Some(pid) => format!("{} / LWP {} of {pid}: {name}", process(actors, lwp.process), lwp.lwp),
                None => format!("{} / {}", process(actors, lwp.process), lwp.label()),
            }
        }
    }
}

/// Compares counts and sums of nanoseconds. Both ends of each interval are rounded to the nearest nanosecond.
fn assert_states(actors: &Actors, tally: &Tally, read: &Value) {
    let rows = rows(actors, |track| state_row(actors, track));
    let mut states = BTreeMap::new();
    for state in read["states"].as_array().unwrap() {
        let key = (state[0].as_str().unwrap(), state[1].as_str().unwrap());
        states.insert(key, (state[2].as_u64().unwrap(), state[3].as_u64().unwrap()));
    }
    let mut compared = 0;
    for ((track, state), count) in tally.states.iter().filter(|((track, _), _)| track.starts_with("Thread")) {
        let (read, nanos) = states[&(rows[track].as_str(), *state)];
        assert_eq!(read, *count, "{track} {state}");
        assert_near(nanos, tally.ticks_in_state[&(track.clone(), *state)], *count, actors);
        compared += 1;
    }
    assert_eq!(compared, states.len());
}

pub(crate) fn assert_near(nanos: u64, ticks: u64, intervals: u64, actors: &Actors) {
    let expected = ticks as f64 * 1e9 / actors.clock.rate.unwrap().per_second();
    assert!((nanos as f64 - expected).abs() <= intervals as f64, "{nanos} ns, expected {expected}");
}

fn assert_slices(actors: &Actors, tally: &Tally, read: &Value) {
    let rows = rows(actors, |track| slice_row(actors, track));
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
fn the_small_timeline_is_read_by_perfettos_definitions_as_it_was_emitted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.pftrace");
    let actors = known_timelines::actors(11_000);
    let tally = write(&path, &actors, &emit_small);
    let Some(read) = read(&path) else { return };
    assert_states(&actors, &tally, &read);
    assert_slices(&actors, &tally, &read);
    assert_eq!(read["instants"]["user"], tally.events);
    // One user thread wakes another; one migrates to another LWP. The wakeup and migration of an LWP are kernel events.
    assert_eq!(read["flows"], 2);
    assert_eq!(read["kernel"]["sched_waking"], 1);
    assert_eq!(read["kernel"]["sched_migrate_task"], 1);
    // CPU 0: LWP 70 until it is preempted (0: it stays runnable), idle, LWP 71 until the end (3: for an unknown
    // reason).
    let cpu0 = serde_json::json!([[0, 0, 0], [0, 0, 70], [1000, 0, 0], [2000, 0, 71], [4000, 3, 0]]);
    assert_eq!(read["switches"], serde_json::json!({ "0": cpu0, "3": [[0, 0, 0]] }));
    let counts = serde_json::json!({
        "Run queues / CPU 0": [[480, 1], [2000, 0]],
        "process 70: sumtime / Ready queue": [[1000, 1], [2000, 0]],
    });
    assert_eq!(read["counts"], counts);
    // The event's number that has a name, its LWP and its CPU.
    let main = slice_row(&actors, Track::Thread(ThreadId(0)));
    let notes = serde_json::json!([
        main,
        "received_msg",
        [["len", 64], ["from", 24], ["from name", "eth0"], ["on lwp", 70], ["on cpu", 0]]
    ]);
    assert!(read["notes"].as_array().unwrap().contains(&notes), "{}", read["notes"]);
}

#[test]
fn the_cpu_that_a_probe_read_is_told_if_the_event_is_on_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.pftrace");
    let actors = known_timelines::actors(11_000);
    write(&path, &actors, &|sink| {
        for (at, cpu, seen) in [(1100, Some(0), 0), (1200, Some(0), 3), (1300, None, 3)] {
            let event = RecordedEvent {
                kind: EventTypeId(1),
                cpu: cpu.map(CpuId),
                lwp: None,
                thread: None,
                context: None,
                cpu_seen: Some(Cpu(seen)),
                params: &Params::default(),
            };
            sink.change(Ticks(at), &Change::Event(&event)).unwrap();
        }
        sink.finish().unwrap();
    });
    let Some(read) = read(&path) else { return };
    let notes: Vec<&Value> = read["notes"].as_array().unwrap().iter().map(|note| &note[2]).collect();
    // Of two instants on the first CPU, one tells another; that of an unknown CPU tells it too.
    let expected = serde_json::json!([[["on cpu", 0], ["on cpu", 0], ["cpu seen", 3]], [["cpu seen", 3]]]);
    assert_eq!(serde_json::json!(notes), expected);
}

#[test]
fn random_timelines_are_read_by_perfettos_definitions_as_they_were_emitted() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 1..4 {
        let random = RandomTimeline::new(seed, 20_000);
        let path = folder.path().join("random.pftrace");
        let tally = write(&path, &random.actors, &|sink| random.emit(sink).unwrap());
        let Some(read) = read(&path) else { return };
        assert_states(&random.actors, &tally, &read);
        assert_slices(&random.actors, &tally, &read);
        assert_eq!(read["instants"]["user"], tally.events);
        assert_eq!(read["flows"], tally.wakeups);
        let counts = read["counts"]["process 70: sumtime / Ready queue"].as_array().unwrap();
        assert_eq!(counts.len() as u64, tally.counts);
    }
}

/// The errors and losses that Perfetto's trace processor counted.
pub(crate) const FAULTS: &str = "select name, value from stats where severity != 'info' and value != 0";

/// Sums by tid and state. A state that lasts to the end of the trace has no duration there.
const LWP_STATES: &str = "
    select t.tid, s.state, count(*), sum(iif(s.dur = -1, trace_end() - s.ts, s.dur))
    from thread_state s join thread t using (utid) group by 1, 2";

/// Sums by CPU and tid.
const ON_CPUS: &str = "
    select s.cpu, t.tid, sum(iif(s.dur = -1, trace_end() - s.ts, s.dur))
    from sched s join thread t using (utid) where t.tid != 0 group by 1, 2";

/// The reader's letter for a state.
fn letter(state: LwpState) -> &'static str {
    match state {
        LwpState::Running => "Running",
        LwpState::Runnable => "R",
        LwpState::Sleeping => "S",
        LwpState::DiskSleep => "D",
        LwpState::Stopped => "T",
        other => panic!("{other:?}"),
    }
}

fn assert_lwp_states(actors: &Actors, tally: &Tally, rows: &[Vec<Value>]) {
    let mut read = BTreeMap::new();
    for row in rows {
        let key = (row[0].as_u64().unwrap(), row[1].as_str().unwrap());
        read.insert(key, (row[2].as_u64().unwrap(), row[3].as_u64().unwrap()));
    }
    // The state of an LWP after the end of the trace has zero length and is unknown.
    for ((_, _), (_, nanos)) in read.extract_if(.., |(_, state), _| *state == "SD") {
        assert_eq!(nanos, 0);
    }
    let mut compared = 0;
    for lwp in actors.lwp_ids() {
        for state in LwpState::ALL {
            let key = (format!("{:?}", Track::Lwp(lwp)), state.name());
            let Some(count) = tally.states.get(&key) else { continue };
            let (read, nanos) = read[&(u64::from(actors[lwp].lwp.0), letter(*state))];
            assert_eq!(read, *count, "{key:?}");
            assert_near(nanos, tally.ticks_in_state[&key], *count, actors);
            compared += 1;
        }
    }
    assert_eq!(compared, read.len(), "{read:?}");
}

#[test]
fn perfettos_trace_processor_reads_the_small_timeline() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.pftrace");
    let actors = known_timelines::actors(11_000);
    let tally = write(&path, &actors, &emit_small);
    let queries = [
        FAULTS,
        LWP_STATES,
        ON_CPUS,
        "select p.name, s.name, count(*), sum(s.dur) from slice s join track t on s.track_id = t.id
         join track p on t.parent_id = p.id where s.category = 'state' group by t.id, s.name",
        "select o.name, i.name, i.ts - o.ts from flow f join slice o on f.slice_out = o.id
         join slice i on f.slice_in = i.id order by f.id",
        "select w.tid, s.irq_context from thread_state s join thread t using (utid)
         join thread w on s.waker_utid = w.utid where t.tid = 71",
        "select to_realtime(0)",
        "select t.name, p.pid, p.name as process from thread t join process p using (upid) where t.tid = 71",
    ];
    let Some(answers) = viewer::trace_processor(&path, &queries) else { return };
    let [faults, lwp_states, on_cpus, states, flows, wakers, realtime, names] = &answers[..] else {
        panic!()
    };
    assert_eq!(*faults, Vec::<Vec<Value>>::new());
    assert_lwp_states(&actors, &tally, lwp_states);
    assert_eq!(serde_json::json!(on_cpus), serde_json::json!([[0, 70, 1000], [0, 71, 2000]]));
    assert_eq!(states.len(), 5);
    assert_eq!(
        serde_json::json!(flows),
        serde_json::json!([["wakes", "ready", 0], ["leaves", "arrives", 0]])
    );
    // The interrupt on CPU 3, which was idle.
    assert_eq!(serde_json::json!(wakers), serde_json::json!([[0, 1]]));
    assert_eq!(serde_json::json!(realtime), serde_json::json!([[1_700_000_000_000_000_000_u64]]));
    assert_eq!(serde_json::json!(names), serde_json::json!([["sumtime \"2\"\n", 70, "sumtime"]]));
}

/// Counts wakeups with a known waker, and those from an interrupt.
#[derive(Default)]
struct Wakers {
    known: u64,
    interrupts: u64,
}

impl Sink for Wakers {
    fn change(&mut self, _: Ticks, change: &Change<'_>) -> io::Result<()> {
        if let Change::Wakeup { by: Some(by), .. } = change {
            self.known += 1;
            self.interrupts += u64::from(matches!(by, Track::Cpu(_)));
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn perfettos_trace_processor_reads_cpus_and_lwps_as_they_were_emitted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.pftrace");
    let machine = Machine::new(5, 20_000, 4, 12);
    let tally = write(&path, &machine.actors, &|sink| machine.emit(sink).unwrap());
    let wakers = "select count(*), count(waker_utid), sum(iif(irq_context = 1, 1, 0)) from thread_state where state = 'R'";
    let Some(answers) = viewer::trace_processor(&path, &[FAULTS, LWP_STATES, wakers]) else { return };
    assert_eq!(answers[0], Vec::<Vec<Value>>::new());
    assert_lwp_states(&machine.actors, &tally, &answers[1]);
    let mut wakers = Wakers::default();
    machine.emit(&mut wakers).unwrap();
    assert_eq!(answers[2][0][1], wakers.known);
    assert_eq!(answers[2][0][2], wakers.interrupts);
}

#[test]
fn perfettos_trace_processor_reports_no_error_in_a_random_timeline() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("random.pftrace");
    let random = RandomTimeline::new(9, 30_000);
    let tally = write(&path, &random.actors, &|sink| random.emit(sink).unwrap());
    let states = "select s.name, count(*), sum(s.dur) from slice s where s.category = 'state' group by 1";
    let flows = "select count(*) from flow";
    let Some(answers) = viewer::trace_processor(&path, &[FAULTS, states, flows]) else { return };
    assert_eq!(answers[0], Vec::<Vec<Value>>::new());
    for row in &answers[1] {
        let of = |(_, state): &&(String, &'static str)| Some(*state) == row[0].as_str();
        let count = tally.states.iter().filter(|(key, _)| of(key)).map(|(_, n)| n).sum::<u64>();
        let ticks = tally.ticks_in_state.iter().filter(|(key, _)| of(key)).map(|(_, n)| n).sum();
        assert_eq!(row[1], count);
        assert_near(row[2].as_u64().unwrap(), ticks, count, &random.actors);
    }
    assert_eq!(answers[2][0][0], tally.wakeups);
}
