//! The cost of a probe, compared with reading the clock: `cargo bench -p sigmund-fut --bench probe`.
//!
//! It prints two tables: probes and their peers, and every event that this crate declares. The rows of a table are
//! measured in turn, nine times, so that other load affects all of them equally; a figure is the median. The bench runs
//! on one pinned CPU, in bursts that fit into the ring, so that nothing is lost. The packets are drained between the
//! bursts. The figures include packet switches.

mod built_in;
mod drain;
mod measure;
mod peers;
mod store;
mod two_cpus;

use std::hint::black_box;

use fut::{Runtime, clock::ticks, keys};

use measure::{Cost, Row, Table, each, pin_to};

fut::events! {
    fn none();
    fn two(a: u64, b: u64);
    fn six(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64);
    fn text(number: u64, what: &str);
    /// An event with its own key, which is switched off.
    fn switched_off(a: u64, b: u64) in OFF;
}

const OFF: u64 = 1 << 40;
/// A ring of 4 MiB holds 65536 records of 64 bytes.
const BURST: u64 = 40_000;
/// Without records, nothing limits a burst.
const LONG_BURST: u64 = 400_000;

fn main() {
    pin_to(0);
    let folder = tempfile::tempdir().expect("a folder");
    drain::start(folder.path());
    keys::set(!OFF).expect("switched");

    let table = Table::measure(probes());
    println!("one event, one CPU, median of {}\n{}", measure::ROUNDS, Cost::heading());
    table.print();
    println!("\ntwo LWPs on two CPUs, 2 parameters\n{}", Cost::heading());
    two_cpus::measure(each!(|i| two(i, i))).print();
    println!("\npeers, 2 integers\n{}", Cost::heading());
    peers::print(table.first());
    println!("\nevery event that fut declares, with typical parameters\n{}", Cost::heading());
    built_in::measure().print();

    let summary = drain::finish();
    println!("\n{} records lost in {} packets", summary.lost, summary.packets);
}

fn probes() -> Vec<Row> {
    let user = || Runtime::builder().lwps(1).build().expect("an LWP");
    let (for_two, for_six) = (user(), user());
    vec![
        Row::of("rdtsc", BURST, each!(|_| black_box(ticks()))),
        Row::of("rdtsc + 32 bytes", BURST, store::plain()),
        Row::of("rdtsc + 32 bytes, reserved by xadd", BURST, store::reserved::<4>()),
        Row::of("rdtsc + 64 bytes, reserved by xadd", BURST, store::reserved::<8>()),
        Row::of("no parameter", BURST, each!(|_| none())),
        Row::of("2 parameters", BURST, each!(|i| two(i, i))),
        Row::of("6 parameters", BURST, each!(|i| six(i, i, i, i, i, i))),
        Row::of("a number and 16 letters", BURST, each!(|i| text(i, black_box("sixteen letters.")))),
        Row::new("2 parameters, user thread", move || for_two.run(|| warm(each!(|i| two(i, i))))),
        Row::new("6 parameters, user thread", move || for_six.run(|| warm(each!(|i| six(i, i, i, i, i, i))))),
        Row::of("off, 16 in a row, each", LONG_BURST, each!(|i| sixteen_off(i))).divided_by(16.0),
        Row::of("keys::enabled, 16 in a row, each", LONG_BURST, each!(|i| sixteen_asked(i))).divided_by(16.0),
        Row::of("off, 256 in a row, each", LONG_BURST / 10, each!(|i| many_off(i))).divided_by(256.0),
        Row::of("an empty loop", LONG_BURST, each!(|_| black_box(()))),
    ]
}

/// Measures twice and returns the second result. The ring of another LWP has left the caches since the last round,
/// while the rows of the main thread share one ring.
fn warm(body: impl Fn(u64) + Copy) -> f64 {
    measure::burst(BURST, body);
    measure::burst(BURST, body)
}

macro_rules! sixteen {
    ($what:expr) => {
        $what;
        $what;
        $what;
        $what;
        $what;
        $what;
        $what;
        $what;
        $what;
        $what;
        $what;
        $what;
        $what;
        $what;
        $what;
        $what;
    };
}

#[inline(always)]
fn sixteen_off(i: u64) {
    sixteen!(switched_off(i, i));
}

#[inline(always)]
fn many_off(i: u64) {
    sixteen!(sixteen_off(i));
}

#[inline(always)]
fn sixteen_asked(i: u64) {
    sixteen!(if keys::enabled(OFF) {
        _ = black_box(i);
    });
}
