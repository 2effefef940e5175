//! Measuring: bursts, rounds, medians, and rows that print themselves.

use std::{sync::OnceLock, time::Duration};

use fut::clock::{snapshot, ticks};
use fut::model::ClockDomain;

use crate::drain;

/// Number of measurements of every row.
pub(crate) const ROUNDS: usize = 9;
/// Number of bursts per measurement, of which the median is taken.
const BURSTS: usize = 5;

/// A row of a table that is yet to be measured.
pub(crate) struct Row {
    name: String,
    measure: Box<dyn Fn() -> f64>,
    share: f64,
}

impl Row {
    /// `measure` returns the ticks of one call.
    pub(crate) fn new(name: impl Into<String>, measure: impl Fn() -> f64 + 'static) -> Row {
        Row { name: name.into(), measure: Box::new(measure), share: 1.0 }
    }

    /// `body` gets the number of iterations of its loop, which is `calls` in a burst.
    pub(crate) fn of(name: impl Into<String>, calls: u64, body: impl Fn(u64) + 'static) -> Row {
        Row::new(name, move || burst(calls, &body))
    }

    /// For bodies that repeat the measured operation `times` times.
    pub(crate) fn divided_by(self, times: f64) -> Row {
        Row { share: self.share / times, ..self }
    }
}

/// A body with its own loop, so that the measured expression is inlined into it.
macro_rules! each {
    (|$i:pat_param| $what:expr) => {
        move |calls: u64| {
            for $i in 0..calls {
                $what;
            }
        }
    };
}
pub(crate) use each;

/// Ticks of one iteration of the loop in `body`: the median of several bursts.
pub(crate) fn burst(calls: u64, body: impl Fn(u64)) -> f64 {
    median((0..BURSTS).map(|_| {
        drain::empty_the_rings();
        let start = ticks();
        body(calls);
        (ticks() - start) as f64 / calls as f64
    }))
}

pub(crate) fn median(costs: impl Iterator<Item = f64>) -> f64 {
    let mut costs: Vec<f64> = costs.collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

/// The cost of one operation.
pub(crate) struct Cost {
    pub(crate) name: String,
    pub(crate) ticks: f64,
}

impl Cost {
    pub(crate) fn heading() -> String {
        format!("{:<44} {:>8} {:>8} {:>8}", "", "ticks", "ns", "× first")
    }

    pub(crate) fn print(&self, first: f64) {
        let Cost { name, ticks } = self;
        println!("{name:<44} {ticks:>8.3} {:>8.3} {:>8.3}", ticks * ns_per_tick(), ticks / first);
    }
}

/// Rows that were measured together. All others are compared with the first.
pub(crate) struct Table(pub(crate) Vec<Cost>);

impl Table {
    pub(crate) fn measure(rows: Vec<Row>) -> Table {
        let rounds: Vec<Vec<f64>> =
            (0..ROUNDS).map(|_| rows.iter().map(|row| (row.measure)() * row.share).collect()).collect();
        let cost = |(index, row): (usize, &Row)| Cost {
            name: row.name.clone(),
            ticks: median(rounds.iter().map(|round| round[index])),
        };
        Table(rows.iter().enumerate().map(cost).collect())
    }

    pub(crate) fn first(&self) -> f64 {
        self.0.first().map_or(f64::NAN, |cost| cost.ticks)
    }

    pub(crate) fn print(&self) {
        self.0.iter().for_each(|cost| cost.print(self.first()));
    }
}

/// Nanoseconds of a tick, from two snapshots 100 ms apart.
pub(crate) fn ns_per_tick() -> f64 {
    static RATIO: OnceLock<f64> = OnceLock::new();
    *RATIO.get_or_init(|| {
        let now = || snapshot(ClockDomain::MonotonicRaw).expect("a clock");
        let before = now();
        std::thread::sleep(Duration::from_millis(100));
        let after = now();
        (after.ns.0 - before.ns.0) as f64 / (after.before.0 - before.before.0) as f64
    })
}

/// Pins the calling thread, and the threads that it creates, to this CPU.
pub(crate) fn pin_to(cpu: usize) {
    // SAFETY: a CPU set is plain bits; all zeros is the empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is far below the 1024 of the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid for its size; 0 is the calling thread.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
}
