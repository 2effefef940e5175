//! Measures speed and memory, without assertions: `cargo test --release -- --ignored --nocapture otf2`.

use std::{fs, sync::Arc, time::Instant};

use sigmund_export::{
    sinks::otf2::Otf2,
    timeline::{Change, Sink, ThreadActor, ThreadId},
};
use sigmund_model::{Thread, ThreadState, Ticks};

use crate::known_timelines::{self, RandomTimeline};

/// User and system time of this process so far, in seconds.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

struct Nothing;

impl Sink for Nothing {
    fn change(&mut self, _: Ticks, change: &Change<'_>) -> std::io::Result<()> {
        std::hint::black_box(change);
        Ok(())
    }

    fn finish(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn measure(what: &str, changes: f64, emit: impl FnOnce()) {
    let (before, wall) = (cpu_seconds(), Instant::now());
    emit();
    let (cpu, wall) = (cpu_seconds() - before, wall.elapsed().as_secs_f64());
    println!(
        "{what}: {cpu:.2} s CPU, {wall:.2} s wall, {:.2} M changes/s of CPU, peak {} MiB",
        changes / cpu / 1e6,
        peak_mib()
    );
}

#[test]
#[ignore = "measures"]
fn ten_million_changes() {
    let random = RandomTimeline::new(1, 10_000_000);
    measure("replay alone", 1e7, || random.emit(&mut Nothing).unwrap());
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let folder = folder.path().join("archive");
    measure("10 million changes", 1e7, || {
        random.emit(&mut Otf2::create(&folder, Arc::new(random.actors.clone())).unwrap()).unwrap();
    });
}

#[test]
fn more_actors_than_files_can_be_made_for_are_refused_before_anything_is_written() {
    let mut actors = known_timelines::actors(1 << 40);
    let thread = |number| ThreadActor { thread: Thread(number), ..actors.threads[2] };
    let more: Vec<_> = (10..100_010).map(thread).collect();
    actors.threads.extend(more);
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    let error = Otf2::create(&archive, Arc::new(actors)).unwrap_err().to_string();
    assert!(
        error.contains("expected at most 100000 of these, found 100003 user threads, 3 LWPs and 2 CPUs"),
        "{error}"
    );
    assert!(error.contains("--thread"), "{error}");
    assert!(!archive.exists());
}

#[test]
#[ignore = "measures"]
fn a_hundred_thousand_threads() {
    let mut actors = known_timelines::actors(1 << 40);
    let thread = |number| ThreadActor { thread: Thread(number), ..actors.threads[2] };
    let more: Vec<_> = (10..100_000).map(thread).collect();
    actors.threads.extend(more);
    let threads = actors.threads.len() as u64;
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut sink = Otf2::create(&folder.path().join("archive"), Arc::new(actors)).unwrap();
    measure("10 million changes of 100,000 threads", 1e7, || {
        for number in 0..10_000_000u64 {
            let thread = ThreadId((number % threads) as u32);
            let state = Some(ThreadState::ALL[(number / threads) as usize % 9]);
            let change =
                Change::Thread { thread, state, lwp: None, cpu: None, blocked_on: None, blocked_for: None };
            sink.change(Ticks(1000 + number * 100), &change).unwrap();
        }
    });
    measure("its end", 1e7, || sink.finish().unwrap());
}
