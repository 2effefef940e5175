//! The offset between two clocks that were never read together, from events that bound each other.
//!
//! An LWP that recorded a user event, or that another trace shows in the middle of a stretch on a CPU, was on a CPU at
//! that instant. So no offset is possible that puts the instant into a stretch in which the LWP was off all CPUs, before
//! it was created, or behind its end. What no instant rules out is the bound; the estimate is its middle.
//!
//! Taken to be true:
//! * The rates are right within a drift; the bound is that of the middle of the recording, and grows from there.
//! * Two traces of one kernel stamp one switch within a jitter of each other.
//! * At least half of the shorter recording was made during the other, if all of both was looked at.
//!
//! If that leaves no offset, larger drifts and jitters are tried; if none is left then, the inputs contradict each other.
//!
//! Cost: all events of both sides are read once more, before the merge, until two million stretches are known. Only if a
//! clock has no other way.

mod evidence;

use std::ops::ControlFlow;

use self::evidence::{Evidence, OfLwp};
use super::{feasible::Feasible, graph::DRIFT, side_by_side::Witness};

/// Drifts of the rate (a fraction), and jitters of one switch in two traces (in seconds).
const TRIES: [(f64, f64); 3] = [(DRIFT, 1e-6), (1e-4, 1e-5), (5e-4, 1e-4)];
/// Comparisons after which no further evidence is looked at: what is left then is still right, and perhaps wide.
const BUDGET: u64 = 1 << 28;
const EVER: i64 = 1 << 60;

/// Where one clock is on the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// An instant of the clock that was unknown.
    pub(super) at: u64,
    /// Where it is on the other, and how far that may be off.
    pub(super) on: u64,
    pub(super) within: u64,
    /// The drift that was allowed.
    pub(super) drift: f64,
    /// How many LWPs both sides know.
    pub(super) lwps: usize,
}

/// Why there is no estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoEstimate {
    /// Nothing bounds it.
    NoEvidence,
    /// No offset is possible.
    Contradiction,
}

/// Where the clock of `unknown` is on the clock of `known`. `rate` is units of the latter for one of the former, `hertz`
/// those of the latter in a second.
///
/// # Errors
/// Of reading; and within, why there is no estimate.
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

/// Two sides, and where to count from: offsets are `known - known_zero - (unknown - unknown_zero) × rate`.
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
        // Births and ends first: they leave little for the rest to look through.
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
                // Stretches in the order of time forbid offsets in increasing order.
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

/// Offsets that are left, and how much more may be compared.
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

    /// What each of `stretches` forbids that could still matter; what they forbid is in increasing order.
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
