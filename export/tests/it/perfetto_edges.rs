//! Perfetto traces of edge cases: many names, reused tids, an empty timeline.

use std::{fs, io, sync::Arc};

use serde_json::{Value, json};
use sigmund_export::{
    sinks::perfetto::Perfetto,
    timeline::{Change, CpuId, LwpActor, LwpId, Sink, Slice, SliceKind, ThreadId, Track},
};
use sigmund_model::{Cpu, LwpState, ThreadState, Ticks};

use crate::{
    known_timelines,
    known_timelines::RandomTimeline,
    machine::Machine,
    perfetto::{FAULTS, read, write},
    viewer,
};

const STATES: &str =
    "select t.name, s.ts, s.dur, s.state, s.cpu from thread_state s join thread t using (utid)
                      order by s.ts, t.utid";

fn lwp<'a>(lwp: LwpId, state: Option<LwpState>, cpu: Option<CpuId>) -> Change<'a> {
    Change::Lwp { lwp, state, cpu }
}

fn thread<'a>(thread: ThreadId, state: Option<ThreadState>) -> Change<'a> {
    Change::Thread { thread, state, lwp: None, cpu: None, blocked_on: None, blocked_for: None }
}

/// Emits changes at ticks.
fn emit(sink: &mut dyn Sink, changes: &[(u64, Change<'_>)]) {
    for (tick, change) in changes {
        sink.change(Ticks(*tick), change).unwrap();
    }
    sink.finish().unwrap();
}

#[test]
fn an_empty_timeline_is_a_valid_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.pftrace");
    write(&path, &known_timelines::actors(11_000), &|sink| emit(sink, &[]));
    let Some(sums) = read(&path) else { return };
    assert_eq!((&sums["states"], &sums["flows"]), (&json!([]), &json!(0)));
    let names =
        "select t.tid, t.name, p.name from thread t join process p using (upid) where pid = 70 order by tid";
    let Some(answers) = viewer::trace_processor(&path, &[FAULTS, names]) else { return };
    assert_eq!(json!(answers[0]), json!([]));
    assert_eq!(json!(answers[1]), json!([[70, "sumtime", "sumtime"], [71, "sumtime \"2\"\n", "sumtime"]]));
}

#[test]
fn more_names_than_are_kept_are_defined_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.pftrace");
    let actors = known_timelines::actors(200_000);
    let track = Track::Thread(ThreadId(0));
    let name = |n: u64| format!("{}{n}", "n".repeat(10_000));
    let tally = write(&path, &actors, &|sink| {
        for n in 0..1500 {
            let slice = Slice { kind: SliceKind::Span, name: &name(n % 1000) };
            sink.change(Ticks(1000 + n), &Change::Enter(track, slice)).unwrap();
            sink.change(Ticks(1000 + n), &Change::Leave(track, SliceKind::Span)).unwrap();
        }
        sink.finish().unwrap();
    });
    assert!(fs::metadata(&path).unwrap().len() < 400_000, "15 MB of names compress");
    let Some(sums) = read(&path) else { return };
    // 4 MiB of names are kept, 15 MB are emitted: cleared three times after the first.
    assert_eq!(sums["clears"], 4);
    let slices: u64 = sums["slices"].as_array().unwrap().iter().map(|slice| slice[3].as_u64().unwrap()).sum();
    assert_eq!(slices, tally.slices.values().sum::<u64>());
    assert!(sums["slices"].as_array().unwrap().iter().any(|slice| slice[2] == name(999)));
}

#[test]
fn a_reused_tid_is_another_thread() {
    // LWP 70 |--A--|            ends
    // LWP 70           |--B--|  another one, later
    let mut actors = known_timelines::actors(11_000);
    actors.lwps[0].died = Some(Ticks(3500));
    let another =
        LwpActor { name: Some("another".into()), born: Ticks(6000), died: None, ..actors.lwps[0].clone() };
    actors.lwps.push(another);
    let (cpu, first, second) = (CpuId(0), LwpId(0), LwpId(3));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("again.pftrace");
    write(&path, &actors, &|sink| {
        emit(
            sink,
            &[
                (1000, Change::CpuLwp(cpu, Some(first))),
                (1000, lwp(first, Some(LwpState::Running), Some(cpu))),
                (3500, Change::CpuLwp(cpu, None)),
                (3500, lwp(first, None, Some(cpu))),
                (6000, Change::CpuLwp(cpu, Some(second))),
                (6000, lwp(second, Some(LwpState::Running), Some(cpu))),
                (8500, Change::CpuLwp(cpu, None)),
                (8500, lwp(second, Some(LwpState::Sleeping), Some(cpu))),
                (11_000, lwp(second, None, None)),
            ],
        );
    });
    if read(&path).is_none() {
        return;
    }
    let Some(answers) = viewer::trace_processor(&path, &[FAULTS, STATES]) else { return };
    assert_eq!(json!(answers[0]), json!([]));
    // X: exited.
    let expected = json!([
        ["sumtime", 0, 1000, "Running", 0],
        ["sumtime", 1000, -1, "X", null],
        ["another", 2000, 1000, "Running", 0],
        ["another", 3000, -1, "S", null],
    ]);
    assert_eq!(json!(answers[1]), expected);
}

#[test]
fn an_lwp_may_migrate_to_another_cpu_at_one_instant() {
    // CPU 3  |==70==|
    // CPU 0         |==70==|
    let actors = known_timelines::actors(11_000);
    let (cpu0, cpu3, l) = (CpuId(0), CpuId(1), LwpId(0));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hop.pftrace");
    write(&path, &actors, &|sink| {
        emit(
            sink,
            &[
                (1000, Change::CpuLwp(cpu3, Some(l))),
                (1000, lwp(l, Some(LwpState::Running), Some(cpu3))),
                (3500, Change::CpuLwp(cpu3, None)),
                (3500, Change::CpuLwp(cpu0, Some(l))),
                (3500, lwp(l, Some(LwpState::Running), Some(cpu0))),
                (6000, Change::CpuLwp(cpu0, None)),
                (6000, lwp(l, Some(LwpState::Sleeping), Some(cpu0))),
                (11_000, lwp(l, None, None)),
            ],
        );
    });
    if read(&path).is_none() {
        return;
    }
    let Some(answers) = viewer::trace_processor(&path, &[FAULTS, STATES]) else { return };
    assert_eq!(json!(answers[0]), json!([]));
    let expected = json!([
        ["sumtime", 0, 999, "Running", 3],
        ["sumtime", 999, 1, "R", null],
        ["sumtime", 1000, 1000, "Running", 0],
        ["sumtime", 2000, -1, "S", null],
    ]);
    assert_eq!(json!(answers[1]), expected);
}

#[test]
fn a_cpu_number_that_perfetto_rejects_loses_only_its_own_track() {
    let mut actors = known_timelines::actors(11_000);
    actors.cpus[1] = Cpu(1024);
    let cpu = CpuId(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cpus.pftrace");
    write(&path, &actors, &|sink| {
        emit(
            sink,
            &[
                (1000, Change::CpuLwp(cpu, Some(LwpId(0)))),
                (1000, lwp(LwpId(0), Some(LwpState::Running), Some(cpu))),
                (1000, Change::CpuThread(cpu, Some(ThreadId(0)))),
                (2000, Change::Wakeup { by: Some(Track::Cpu(cpu)), of: Track::Lwp(LwpId(1)) }),
                (2000, lwp(LwpId(1), Some(LwpState::Runnable), Some(cpu))),
                (3500, Change::CpuThread(cpu, None)),
                (3500, Change::CpuLwp(cpu, None)),
                (3500, lwp(LwpId(0), None, None)),
                (3500, lwp(LwpId(1), None, None)),
            ],
        );
    });
    let Some(sums) = read(&path) else { return };
    assert_eq!(sums["slices"], json!([["User threads on CPUs / CPU 1024", "executing", "1 main", 1]]));
    let Some(answers) = viewer::trace_processor(&path, &[FAULTS]) else { return };
    assert_eq!(json!(answers[0]), json!([]));
}

#[test]
fn every_wakeup_has_its_flow_even_if_several_coincide_or_no_state_follows() {
    let actors = known_timelines::actors(11_000);
    let (main, work) = (ThreadId(0), ThreadId(1));
    let wakeup = Change::Wakeup { by: Some(Track::Thread(main)), of: Track::Thread(work) };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wakeups.pftrace");
    write(&path, &actors, &|sink| {
        emit(
            sink,
            &[
                (2000, wakeup),
                (2000, wakeup),
                (2000, thread(work, Some(ThreadState::Ready))),
                (2000, wakeup),
                (3000, wakeup),
                (4000, thread(work, Some(ThreadState::Active))),
                (5000, Change::Wakeup { by: None, of: Track::Thread(work) }),
                (6000, thread(work, None)),
                (6000, wakeup),
            ],
        );
    });
    let Some(sums) = read(&path) else { return };
    assert_eq!(sums["flows"], 5);
    // One flow ends where the state begins.
    assert_eq!(sums["instants"]["wakeup"], 5 + 4);
    let Some(answers) = viewer::trace_processor(&path, &[FAULTS, "select count(*) from flow"]) else {
        return;
    };
    assert_eq!(json!(answers[..2]), json!([[], [[5]]]));
}

#[test]
fn system_calls_of_an_lwp_of_unknown_process_are_in_the_group_of_other_lwps() {
    let actors = known_timelines::actors(11_000);
    let track = Track::Lwp(LwpId(2));
    let slice = Slice { kind: SliceKind::Syscall, name: "read" };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kworker.pftrace");
    write(&path, &actors, &|sink| {
        emit(sink, &[(2000, Change::Enter(track, slice)), (3000, Change::Leave(track, SliceKind::Syscall))]);
    });
    let Some(sums) = read(&path) else { return };
    assert_eq!(sums["slices"], json!([["other LWPs / kworker/0:1 (9)", "syscall", "read", 1]]));
    // No process is invented for it.
    let processes = "select pid from process where pid != 0";
    let Some(answers) = viewer::trace_processor(&path, &[FAULTS, processes]) else { return };
    assert_eq!(json!(answers[0]), Value::Array(Vec::new()));
    assert_eq!(json!(answers[1]), json!([[70]]));
}

/// Records the size of the largest write.
#[derive(Default)]
struct Largest(usize);

impl io::Write for &mut Largest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.max(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn buffered_memory_does_not_grow_with_the_timeline() {
    let held = |changes| {
        let (random, machine) = (RandomTimeline::new(3, changes), Machine::new(3, changes, 8, 50));
        let (mut one, mut two) = (Largest::default(), Largest::default());
        random.emit(&mut Perfetto::uncompressed(&mut one, Arc::new(random.actors.clone())).unwrap()).unwrap();
        machine
            .emit(&mut Perfetto::uncompressed(&mut two, Arc::new(machine.actors.clone())).unwrap())
            .unwrap();
        one.0.max(two.0)
    };
    let (short, long) = (held(30_000), held(300_000));
    assert!(short > 200_000 && long < 300_000, "{short} {long}");
}
