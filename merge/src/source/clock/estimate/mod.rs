//! Estimates the offset between two clocks that were never read together, from events that bound each other.
//!
//! If an LWP recorded a user event, or another trace shows it in the middle of a stretch on a CPU, it was on a CPU at
//! that instant. So an offset is impossible if it puts the instant into a stretch in which the LWP was off all CPUs,
//! before its creation, or after its end. The offsets that no instant rules out are the bound; the estimate is their
//! middle.
//!
//! These assumptions are made:
//! * The rates are right within a drift. The bound is that of the middle of the recording, and grows from there.
//! * Two traces of the same kernel stamp a switch within a jitter of each other.
//! * At least half of the shorter recording was made during the other one, if both were examined completely.
//!
//! If no offset remains, larger drifts and jitters are tried. If still none remains, the inputs contradict each other.
//!
//! Cost: all events of both sides are read once more, before the merge, until two million stretches are known. This is
//! done only if a clock has no other relation.

mod evidence;

use std::ops::ControlFlow;

use self::evidence::{Evidence, OfLwp};
use super::{feasible::Feasible, graph::DRIFT, side_by_side::Witness};

/// Drifts of the rate (as fractions), and jitters of the same switch in two traces (in seconds).
const TRIES: [(f64, f64); 3] = [(DRIFT, 1e-6), (1e-4, 1e-5), (5e-4, 1e-4)];
/// Maximum number of comparisons. After that, no further evidence is examined. The result is still right, but may be
/// wide.
const BUDGET: u64 = 1 << 28;
const EVER: i64 = 1 << 60;

/// The relation of one clock to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// An instant of the clock whose relation was unknown.
    pub(super) at: u64,
    /// The same instant on the other clock, and how far that may be off.
    pub(super) on: u64,
    pub(super) within: u64,
    /// The drift that was allowed for.
    pub(super) drift: f64,
    /// Number of LWPs known to both sides.
    pub(super) lwps: usize,
}

/// Why there is no estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoEstimate {
    /// Nothing bounds the offset.
    NoEvidence,
    /// No offset is possible.
    Contradiction,
}

/// Finds the relation of the clock of `unknown` to the clock of `known`. `rate` is the units of the latter for one unit
/// of the former, `hertz` the units of the latter per second.
///
/// # Errors
/// The outer error is a read error. The inner one is the reason why there is no estimate.
pub(super) fn estimate(
    known: Vec<Witness>,
    unknown: Vec<Witness>,
    rate: f64,
    hertz: f64,
) -> std::io::Result<Result<Estimate, NoEstimate>> {
    let (known, unknown) = (Evidence::of(known)?, Evidence::of(unknown)?);
    let Some(question) = Question::new(&known, &unknown, rate) else {
        return Ok(Err(NoEstimate::NoEvidence));
    };
    for (drift, jitter) in TRIES {
        let feasible = question.ask(drift, (jitter * hertz) as i64);
        if let Some((low, high)) = feasible.hull() {
            return Ok(question.answer(low, high, drift));
        }
    }
    Ok(Err(NoEstimate::Contradiction))
}

/// Two sides, and the origins of their times. Offsets are `known - known_zero - (unknown - unknown_zero) × rate`.
struct Question<'e> {
    known: &'e Evidence,
    unknown: &'e Evidence,
    known_zero: u64,
    unknown_zero: u64,
    rate: f64,
    lwps: Vec<(&'e OfLwp, &'e OfLwp)>,
}

impl<'e> Question<'e> {
    fn new(known: &'e Evidence, unknown: &'e Evidence, rate: f64) -> Option<Question<'e>> {
        let both = known.lwps.iter().filter_map(|(lwp, one)| Some((one, unknown.lwps.get(lwp)?)));
        let ((known_zero, _), (first, last)) = (known.span?, unknown.span?);
        let unknown_zero = first + (last - first) / 2;
        Some(Question { known, unknown, known_zero, unknown_zero, rate, lwps: both.collect() })
    }

    fn ask(&self, drift: f64, jitter: i64) -> Feasible {
        let (low, high) = self.overlap();
        let mut ruling = Ruling { feasible: Feasible::between(low, high), budget: BUDGET };
        let slack = |at: i64| (at.unsigned_abs() as f64 * drift) as i64 + 1;
        // Births and ends come first: they leave only few offsets to search for the rest.
        let _ = self.lives(&mut ruling, slack);
        let _ = self.stretches(&mut ruling, slack, jitter);
        ruling.feasible
    }

    /// Offsets for which half of the shorter recording was made during the other.
    fn overlap(&self) -> (i64, i64) {
        let (Some(known), Some(unknown)) = (self.known.span, self.unknown.span) else { return (-EVER, EVER) };
        if self.known.cut || self.unknown.cut {
            return (-EVER, EVER);
        }
        let (known, unknown) =
            ((0, self.of_known(known.1)), (self.of_unknown(unknown.0), self.of_unknown(unknown.1)));
        let half = (known.1 - known.0).min(unknown.1 - unknown.0) / 2;
        (known.0 - unknown.1 + half, known.1 - unknown.0 - half)
    }

    fn lives(&self, ruling: &mut Ruling, slack: impl Fn(i64) -> i64) -> ControlFlow<()> {
        for (known, unknown) in &self.lwps {
            for instant in unknown.recorded.iter().map(|at| self.of_unknown(*at)) {
                let slack = slack(instant);
                let born = known.born.map(|at| self.of_known(at) - instant - slack);
                let gone = known.gone.map(|at| self.of_known(at) - instant + slack);
                ruling.forbid(-EVER - 1, born.unwrap_or(-EVER))?;
                ruling.forbid(gone.unwrap_or(EVER), EVER + 1)?;
            }
            for instant in known.recorded.iter().map(|at| self.of_known(*at)) {
                let born = unknown.born.map(|at| self.of_unknown(at));
                let gone = unknown.gone.map(|at| self.of_unknown(at));
                ruling.forbid(born.map_or(EVER, |at| instant - at + slack(at)), EVER + 1)?;
                ruling.forbid(-EVER - 1, gone.map_or(-EVER, |at| instant - at - slack(at)))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn stretches(&self, ruling: &mut Ruling, slack: impl Fn(i64) -> i64, jitter: i64) -> ControlFlow<()> {
        for (known, unknown) in &self.lwps {
            let off: Vec<_> = known.off.iter().map(|(a, b)| (self.of_known(*a), self.of_known(*b))).collect();
            let on = unknown.on.iter().map(|(a, b)| (self.of_unknown(*a), self.of_unknown(*b)));
            let recorded = unknown.recorded.iter().map(|at| self.of_unknown(*at));
            for instant in recorded.chain(middles(on, jitter)) {
                let slack = slack(instant);
                let forbidden = |(a, b): &(i64, i64)| (a - instant + slack, b - instant - slack);
                // Stretches in time order forbid offsets in increasing order.
                ruling.forbid_all(&off, forbidden)?;
            }
            let off: Vec<_> =
                unknown.off.iter().rev().map(|(a, b)| (self.of_unknown(*a), self.of_unknown(*b))).collect();
            let on = known.on.iter().map(|(a, b)| (self.of_known(*a), self.of_known(*b)));
            let recorded = known.recorded.iter().map(|at| self.of_known(*at));
            for instant in recorded.chain(middles(on, jitter)) {
                let forbidden = |(a, b): &(i64, i64)| (instant - b + slack(*b), instant - a - slack(*a));
                ruling.forbid_all(&off, forbidden)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn answer(&self, low: i64, high: i64, drift: f64) -> Result<Estimate, NoEstimate> {
        if low <= -EVER || high >= EVER || self.lwps.is_empty() {
            return Err(NoEstimate::NoEvidence);
        }
        let on = self.known_zero.saturating_add_signed(low + (high - low) / 2);
        let within = high.abs_diff(low).div_ceil(2) + 1;
        Ok(Estimate { at: self.unknown_zero, on, within, drift, lwps: self.lwps.len() })
    }

    fn of_known(&self, at: u64) -> i64 {
        at.wrapping_sub(self.known_zero) as i64
    }

    fn of_unknown(&self, at: u64) -> i64 {
        // Exact to a unit within 2⁵³ units of the middle of the recording.
        (at.wrapping_sub(self.unknown_zero) as i64 as f64 * self.rate).round() as i64
    }
}

/// The middles of stretches on a CPU that are long enough for the other trace to agree.
fn middles(on: impl Iterator<Item = (i64, i64)>, jitter: i64) -> impl Iterator<Item = i64> {
    on.filter(move |(a, b)| b - a > 2 * jitter).map(|(a, b)| a + (b - a) / 2)
}

/// The offsets that remain, and how many more comparisons may be made.
struct Ruling {
    feasible: Feasible,
    budget: u64,
}

impl Ruling {
    fn forbid(&mut self, low: i64, high: i64) -> ControlFlow<()> {
        self.spend(self.feasible.pieces())?;
        self.feasible.forbid(low, high);
        ControlFlow::Continue(())
    }

    /// Rules out the offsets that each of `stretches` forbids, if they still matter. These offsets must be in
    /// increasing order.
    fn forbid_all(
        &mut self,
        stretches: &[(i64, i64)],
        forbidden: impl Fn(&(i64, i64)) -> (i64, i64),
    ) -> ControlFlow<()> {
        let Some((low, high)) = self.feasible.hull() else { return ControlFlow::Break(()) };
        let first = stretches.partition_point(|stretch| forbidden(stretch).1 <= low);
        for (from, to) in stretches[first..].iter().map(forbidden).take_while(|(from, _)| *from < high) {
            self.forbid(from, to)?;
        }
        ControlFlow::Continue(())
    }

    fn spend(&mut self, pieces: usize) -> ControlFlow<()> {
        match self.budget.checked_sub(1 + pieces as u64 / 64) {
            Some(left) => self.budget = left,
            None => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests;
