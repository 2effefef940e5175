//! Measures the speed of writing Pajé files. To be run manually, in a release build: `cargo test --release -p
//! sigmund-export paje_speed -- --ignored --nocapture`

use std::{
    fs::File,
    io::{self, BufReader},
    path::Path,
    sync::Arc,
    time::Duration,
};

use sigmund_export::{
    sinks::paje::{Paje, check},
    timeline::{Actors, Change, Sink},
};
use sigmund_model::Ticks;

use crate::{known_timelines::RandomTimeline, random_changes::RandomChanges};

const CHANGES: u64 = 10_000_000;

/// Ignores all changes.
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

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(said.split(' ').next().unwrap().parse().unwrap())
}

type Emit<'a> = &'a dyn Fn(&mut dyn Sink) -> io::Result<()>;

fn time(emit: Emit<'_>, sink: &mut dyn Sink) -> Duration {
    let before = cpu_time();
    emit(sink).unwrap();
    cpu_time() - before
}

fn write(actors: &Actors, emit: Emit<'_>, path: &Path) -> Duration {
    time(emit, &mut Paje::new(File::create(path).unwrap(), Arc::new(actors.clone())).unwrap())
}

/// Writes a timeline. Returns the rate in M changes/s, including the generation.
fn rate(what: &str, actors: &Actors, emit: Emit<'_>) -> f64 {
    let best = |run: &dyn Fn() -> Duration| (0..3).map(|_| run()).min().unwrap();
    let nothing = best(&|| time(emit, &mut Silence));
    let null = best(&|| write(actors, emit, Path::new("/dev/null")));
    let rate = |time: Duration| CHANGES as f64 / time.as_secs_f64() / 1e6;
    println!(
        "{what}: {:.1} M changes/s, without the generator {:.1} M; {nothing:?} and {null:?}; {} MiB",
        rate(null),
        rate(null - nothing),
        peak_memory()
    );
    rate(null)
}

/// Peak resident memory of this process, in MiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

#[test]
#[ignore = "ten million changes; in a release build"]
fn at_least_two_million_changes_in_a_second() {
    let everything = RandomChanges::new(1, CHANGES);
    let of_everything = rate("all kinds", &everything.actors, &|sink| everything.emit(sink));
    let random = RandomTimeline::new(1, CHANGES);
    let of_random = rate("user threads", &random.actors, &|sink| random.emit(sink));

    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("timeline.trace");
    let file = write(&random.actors, &|sink| random.emit(sink), &path);
    println!("user threads to tmpfs: {file:?}, {} MB", path.metadata().unwrap().len() / 1_000_000);
    let before = cpu_time();
    let report = check(BufReader::new(File::open(&path).unwrap())).unwrap();
    let checked = (cpu_time() - before).as_secs_f64();
    println!("checked at {:.1} M lines/s, {} MiB", report.lines as f64 / checked / 1e6, peak_memory());
    assert_eq!(report.faults, []);
    assert!(of_everything.min(of_random) >= 2.0, "{of_everything:.1} and {of_random:.1} M changes/s");
}
