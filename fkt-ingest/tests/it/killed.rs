//! Recorders that are killed at any moment: pages that they had moved to their files can be read.
//!
//! `SIGMUND_KILLS=100 cargo test -p fkt-ingest --test it killed` kills that many.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fkt_ingest::live::{
    EventFilter, Finished, PerfRecorder, Recorder, RecorderOptions, Scope, finish, is_part, is_unfinished,
    perf_fallback_available, remove_leftovers,
};
use fkt_ingest::{PerfData, TraceDat};
use rustix::thread::{CpuSet, sched_setaffinity};
use sigmund_files::Folder;
use sigmund_model::{EventStream, LossKind, Lwp, Pid};

use crate::fixture;
use crate::{
    live::{ONE_AT_A_TIME, can_record},
    skipped::skipped,
};

/// `pread64`, whose fourth argument is the number of the call.
pub(crate) const SYSTEM_CALL: i64 = 17;

fn kills() -> u64 {
    std::env::var("SIGMUND_KILLS").map_or(5, |kills| kills.parse().expect("a number of kills"))
}

/// A thread on one CPU that numbers its system calls.
pub(crate) struct Counting {
    lwp: Lwp,
    stop: Arc<AtomicBool>,
    /// The call it is in.
    at: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Counting {
    pub(crate) fn start(cpu: usize) -> Counting {
        let (stop, at) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (sender, receiver) = std::sync::mpsc::channel();
        let (stopped, reached) = (Arc::clone(&stop), Arc::clone(&at));
        let thread = std::thread::spawn(move || {
            let mut cpus = CpuSet::new();
            cpus.set(cpu);
            sched_setaffinity(None, &cpus).unwrap();
            sender.send(Lwp(rustix::thread::gettid().as_raw_nonzero().get() as u32)).unwrap();
            let file = File::open("/dev/zero").unwrap();
            for number in 0.. {
                reached.store(number, Ordering::Relaxed);
                file.read_at(&mut [], number).unwrap();
                if number % 64 == 0 {
                    std::thread::sleep(Duration::from_micros(100));
                }
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        Counting { lwp: receiver.recv().unwrap(), stop, at, thread }
    }

    pub(crate) fn lwp(&self) -> Lwp {
        self.lwp
    }

    pub(crate) fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// Runs this test in another process, which becomes a recorder of this one.
fn start_recorder(test: &str, folder: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("SIGMUND_RECORD_TO", folder)
        .env("SIGMUND_RECORD_PID", std::process::id().to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("RECORDING")), "the child records");
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn folder_from_environment() -> Folder {
    Folder::open_own(std::env::var_os("SIGMUND_RECORD_TO").unwrap().as_ref(), None).unwrap()
}

/// Moments from 0 to 600 ms, the same in each run.
fn moments() -> impl Iterator<Item = Duration> {
    (0..kills()).map(|kill| Duration::from_micros((kill * 370_821) % 600_000))
}

/// Bytes of whole pages in the files that a killed recorder left.
fn bytes_of_whole_pages(folder: &Folder) -> u64 {
    let names = folder.names().unwrap();
    let pages = names.iter().filter(|name| name.to_string_lossy().contains("pages"));
    pages.map(|name| fs::metadata(folder.path_of(name)).unwrap().len() / 4096 * 4096).sum()
}

#[test]
fn whenever_a_recorder_is_killed_every_event_of_a_whole_page_is_there() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    if !can_record() {
        return;
    }
    let cpus = std::thread::available_parallelism().unwrap().get().min(4);
    let counting: Vec<Counting> = (0..cpus).map(Counting::start).collect();
    let mut with_events = 0;
    for after in moments() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open_own(dir.path(), None).unwrap();
        let recorder = start_recorder("killed::child_that_records", dir.path());
        let begun: Vec<u64> = counting.iter().map(|c| c.at.load(Ordering::Relaxed)).collect();
        std::thread::sleep(after);
        kill(recorder);
        assert!(is_unfinished(&folder));
        let names = folder.names().unwrap();
        assert!(names.iter().all(|name| is_part(name.to_str().unwrap())), "{names:?}");
        let whole = bytes_of_whole_pages(&folder);

        let Finished { summary, stopped } = finish(&folder, "trace.dat").unwrap().unwrap();
        assert!(!stopped);
        assert_eq!(summary.page_bytes(), whole, "after {after:?}");
        assert_eq!(folder.names().unwrap(), ["trace.dat"], "nothing else is left");
        let trace = TraceDat::open(&dir.path().join("trace.dat")).unwrap();
        assert_eq!(trace.losses(), []);
        let calls = calls(&trace);
        for (counting, begun) in counting.iter().zip(begun) {
            // The system calls of a thread are in the buffer of its only CPU: there is no gap from the first to the
            // last.
            let numbers: Vec<i64> =
                calls.iter().filter(|(lwp, _)| *lwp == counting.lwp).map(|(_, n)| *n).collect();
            assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "after {after:?}: {numbers:?}");
            if let Some(first) = numbers.first() {
                // It may have been between two calls, or after the beginning of one.
                assert!(*first <= begun as i64 + 1, "the first is {first}, and {begun} was recorded");
                with_events += 1;
            }
        }
    }
    // A buffer is emptied at least five times per second.
    assert!(with_events as u64 >= kills() / 3, "only {with_events} of {} had whole pages", kills());
    counting.into_iter().for_each(Counting::end);
    remove_leftovers();
}

/// The LWP and the number of each counted call.
fn calls(trace: &TraceDat) -> Vec<(Lwp, i64)> {
    let enter = trace.event_types().iter().position(|ty| ty.name == "sys_enter").unwrap();
    let mut calls = Vec::new();
    for mut stream in trace.streams() {
        for event in fixture::drain(&mut stream) {
            if event.kind as usize == enter && event.params.number(0) == Some(SYSTEM_CALL) {
                // The number of the call, and its six arguments.
                calls.push((event.lwp.unwrap(), event.params.number(4).unwrap()));
            }
        }
        assert_eq!(stream.take_losses(), []);
    }
    calls
}

/// The numbers of the counted calls of an LWP.
pub(crate) fn calls_of(trace: &TraceDat, lwp: Lwp) -> Vec<i64> {
    calls(trace).into_iter().filter(|(of, _)| *of == lwp).map(|(_, number)| number).collect()
}

#[test]
#[ignore = "started by whenever_a_recorder_is_killed_every_event_of_a_whole_page_is_there"]
fn child_that_records() {
    let event =
        |event: &str, condition: &str| EventFilter { event: event.into(), condition: condition.into() };
    let options = RecorderOptions {
        filters: vec![event("raw_syscalls:sys_enter", &format!("id == {SYSTEM_CALL}"))],
        program_events: vec!["raw_syscalls:sys_enter".into()],
        ..RecorderOptions::default()
    };
    let _recorder = Recorder::start(&options, Scope::System, &folder_from_environment()).unwrap();
    println!("RECORDING");
    std::thread::sleep(Duration::from_secs(20));
}

#[test]
fn the_kernel_stops_tracing_when_the_recorder_is_killed() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    if !can_record() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let recorder = start_recorder("killed::child_that_records", dir.path());
    let instance = format!("/sys/kernel/tracing/instances/sigmund-{}-machine", recorder.id());
    let read = |file: &str| fs::read_to_string(format!("{instance}/{file}")).unwrap();
    assert_eq!(read("tracing_on"), "1\n");
    let before: u64 = read("buffer_total_size_kb").trim().parse().unwrap();
    kill(recorder);
    // The kernel closes its files after `wait` has returned, or before.
    let start = Instant::now();
    while read("tracing_on") != "0\n" && start.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(read("tracing_on"), "0\n");
    let after: u64 = read("buffer_total_size_kb").trim().parse().unwrap();
    assert!(after * 10 < before, "{after} of {before} KiB are still taken");
    remove_leftovers();
    assert!(!Path::new(&instance).exists());
}

#[test]
fn whenever_a_recorder_by_perf_is_killed_its_whole_records_are_there() {
    if let Err(why) = perf_fallback_available() {
        return skipped(&why.to_string());
    }
    let mut all = 0;
    for after in moments() {
        let dir = tempfile::tempdir().unwrap();
        let sleeping = AtomicBool::new(true);
        let records = std::thread::scope(|scope| {
            // It switches some thousand times a second.
            scope.spawn(|| {
                while sleeping.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
            let recorder = start_recorder("killed::child_that_records_by_perf", dir.path());
            std::thread::sleep(after + Duration::from_millis(30));
            kill(recorder);
            sleeping.store(false, Ordering::Relaxed);
            let path = dir.path().join("perf.data");
            let data = PerfData::open(&path).unwrap();
            let kinds: Vec<LossKind> = data.losses().iter().map(|loss| loss.kind).collect();
            assert!(kinds.contains(&LossKind::Unfinished), "{:?}", data.losses());
            assert!(
                kinds.iter().all(|kind| matches!(kind, LossKind::Unfinished | LossKind::Truncated)),
                "{:?}",
                data.losses()
            );
            data.streams(None).iter_mut().map(|stream| fixture::drain(stream).len()).sum::<usize>()
        });
        all += records;
    }
    assert!(all > 100, "only {all} records");
}

#[test]
#[ignore = "started by whenever_a_recorder_by_perf_is_killed_its_whole_records_are_there"]
fn child_that_records_by_perf() {
    let pid = std::env::var("SIGMUND_RECORD_PID").unwrap().parse().unwrap();
    let _recorder = PerfRecorder::start(Pid(pid), &folder_from_environment(), "perf.data").unwrap();
    println!("RECORDING");
    std::thread::sleep(Duration::from_secs(20));
}

#[test]
fn a_description_that_is_none_is_refused_and_nothing_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open_own(dir.path(), None).unwrap();
    assert_eq!(finish(&folder, "trace.dat").unwrap(), None);
    let buffer = |page_size: u64, cpus: &str| {
        format!(
            r#"{{"version":1,"system":{{"header_page":"","header_event":"","ftrace_events":[],"events":{{}},
            "printk_formats":"","uname":"","names":{{}}}},"buffers":[{{"name":"","clock":"","page_size":{page_size},
            "cpus":[{cpus}]}}]}}"#
        )
    };
    let cpu = |cpu: u64| format!(r#"{{"cpu":{cpu},"stats":"","lost":0}}"#);
    for (description, words) in [
        (String::new(), "expected the description of a recording, found EOF"),
        ("{\"version\":1}".into(), "missing field"),
        (buffer(0, ""), "page size of a buffer"),
        (buffer(4097, ""), "page size of a buffer"),
        (buffer(1 << 40, ""), "page size of a buffer"),
        (buffer(4096, &format!("{},{}", cpu(1), cpu(1))), "ascending"),
        (buffer(4096, &cpu(7)), "kernel.pages-0-7: No such file"),
        (buffer(4096, "").replacen("\"version\":1", "\"version\":9", 1), "version"),
    ] {
        fs::write(dir.path().join("kernel.unfinished"), &description).unwrap();
        let error = finish(&folder, "trace.dat").unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(folder.names().unwrap(), ["kernel.unfinished"]);
    }
    // Pages that are a link to somewhere else.
    fs::write(dir.path().join("kernel.unfinished"), buffer(4096, &cpu(7))).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("kernel.pages-0-7")).unwrap();
    let error = finish(&folder, "trace.dat").unwrap_err().to_string();
    assert!(error.contains("kernel.pages-0-7: expected a regular file, found a symbolic link"), "{error}");
}
