//! Instants that were read on two clocks: which of them to trust, and the conversion that they define.

use sigmund_model::{ClockDomain, ClockPair, Conversion, Knot, Snapshot};

/// A bracket is useless if it is wider than this, in units of the bracketing clock, and wider than four times the
/// median: the reader was interrupted.
const USUAL_BRACKET: u64 = 1000;
/// If readings are closer together than this, in units of the read clock, only the tightest is taken: two readings of
/// almost the same instant show nothing about the rate.
const CLOSE: u64 = 100_000_000;

/// The origin of a row of the table `clocks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SightingKind {
    /// One clock read between two readings of the other.
    Snapshot,
    /// A file states the relation of two clocks at one instant.
    Stated,
    /// Derived from events that bound each other.
    Estimated,
}

impl SightingKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            SightingKind::Snapshot => "snapshot",
            SightingKind::Stated => "stated",
            SightingKind::Estimated => "estimated",
        }
    }
}

/// One instant on two clocks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sighting {
    pub(crate) kind: SightingKind,
    /// The clock that brackets the instant, and its readings before and after it.
    pub(crate) against: ClockDomain,
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// The other clock, and its reading in between.
    pub(crate) domain: ClockDomain,
    pub(crate) value: u64,
    /// Whether the conversion uses this sighting.
    pub(crate) used: bool,
    /// Its distance from the conversion through the other sightings, in units of `domain`.
    pub(crate) residual: Option<f64>,
    /// How far a conversion at this instant may be off, in units of `domain`.
    pub(crate) bound: Option<f64>,
}

impl Sighting {
    pub(crate) fn of_snapshot(domain: ClockDomain, snapshot: &Snapshot) -> Sighting {
        // A counter that went back between the two readings does not bracket anything.
        let (before, after) = (snapshot.before.0, snapshot.after.0.max(snapshot.before.0));
        Sighting::new(SightingKind::Snapshot, (ClockDomain::Tsc, before, after), (domain, snapshot.ns.0))
    }

    /// `None` for a pair of a clock with itself.
    pub(crate) fn of_pair(pair: &ClockPair) -> Option<Sighting> {
        let in_order = pair.left.clock < pair.right.clock;
        let (left, right) = if in_order { (pair.left, pair.right) } else { (pair.right, pair.left) };
        let (before, after) =
            (left.value.saturating_sub(pair.within), left.value.saturating_add(pair.within));
        let sighting =
            Sighting::new(SightingKind::Stated, (left.clock, before, after), (right.clock, right.value));
        (left.clock != right.clock).then_some(sighting)
    }

    pub(crate) fn new(
        kind: SightingKind,
        (against, before, after): (ClockDomain, u64, u64),
        (domain, value): (ClockDomain, u64),
    ) -> Sighting {
        Sighting { kind, against, before, after, domain, value, used: false, residual: None, bound: None }
    }

    fn bracket(&self) -> u64 {
        self.after - self.before
    }

    fn middle(&self) -> u64 {
        self.before + self.bracket() / 2
    }

    /// A knot of the conversion from the bracketing clock to the other. `rate` is the other clock's units for one unit
    /// of the bracketing clock.
    fn down(&self, rate: f64) -> Knot {
        Knot { from: self.middle(), to: self.value, within: self.bracket() as f64 / 2.0 * rate }
    }

    fn up(&self) -> Knot {
        Knot { from: self.value, to: self.middle(), within: self.bracket() as f64 / 2.0 }
    }
}

/// The conversions between two clocks, in both directions.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    /// From the bracketing clock to the other.
    pub(super) down: Conversion,
    pub(super) up: Conversion,
}

/// The conversions through those sightings, all of the same two clocks, that can be trusted. These are marked as used,
/// and all sightings get the error of the conversion. `None` if there are not two sightings that advance.
pub(super) fn through(sightings: &mut [Sighting]) -> Option<Ways> {
    let chosen = increasing(sightings, tightest(sightings, narrow(sightings)));
    let picked: Vec<&Sighting> = chosen.iter().map(|at| &sightings[*at]).collect();
    let up = Conversion::through(&picked.iter().map(|s| s.up()).collect::<Vec<_>>())?;
    let knots: Vec<Knot> = picked.iter().map(|s| s.down(1.0 / up.rate())).collect();
    let down = Conversion::through(&knots)?;
    for sighting in sightings.iter_mut() {
        let at = sighting.middle();
        sighting.residual = Some(down.convert(at).abs_diff(sighting.value) as f64);
        sighting.bound = Some(down.bound(at));
    }
    for (at, residual) in chosen.iter().zip(down.residuals()) {
        sightings[*at].used = true;
        sightings[*at].residual = *residual;
    }
    Some(Ways { down, up })
}

/// The conversions through one sighting, with a rate that is assumed to be known: units of the other clock for one of
/// the bracketing clock.
pub(super) fn with_rate(sighting: &mut Sighting, rate: f64, drift: f64) -> Option<Ways> {
    let down = Conversion::with_rate(sighting.down(rate), rate, drift)?;
    let up = Conversion::with_rate(sighting.up(), 1.0 / rate, drift)?;
    sighting.used = true;
    sighting.bound = Some(down.bound(sighting.middle()));
    Some(Ways { down, up })
}

/// The sightings whose bracket is not much wider than usual, in the order of their instants.
fn narrow(sightings: &[Sighting]) -> Vec<usize> {
    let mut brackets: Vec<u64> = sightings.iter().map(Sighting::bracket).collect();
    brackets.sort_unstable();
    let median = brackets.get(brackets.len() / 2).copied().unwrap_or(0);
    let widest = median.saturating_mul(4).max(USUAL_BRACKET);
    let mut narrow: Vec<usize> =
        (0..sightings.len()).filter(|at| sightings[*at].bracket() <= widest).collect();
    narrow.sort_by_key(|at| (sightings[*at].middle(), sightings[*at].value));
    narrow
}

/// The tightest of those sightings that are close together. For short recordings, eight in all.
fn tightest(sightings: &[Sighting], in_order: Vec<usize>) -> Vec<usize> {
    let value = |at: &usize| sightings[*at].value;
    let span = in_order.last().map_or(0, value).abs_diff(in_order.first().map_or(0, value));
    let close = CLOSE.min(span / 8);
    let mut tightest: Vec<usize> = Vec::new();
    let mut group = 0;
    for at in in_order {
        match tightest.last_mut() {
            Some(best) if value(&at).abs_diff(group) < close => {
                if sightings[at].bracket() < sightings[*best].bracket() {
                    *best = at;
                }
            }
            _ => {
                group = value(&at);
                tightest.push(at);
            }
        }
    }
    tightest
}

/// The largest set of sightings for which both clocks advance. A wrong sighting does not exclude those after it.
fn increasing(sightings: &[Sighting], in_order: Vec<usize>) -> Vec<usize> {
    // The longest increasing subsequence. `ends[n]` is where a subsequence of length n + 1 ends with the smallest
    // value.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; in_order.len()];
    let advances = |one: usize, other: usize| {
        let (one, other) = (&sightings[in_order[one]], &sightings[in_order[other]]);
        one.value < other.value && one.middle() < other.middle()
    };
    for place in 0..in_order.len() {
        let length = ends.partition_point(|end| advances(*end, place));
        before[place] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) if sightings[in_order[place]].value < sightings[in_order[*end]].value => *end = place,
            Some(_) => {}
            None => ends.push(place),
        }
    }
    let mut longest: Vec<usize> =
        std::iter::successors(ends.last().copied(), |place| before[*place]).map(|p| in_order[p]).collect();
    longest.reverse();
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(tick: u64, bracket: u64, ns: u64) -> Sighting {
        let tsc = (ClockDomain::Tsc, tick, tick + bracket);
        Sighting::new(SightingKind::Snapshot, tsc, (ClockDomain::Monotonic, ns))
    }

    fn used(sightings: &mut [Sighting]) -> Vec<bool> {
        through(sightings).expect("clocks that advance");
        sightings.iter().map(|s| s.used).collect()
    }

    #[test]
    fn a_wide_bracket_is_not_used_and_says_how_far_it_is_off() {
        let mut all: Vec<_> = (0..6).map(|s| at(s * 2 * SECOND, 60, s * SECOND)).collect();
        all[3] = at(3 * 2 * SECOND, 40_000, 3 * SECOND);
        assert_eq!(used(&mut all), [true, true, true, false, true, true]);
        assert!((all[3].residual.unwrap() - 10_000.0).abs() < 20.0, "{:?}", all[3]);
    }

    #[test]
    fn of_several_at_one_moment_the_tightest_is_used() {
        let mut all = vec![at(0, 90, 0), at(2000, 50, 1020), at(4000, 70, 2000)];
        all.extend((1..9).map(|s| at(s * 2 * SECOND, 60, s * SECOND)));
        assert_eq!(used(&mut all)[..4], [false, true, false, true]);
    }

    #[test]
    fn a_short_recording_has_two() {
        let mut all = vec![at(0, 60, 0), at(2_000_000, 60, 1_000_000)];
        assert_eq!(used(&mut all), [true, true]);
        assert_eq!((all[0].residual, all[1].residual), (None, None));
    }

    // The wall clock is set, or a line of the manifest is damaged. All other sightings are still used.
    #[test]
    fn one_that_goes_back_or_far_ahead_costs_itself() {
        for wrong in [0, 1000 * SECOND] {
            let mut all: Vec<_> = (1..9).map(|s| at(s * 2 * SECOND, 60, s * SECOND)).collect();
            all[4].value = wrong;
            let expected: Vec<bool> = (0..8).map(|s| s != 4).collect();
            assert_eq!(used(&mut all), expected);
        }
    }

    #[test]
    fn clocks_that_stand_still_have_no_conversion() {
        assert!(through(&mut []).is_none());
        assert!(through(&mut [at(1000, 5, 7), at(1000, 5, 7)]).is_none());
        assert!(through(&mut [at(1000, 5, 7), at(2000, 5, 7)]).is_none());
    }
}
