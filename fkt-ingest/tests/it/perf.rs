//! Recordings by perf events, as root and as an ordinary user.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fkt_ingest::PerfData;
use fkt_ingest::live::{PerfRecorder, Plan, perf_fallback_available, plan};
use sigmund_files::Folder;
use sigmund_model::{ClockDomain, ClockFit, Effect, LwpState, Nanos, Pid, Snapshot, Ticks};

use crate::fixture;
use crate::{live::tool_exists, skipped::skipped};

/// Some LWPs that sleep, and some that are preempted: two busy loops for each CPU.
const LOAD: &str = "read go; for i in 1 2 3 4; do (i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done) & done; \
                    for i in 1 2 3; do sleep 0.01; done; wait";

fn record(path: &Path) {
    let mut command = Command::new("sh");
    let mut child = command.args(["-c", LOAD]).stdin(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let (folder, name) = Folder::parent_of(path, None).unwrap();
    let recorder = PerfRecorder::start(Pid(child.id()), &folder, name.to_str().unwrap()).unwrap();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let summary = recorder.stop().unwrap();
    assert_eq!(summary.bytes, std::fs::metadata(path).unwrap().len());
}

/// Reads a recording and compares the number of switches with perf's.
fn check(path: &Path) {
    let data = PerfData::open(path).unwrap();
    assert_eq!(data.losses(), []);
    assert_eq!(data.clock(), ClockDomain::MonotonicRaw);
    assert!(data.lwp_names().iter().any(|(_, comm)| comm == "sh"));
    let (mut ours, mut on_cpu) = (BTreeMap::new(), BTreeMap::new());
    let mut states = Vec::new();
    for mut stream in data.streams(None) {
        for event in fixture::drain(&mut stream) {
            let ty = &data.event_types()[event.kind as usize];
            assert_eq!(event.params.len(), ty.fields.len(), "{}", ty.name);
            assert_eq!(event.cpu, stream.cpu());
            *ours.entry(ty.name.clone()).or_insert(0) += 1;
            match event.effect {
                Effect::LwpArrive => assert_eq!(on_cpu.insert(stream.cpu(), event.lwp), None),
                Effect::LwpLeave { state } => {
                    let before = on_cpu.remove(&stream.cpu());
                    assert!(before.is_none() || before == Some(event.lwp), "{before:?} {event:?}");
                    if ty.name != "perf_exit" {
                        states.push(state);
                    }
                }
                _ => {}
            }
        }
        assert_eq!(fkt_losses(&mut stream), []);
    }
    assert!(states.contains(&LwpState::Runnable) && states.contains(&LwpState::Sleeping), "{states:?}");
    assert!(ours["perf_fork"] >= 7 && ours["perf_exit"] >= 8, "{ours:?}");

    if !tool_exists("perf") {
        return skipped("perf is not installed");
    }
    // As root, perf only reads files that belong to root, unless forced.
    let script = Command::new("perf")
        .args([
            "script",
            "-f",
            "--show-switch-events",
            "--show-task-events",
            "-F",
            "comm,tid,cpu,time,event",
            "-i",
        ])
        .arg(path)
        .output()
        .unwrap();
    assert!(script.status.success(), "{}", String::from_utf8_lossy(&script.stderr));
    let text = String::from_utf8_lossy(&script.stdout);
    let theirs = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(ours["perf_switch_in"], theirs("PERF_RECORD_SWITCH IN"));
    assert_eq!(ours["perf_switch_out"], theirs("PERF_RECORD_SWITCH OUT"));
    assert_eq!(
        states.iter().filter(|s| **s == LwpState::Runnable).count(),
        theirs("PERF_RECORD_SWITCH OUT preempt")
    );
    assert_eq!(ours["perf_fork"], theirs("PERF_RECORD_FORK"));
}

fn fkt_losses(stream: &mut impl sigmund_model::EventStream) -> Vec<sigmund_model::Loss> {
    stream.take_losses()
}

#[test]
fn switches_of_a_programs_lwps_are_those_that_perf_reads() {
    if let Err(why) = perf_fallback_available() {
        return skipped(&why.to_string());
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    record(&path);
    check(&path);
}

#[test]
fn an_ordinary_user_may_record_their_own_lwps() {
    if !tool_exists("setpriv")
        || std::fs::metadata("/proc/self").map(|m| std::os::unix::fs::MetadataExt::uid(&m)).ok() != Some(0)
    {
        return skipped("needs root and setpriv, to become an ordinary user");
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    // The test's own binary may be in a folder that other users cannot read.
    let copy = dir.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let status = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["--exact", "perf::child_that_records", "--ignored"])
        .env("TMPDIR", dir.path())
        .current_dir(dir.path())
        .status()
        .unwrap();
    assert!(status.success());
    check(&dir.path().join("perf.data"));
}

#[test]
#[ignore = "started by an_ordinary_user_may_record_their_own_lwps"]
fn child_that_records() {
    let plan = plan();
    let Plan::Perf { why } = &plan else { panic!("{plan:?}") };
    assert_eq!(why, "the kernel's tracing (tracefs) needs root");
    record(Path::new("perf.data"));
    let here = Folder::open(Path::new(".")).unwrap();
    let error = PerfRecorder::start(Pid(1), &here, "other.data").unwrap_err();
    assert!(error.to_string().contains("denied") || error.to_string().contains("permitted"), "{error}");
}

#[test]
fn a_recording_by_perf_itself_is_read_too() {
    if !tool_exists("perf") {
        return skipped("perf is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    let status = Command::new("perf")
        .args([
            "record",
            "-q",
            "-N",
            "-B",
            "-a",
            "-e",
            "dummy",
            "--switch-events",
            "-k",
            "CLOCK_MONOTONIC_RAW",
            "-o",
        ])
        .arg(&path)
        .args(["sh", "-c", "for i in 1 2 3 4 5; do sleep 0.01; done"])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    if !status.success() {
        return skipped("perf record is not allowed here");
    }
    let data = PerfData::open(&path).unwrap();
    let mut streams = data.streams(None);
    let switches = streams.iter_mut().flat_map(fixture::drain).filter(
        |event| matches!(event.effect, Effect::KernelSwitch { prev: Some(prev), next, .. } if prev != next),
    );
    assert!(switches.count() > 5);
}

#[test]
fn a_fit_turns_the_files_nanoseconds_into_ticks() {
    if let Err(why) = perf_fallback_available() {
        return skipped(&why.to_string());
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    record(&path);
    let at = |ns: u64| Snapshot { before: Ticks(2 * ns), after: Ticks(2 * ns), ns: Nanos(ns) };
    let fit = ClockFit::through(&[at(1_000_000), at(1_000_000_000)]).unwrap();
    let data = PerfData::open(&path).unwrap();
    for (mut plain, mut fitted) in data.streams(None).into_iter().zip(data.streams(Some(fit))) {
        let (plain, fitted) = (fixture::drain(&mut plain), fixture::drain(&mut fitted));
        assert!(plain.iter().zip(&fitted).all(|(p, f)| f.tick.0.abs_diff(2 * p.tick.0) < 1_000));
    }
}

#[test]
fn a_damaged_recording_is_an_error_or_a_loss() {
    if let Err(why) = perf_fallback_available() {
        return skipped(&why.to_string());
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    record(&path);
    let whole = std::fs::read(&path).unwrap();
    let read = |bytes: &[u8]| {
        let data = PerfData::open(&fixture::file(&dir, "damaged.data", bytes)).ok()?;
        let events: usize = data.streams(None).iter_mut().map(|s| fixture::drain(s).len()).sum();
        Some((events, data.losses().to_vec()))
    };
    let (all, _) = read(&whole).unwrap();
    for cut in (0..whole.len()).step_by(997) {
        let Some((events, losses)) = read(&whole[..cut]) else { continue };
        assert!(events < all && !losses.is_empty());
    }
    let mut state = 77u64;
    for _ in 0..300 {
        let mut bytes = whole.clone();
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let at = (state >> 33) as usize % bytes.len();
        bytes[at] ^= 1 << (state >> 61);
        read(&bytes);
    }
    // A killed recorder never wrote the size of its records.
    let mut unfinished = whole.clone();
    unfinished[48..56].fill(0);
    let (events, losses) = read(&unfinished).unwrap();
    assert_eq!((events, losses.len()), (all, 1));
}
