//! Measures the speed of formats: `cargo test --release -p sigmund-export --test it speed -- --ignored --nocapture`.

use std::{fs, io, sync::Arc};

use sigmund_export::{
    sinks::chrome::Chrome,
    sinks::perfetto::Perfetto,
    timeline::{Actors, Change, Sink},
};
use sigmund_model::Ticks;

use crate::known_timelines::RandomTimeline;

const CHANGES: u64 = 10_000_000;

/// Ignores all changes.
struct Ignore;

impl Sink for Ignore {
    fn change(&mut self, _: Ticks, _: &Change<'_>) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts bytes.
#[derive(Default)]
struct Counted(u64);

impl io::Write for &mut Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// CPU time of this LWP in nanoseconds (Documentation/scheduler/sched-stats.rst, v6.12).
fn cpu_time() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Emits a timeline to the given sink.
type Emit<'a> = &'a mut dyn FnMut(&mut dyn Sink);

/// The least CPU time of three runs in seconds, and the number of bytes written.
fn least(random: &RandomTimeline, write: &dyn Fn(Emit<'_>) -> u64) -> (f64, u64) {
    let once = || {
        let before = cpu_time();
        let bytes = write(&mut |sink| random.emit(sink).unwrap());
        (cpu_time() - before, bytes)
    };
    let (spent, bytes) = (0..3).map(|_| once()).min().unwrap();
    (spent as f64 / 1e9, bytes)
}

fn measure(name: &str, write: impl Fn(Arc<Actors>, Emit<'_>) -> u64) {
    let random = RandomTimeline::new(1, CHANGES);
    let actors = Arc::new(random.actors.clone());
    let (timeline, _) = least(&random, &|emit| {
        emit(&mut Ignore);
        0
    });
    let (all, bytes) = least(&random, &|emit| write(actors.clone(), emit));
    let seconds = all - timeline;
    println!(
        "{name}: {:.2} M changes/s ({seconds:.2} s of CPU time without the timeline's {timeline:.2}), {:.1} bytes each",
        CHANGES as f64 / 1e6 / seconds,
        bytes as f64 / CHANGES as f64,
    );
}

#[test]
#[ignore = "a measurement"]
fn speed_of_perfetto() {
    measure("perfetto", |actors, emit| {
        let mut bytes = Counted::default();
        emit(&mut Perfetto::new(&mut bytes, actors).unwrap());
        bytes.0
    });
    measure("perfetto, uncompressed", |actors, emit| {
        let mut bytes = Counted::default();
        emit(&mut Perfetto::uncompressed(&mut bytes, actors).unwrap());
        bytes.0
    });
}

#[test]
#[ignore = "a measurement"]
fn speed_of_chrome() {
    measure("chrome", |actors, emit| {
        let mut bytes = Counted::default();
        emit(&mut Chrome::new(&mut bytes, actors).unwrap());
        bytes.0
    });
}
