//! What many walks sum to. Linear: who had a CPU, or the LWPs, is asked once for all waits.

use std::collections::BTreeMap;

use crate::map::Map;

use super::{
    Actor, Blame, Piece, What,
    carried::{self, Shares, Sum},
    coverage::Coverage,
};
use crate::{By, History, Interval};

/// What a sum is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// A word for what happened.
    pub(crate) cause: &'static str,
    /// Whether it was the time of the actor that the walk began with.
    pub(crate) is_own: bool,
    /// Who or what; `None` for itself.
    pub(crate) culprit: Option<String>,
}

/// Sums of pieces.
pub(crate) struct Totals<'h> {
    history: &'h History,
    by: By,
    others: Map<(&'static str, bool, Blame), Sum>,
    /// By the CPU.
    cpu_waits: Map<(&'static str, bool, Option<u32>), Vec<Interval>>,
    /// By the process.
    lwp_waits: Map<(&'static str, bool, Option<u32>), Vec<Interval>>,
}

impl<'h> Totals<'h> {
    /// Nothing yet. Culprits are grouped.
    pub(crate) fn new(history: &'h History, by: By) -> Totals<'h> {
        let (others, cpu_waits, lwp_waits) = (Map::default(), Map::default(), Map::default());
        Totals { history, by, others, cpu_waits, lwp_waits }
    }

    /// Adds a piece, by this word, of a walk that began with `origin`; `None` if all actors are alike.
    pub(crate) fn add(&mut self, cause: &'static str, piece: &Piece, origin: Option<Actor>) {
        let is_own = origin == Some(piece.actor);
        match (piece.what, Blame::of(self.history, piece, is_own)) {
            (_, Some(blame)) => {
                let sum = self.others.entry((cause, is_own, blame)).or_default();
                sum.count += 1;
                sum.ticks += piece.interval.ticks();
            }
            (What::WaitingForCpu, None) => {
                self.cpu_waits.entry((cause, is_own, piece.cpu)).or_default().push(piece.interval);
            }
            (_, None) => {
                let pid = piece.pid(self.history);
                self.lwp_waits.entry((cause, is_own, pid)).or_default().push(piece.interval);
            }
        }
    }

    /// The sums, the largest first. A wait counts for each stretch of a culprit in it.
    pub(crate) fn finish(self) -> Vec<(Key, Sum)> {
        let Totals { history, by, others, cpu_waits, lwp_waits } = self;
        let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
        let mut add = |cause, is_own, shares: Shares| {
            for (blame, share) in shares {
                let sum = sums.entry(Key { cause, is_own, culprit: blame.label(history, by) }).or_default();
                sum.count += share.count;
                sum.ticks += share.ticks;
            }
        };
        for ((cause, is_own, blame), sum) in others {
            add(cause, is_own, Shares::from_iter([(blame, sum)]));
        }
        for ((cause, is_own, cpu), waits) in cpu_waits {
            add(cause, is_own, carried::of_cpu(history, by == By::Lwp, cpu, &Coverage::new(waits)));
        }
        for ((cause, is_own, pid), waits) in lwp_waits {
            add(cause, is_own, carried::of_lwps(history, pid, &Coverage::new(waits)));
        }
        let mut sums: Vec<(Key, Sum)> = sums.into_iter().filter(|(_, sum)| sum.ticks > 0).collect();
        sums.sort_by_key(|(_, sum)| -sum.ticks);
        sums
    }
}
