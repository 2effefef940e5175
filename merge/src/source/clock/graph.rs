//! Clocks, and the conversions between them. A clock that no snapshot ties to another one may still be reached through
//! a third.
//!
//! ```text
//!   monotonic ──snapshots── tsc ──snapshots── boottime
//!                            │
//!                        snapshots         local ┄┄ estimated ┄┄ tsc
//!                            │
//!                      monotonic_raw ──CLOCK_DATA── realtime
//! ```

use std::{collections::BTreeMap, sync::Arc};

use sigmund_model::{ClockDomain, Conversion, Hertz};

use super::sightings::{self, Sighting, SightingKind, Ways};

/// The largest error of a rate that was not measured. Crystals and the calibrations of kernels are better. NTP makes
/// larger corrections only while it searches.
pub(super) const DRIFT: f64 = 1e-5;

/// All clocks that were read together with another one.
#[derive(Debug, Default)]
pub(super) struct Graph {
    edges: BTreeMap<(ClockDomain, ClockDomain), Edge>,
}

#[derive(Debug)]
struct Edge {
    conversion: Arc<Conversion>,
    /// The path with the lowest cost is taken: measured conversions before assumed rates before estimates.
    cost: u32,
}

impl Graph {
    /// Makes the graph from all sightings. They are sorted, and marked if they are used.
    pub(super) fn new(all: &mut [Sighting], tick_hz: Option<Hertz>) -> Graph {
        all.sort_by_key(|s| (s.against, s.domain, s.before, s.value));
        let mut graph = Graph::default();
        for of_two in all.chunk_by_mut(|a, b| (a.against, a.domain) == (b.against, b.domain)) {
            let (against, domain) = (of_two[0].against, of_two[0].domain);
            if let Some(ways) = sightings::through(of_two) {
                graph.add(against, domain, ways, 1);
            }
        }
        let tick_hz = tick_hz.or_else(|| graph.tsc_hz());
        for one in all.chunk_by_mut(|a, b| (a.against, a.domain) == (b.against, b.domain)) {
            let clocks = (one[0].against, one[0].domain);
            let rates = (hertz(clocks.0, tick_hz), hertz(clocks.1, tick_hz));
            if let ((Some(of), Some(to)), false) = (rates, graph.edges.contains_key(&clocks)) {
                let rate = to.per_second() / of.per_second();
                if let Some(ways) = sightings::with_rate(&mut one[0], rate, DRIFT) {
                    graph.add(clocks.0, clocks.1, ways, 10);
                }
            }
        }
        graph
    }

    /// Adds an estimated relation, and fills in its row.
    pub(super) fn add_estimate(&mut self, sighting: &mut Sighting, rate: f64, drift: f64) {
        debug_assert_eq!(sighting.kind, SightingKind::Estimated);
        if let Some(ways) = sightings::with_rate(sighting, rate, drift) {
            self.add(sighting.against, sighting.domain, ways, 100);
        }
    }

    /// The cheapest path from one clock to another; `None` if there is none.
    pub(super) fn path(&self, from: ClockDomain, to: ClockDomain) -> Option<Path> {
        let mut known: BTreeMap<ClockDomain, (u32, Path)> = [(from, (0, Path::default()))].into();
        // There are fewer clocks than rounds. Each round finds all paths that are one step longer.
        for _ in 0..8 {
            for ((here, there), edge) in &self.edges {
                let Some((cost, path)) = known.get(here) else { continue };
                let cost = cost + edge.cost;
                if known.get(there).is_none_or(|(best, _)| cost < *best) {
                    let path = path.then(&edge.conversion);
                    known.insert(*there, (cost, path));
                }
            }
        }
        known.remove(&to).map(|(_, path)| path)
    }

    /// A path of one step, and how far it may be off.
    #[cfg(test)]
    pub(super) fn way(&self, from: ClockDomain, to: ClockDomain) -> Option<(Path, impl Fn(u64) -> f64)> {
        let conversion = Arc::clone(&self.edges.get(&(from, to))?.conversion);
        Some((Path::default().then(&conversion), move |at| conversion.bound(at)))
    }

    /// Ticks of the TSC per second, according to the best clock.
    pub(super) fn tsc_hz(&self) -> Option<Hertz> {
        // NTP does not slew RAW; the others are the next best.
        let clocks = [
            ClockDomain::MonotonicRaw,
            ClockDomain::Monotonic,
            ClockDomain::Boottime,
            ClockDomain::Local,
            ClockDomain::Realtime,
        ];
        let to_tsc = |clock| self.edges.get(&(clock, ClockDomain::Tsc));
        Hertz::new(clocks.into_iter().find_map(to_tsc)?.conversion.rate() * 1e9)
    }

    fn add(&mut self, against: ClockDomain, domain: ClockDomain, ways: Ways, cost: u32) {
        let (down, up) = (Arc::new(ways.down), Arc::new(ways.up));
        self.edges.insert((against, domain), Edge { conversion: down, cost });
        self.edges.insert((domain, against), Edge { conversion: up, cost });
    }
}

/// Units of a clock per second. Known for all clocks except the two that count ticks.
pub(super) fn hertz(clock: ClockDomain, tick_hz: Option<Hertz>) -> Option<Hertz> {
    match clock {
        ClockDomain::Tsc | ClockDomain::Ticks => tick_hz,
        _ => Hertz::new(1e9),
    }
}

/// A sequence of conversions.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    steps: Vec<(Arc<Conversion>, usize)>,
}

impl Path {
    /// Converts an instant to the last clock of the path. Instants in time order are converted fastest.
    pub(super) fn convert(&mut self, instant: u64) -> u64 {
        let step = |at: u64, (way, near): &mut (Arc<Conversion>, usize)| way.convert_near(at, near);
        self.steps.iter_mut().fold(instant, step)
    }

    fn then(&self, conversion: &Arc<Conversion>) -> Path {
        let steps = self.steps.iter().cloned().chain([(Arc::clone(conversion), 0)]).collect();
        Path { steps }
    }
}

#[cfg(test)]
mod tests {
    use sigmund_model::{ClockPair, Nanos, Reading, Snapshot, Ticks};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Ten readings of a clock that counts nanoseconds since tick 5 000 000, against a TSC of 2.6 GHz.
    fn snapshots(domain: ClockDomain, ahead: u64) -> impl Iterator<Item = Sighting> {
        (0..10).map(move |second| {
            let tick = 5_000_000 + second * 2_600_000_000;
            let (before, after) = (Ticks(tick - 30), Ticks(tick + 30));
            let ns = Nanos(ahead + second * SECOND);
            Sighting::of_snapshot(domain, &Snapshot { before, after, ns })
        })
    }

    fn pair(left: (ClockDomain, u64), right: (ClockDomain, u64)) -> Sighting {
        let reading = |(clock, value)| Reading { clock, value };
        Sighting::of_pair(&ClockPair { left: reading(left), right: reading(right), within: 50 }).unwrap()
    }

    #[test]
    fn two_clocks_meet_in_a_third() {
        let mut all: Vec<_> = snapshots(ClockDomain::Monotonic, 7)
            .chain(snapshots(ClockDomain::Boottime, 100 * SECOND))
            .chain([pair((ClockDomain::Realtime, 9000 * SECOND), (ClockDomain::Boottime, 100 * SECOND))])
            .collect();
        let graph = Graph::new(&mut all, None);
        let mut path =
            graph.path(ClockDomain::Monotonic, ClockDomain::Realtime).expect("a way of three steps");
        assert_eq!(path.convert(7 + SECOND / 2), 9000 * SECOND + SECOND / 2);
        let mut back = graph.path(ClockDomain::Realtime, ClockDomain::Monotonic).unwrap();
        assert_eq!(back.convert(9000 * SECOND + 123), 7 + 123);
        assert!(all.iter().all(|sighting| sighting.used && sighting.bound.is_some()));
    }

    #[test]
    fn what_nobody_read_has_no_way() {
        let mut all: Vec<_> = snapshots(ClockDomain::Monotonic, 7).collect();
        let graph = Graph::new(&mut all, None);
        assert!(graph.path(ClockDomain::Local, ClockDomain::Tsc).is_none());
        assert!(graph.path(ClockDomain::Tsc, ClockDomain::Tsc).is_some_and(|mut path| path.convert(8) == 8));
    }

    #[test]
    fn one_reading_needs_a_rate() {
        let one = |hz: f64| {
            let mut one: Vec<_> = snapshots(ClockDomain::Local, SECOND).take(1).collect();
            let graph = Graph::new(&mut one, Hertz::new(hz));
            graph.path(ClockDomain::Local, ClockDomain::Tsc).map(|mut path| path.convert(2 * SECOND))
        };
        assert_eq!(one(f64::NAN), None);
        assert_eq!(one(2.6e9), Some(5_000_000 + 2_600_000_000));
    }
}
