//! Compares conversions with the truth, which they do not know: clocks that are slewed and jump, read in brackets of
//! random width.

use proptest::prelude::*;
use sigmund_model::{ClockDomain, Nanos, Snapshot, Ticks};

use super::{graph::Graph, sightings::Sighting};

/// A clock that keeps a rate for some time, and then has another. It converts ticks to nanoseconds.
#[derive(Clone, Debug)]
struct Slewed {
    /// For each piece: its first tick, the reading there, and the nanoseconds per tick.
    pieces: Vec<(u64, f64, f64)>,
}

impl Slewed {
    /// `hz` is the rate of the TSC. Each piece lasts for at least four and a half seconds, and its rate is off by
    /// `ppm`.
    fn new(first: (u64, u64), hz: f64, pieces: &[(u64, f64)]) -> Slewed {
        let (mut tick, mut ns) = (0, 0.0);
        let mut all = Vec::new();
        for (milliseconds, ppm) in pieces {
            let rate = 1e9 / hz * (1.0 + ppm * 1e-6);
            all.push((first.0 + tick, ns, rate));
            let length = ((4500 + milliseconds) as f64 / 1e3 * hz) as u64;
            (tick, ns) = (tick + length, ns + length as f64 * rate);
        }
        Slewed { pieces: all }
    }

    /// Nanoseconds since the first reading. These are small numbers, so they are exact to a thousandth.
    fn at(&self, tick: u64) -> f64 {
        let piece = self.pieces.partition_point(|(from, ..)| *from <= tick).max(1) - 1;
        let (from, ns, rate) = self.pieces[piece];
        ns + (tick - from) as f64 * rate
    }
}

fn pieces() -> impl Strategy<Value = Vec<(u64, f64)>> {
    // Up to what NTP may do; RAW is not off at all.
    prop::collection::vec((0..8000_u64, prop_oneof![Just(0.0), -500.0..500.0]), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_converted_instant_is_within_the_bound_of_the_truth(
        first in (0..1_u64 << 61, 0..1_u64 << 61),
        hz in 1e9..5e9,
        pieces in pieces(),
        brackets in prop::collection::vec((20..200_u64, 0.0..1.0, any::<bool>()), 20),
        instants in prop::collection::vec(0.0..1.0, 50),
    ) {
        let clock = Slewed::new(first, hz, &pieces);
        let second = hz as u64;
        let snapshot = |(number, (bracket, part, interrupted)): (usize, &(u64, f64, bool))| {
            // Never two in a row. A conversion makes no promise for a clock that bends twice between two snapshots, or
            // in adjacent pieces.
            let interrupted = *interrupted && number % 5 == 3;
            let bracket = if interrupted { bracket * 1000 } else { *bracket };
            // The recorder sleeps for a second between two snapshots, and a little more.
            let before = first.0 + number as u64 * (second + second / 500);
            let read = before + (bracket as f64 * part) as u64;
            let ns = Nanos(first.1 + clock.at(read) as u64);
            let snapshot = Snapshot { before: Ticks(before), after: Ticks(before + bracket), ns };
            Sighting::of_snapshot(ClockDomain::Monotonic, &snapshot)
        };
        let mut all: Vec<Sighting> = brackets.iter().enumerate().map(snapshot).collect();
        let graph = Graph::new(&mut all, None);
        let (mut path, bound) = graph.way(ClockDomain::Monotonic, ClockDomain::Tsc).expect("twenty snapshots");
        let used: Vec<&Sighting> = all.iter().filter(|sighting| sighting.used).collect();
        prop_assert!(used.len() >= 15, "{}", used.len());
        let (from, to) = (used[0].before, used[used.len() - 1].before);
        for instant in instants {
            let truth = from + ((to - from) as f64 * instant) as u64;
            let ns = first.1 + clock.at(truth) as u64;
            let (found, bound) = (path.convert(ns), bound(ns));
            let off = found.abs_diff(truth) as f64;
            prop_assert!(off <= bound, "{off} ticks off at {truth}, bound {bound}");
            // Clocks with a constant rate are known to a microsecond.
            prop_assert!(pieces.iter().any(|(_, ppm)| *ppm != 0.0) || bound < 5e-6 * hz, "{bound}");
        }
    }
}
