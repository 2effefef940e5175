//! How fast Pajé files are written. Run by hand, in a release build:
//! `cargo test --release -p sigmund-export paje_speed -- --ignored --nocapture`

use std::{
    fs::File,
    io::{self, BufReader},
    path::Path,
    sync::Arc,
    time::Duration,
};

use sigmund_export::{
    paje::{Paje, check},
    timeline::{Change, Sink},
};
use sigmund_model::Ticks;

use crate::story::Random;

const CHANGES: u64 = 10_000_000;

/// Hears a story and does nothing.
struct Silence;

impl Sink for Silence {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        std::hint::black_box((tick, change));
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What this thread has had of a CPU.
fn cpu_time() -> Duration {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(said.split(' ').next().unwrap().parse().unwrap())
}

fn tell(random: &Random, sink: &mut dyn Sink) -> Duration {
    let before = cpu_time();
    random.tell(sink).unwrap();
    cpu_time() - before
}

fn write(random: &Random, path: &Path) -> Duration {
    tell(random, &mut Paje::new(File::create(path).unwrap(), Arc::new(random.cast.clone())).unwrap())
}

/// What of the process is in memory at most, in MiB.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

#[test]
#[ignore = "ten million changes; in a release build"]
fn at_least_two_million_changes_in_a_second() {
    let random = Random::new(1, CHANGES);
    let nothing = (0..3).map(|_| tell(&random, &mut Silence)).min().unwrap();
    let null = (0..3).map(|_| write(&random, Path::new("/dev/null"))).min().unwrap();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("story.trace");
    let file = write(&random, &path);
    let memory = most_memory();
    let rate = |time: Duration| CHANGES as f64 / time.as_secs_f64() / 1e6;
    println!("the story alone {nothing:?}; with Pajé to /dev/null {null:?}, to tmpfs {file:?}");
    println!("{:.1} M changes/s; without the story {:.1} M; {memory} MiB", rate(null), rate(null - nothing));

    let before = cpu_time();
    let report = check(BufReader::new(File::open(&path).unwrap())).unwrap();
    let checked = (cpu_time() - before).as_secs_f64();
    println!("checked at {:.1} M lines/s, {} MiB", report.lines as f64 / checked / 1e6, most_memory());
    assert_eq!(report.faults, []);
    assert!(rate(null) >= 2.0, "{:.1} M changes/s", rate(null));
}
