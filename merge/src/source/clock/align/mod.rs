//! Counters of CPUs that differ slightly. Finds their offsets, from what single LWPs did on two CPUs.
//!
//! ```text
//!   stamps   CPU 0   ──┐in  LWP 70  out┌──────────────
//!            CPU 1   ────────────┐in  LWP 70  out┌────     LWP 70 cannot be on both: CPU 1 is behind by two at least
//!                                ├───┤
//! ```
//!
//! * An LWP is on one CPU at a time. So an offset is ruled out if it lets two of the LWP's stretches on CPUs overlap,
//!   whichever of the two was first.
//! * An LWP is asleep when it is woken. So an offset is ruled out if it puts the wakeup on one CPU into a stretch of
//!   the LWP on another. It follows that a wakeup precedes its switch. (One wakeup in a hundred may be of an LWP that
//!   was still about to sleep.)
//!
//! For each pair of CPUs, some offsets remain. The corrections of all CPUs together must keep all of these ([`solve`]).
//! A CPU is corrected only if the evidence against its stamps exceeds the noise: at least [`MIN_VIOLATED`] orders are
//! violated, by more than [`NOISE`] ticks. If a CPU is corrected, it is moved so that it also keeps the orders with
//! little evidence, where that is possible. User events with a recorded CPU are corrected in the same way.
//!
//! Cost: the switches of the kernel trace are read once more, before the merge. So this is done only on demand
//! ([`MergeOptions::align_cpus`](crate::MergeOptions)). Every merge counts the cases that show a need for it: LWPs that
//! were put on a second CPU (`losses`, kind `contradiction`).

mod orders;
mod solve;

use std::{collections::BTreeMap, io};

use sigmund_model::{Cpu, Event, EventStream, Level, Loss, LossKind, Severity, Ticks};

use self::{orders::Orders, solve::solve};
use super::side_by_side::Witness;

/// Fewer violated orders between two CPUs than this are no evidence.
const MIN_VIOLATED: u64 = 3;
/// A violation by at most this number of ticks is noise: the counter is read shortly before or after the event.
const NOISE: i64 = 250;
/// Largest offset that is searched for. A larger one is not a skew: this is 1.6 ms at 2.6 GHz.
const MAX_SKEW: i64 = 1 << 22;

/// How far the counter of a CPU is ahead of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Skew {
    pub(super) ahead: i64,
    /// Lower bound: it is at least this far ahead of each CPU that is not corrected; `None` if the evidence gives no
    /// such bound. CPUs that are not corrected may differ, too: within the noise, or as far as the evidence is too
    /// little to rule it out.
    pub(super) low: Option<i64>,
    /// Upper bound, with the same meaning.
    pub(super) high: Option<i64>,
    /// Number of orders of events on this CPU and another that are violated by the stamps.
    pub(super) violated: u64,
}

/// The CPUs that must be corrected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Skews(BTreeMap<Cpu, Skew>);

/// Why nothing is corrected, although orders are violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSkews {
    /// No constant offsets fit.
    Contradiction,
    /// There are too many CPUs to solve for.
    TooManyCpus,
}

/// The skews of the CPUs whose switches are in these streams.
///
/// # Errors
/// The outer error is a read error. The inner one is the reason why there are no skews.
pub(super) fn skews(witnesses: Vec<Witness>) -> io::Result<Result<Skews, NoSkews>> {
    Ok(solve(&Orders::of(witnesses)?).map(Skews))
}

impl Skew {
    fn possible(&self) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{low} to {high} are possible"),
            (Some(low), None) => format!("{low} and more are possible"),
            (None, Some(high)) => format!("{high} and less are possible"),
            (None, None) => "there is no bound".to_owned(),
        }
    }
}

impl Skews {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The corrections, as rows of `losses`.
    pub(super) fn notes(&self) -> Vec<Loss> {
        let note = |(cpu, skew): (&Cpu, &Skew)| {
            let Skew { ahead, violated, .. } = skew;
            let detail = format!(
                "the counter of cpu {cpu} is {ahead} ticks ahead of the others ({}); \
                 {violated} orders of events were violated. Its events are corrected",
                skew.possible()
            );
            let loss = Loss::new(LossKind::Contradiction, Level::Kern, detail);
            Loss { severity: Severity::Note, cpu: Some(*cpu), ..loss }
        };
        self.0.iter().map(note).collect()
    }

    fn correct(&self, tick: Ticks, cpu: Option<Cpu>) -> Ticks {
        let skew = cpu.and_then(|cpu| self.0.get(&cpu));
        skew.map_or(tick, |skew| Ticks(tick.0.saturating_add_signed(-skew.ahead)))
    }
}

impl NoSkews {
    pub(super) fn note(self) -> Loss {
        let why = match self {
            NoSkews::Contradiction => {
                "no constant offsets put the events of one LWP on several CPUs in order"
            }
            NoSkews::TooManyCpus => "there are too many CPUs",
        };
        Loss::new(
            LossKind::Contradiction,
            Level::Kern,
            format!("the counters of CPUs are not aligned: {why}"),
        )
    }
}

/// A stream whose events are corrected depending on the CPU on which they were recorded.
pub(super) struct Aligned {
    pub(super) stream: Box<dyn EventStream + Send>,
    pub(super) skews: std::sync::Arc<Skews>,
}

impl EventStream for Aligned {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let more = self.stream.next_into(event)?;
        event.tick = self.skews.correct(event.tick, event.cpu);
        Ok(more)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        let mut losses = self.stream.take_losses();
        for loss in &mut losses {
            loss.from = loss.from.map(|tick| self.skews.correct(tick, loss.cpu));
            loss.to = loss.to.map(|tick| self.skews.correct(tick, loss.cpu));
        }
        losses
    }
}

#[cfg(test)]
mod tests;
