//! Sums over many walks, in linear time: who had a CPU or the LWPs is found once for all waits together.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::{
    Actor, Blame, Piece, What,
    carried::{self, Shares, Sum},
    coverage::Coverage,
};
use crate::{By, History, Interval, map::Map};

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

/// A cause, by its place in `Totals::causes`; and whether the actor is the one that the walk began with.
type Of = (u8, bool);

/// Sums of pieces.
pub(crate) struct Totals<'h> {
    history: &'h History,
    by: By,
    /// There are few. Texts are compared only if their addresses differ.
    causes: Vec<&'static str>,
    others: Map<(Of, Blame), Sum>,
    /// By the CPU.
    cpu_waits: Map<(Of, Option<u32>), Vec<Interval>>,
    /// By the process.
    lwp_waits: Map<(Of, Option<u32>), Vec<Interval>>,
    processes: Map<Actor, Option<u32>>,
}

impl<'h> Totals<'h> {
    /// Empty sums. Culprits are grouped.
    pub(crate) fn new(history: &'h History, by: By) -> Totals<'h> {
        Totals {
            history,
            by,
            causes: Vec::new(),
            others: Map::default(),
            cpu_waits: Map::default(),
            lwp_waits: Map::default(),
            processes: Map::default(),
        }
    }

    /// Adds a piece, by this word, of a walk that began with `origin`; `None` if all actors are alike.
    pub(crate) fn add(&mut self, cause: &'static str, piece: &Piece, origin: Option<Actor>) {
        let is_own = origin == Some(piece.actor);
        let of = (self.cause(cause), is_own);
        match (piece.what, Blame::of(self.history, piece, is_own)) {
            (_, Some(blame)) => {
                let sum = self.others.entry((of, blame)).or_default();
                sum.count += 1;
                sum.ticks += piece.interval.ticks();
            }
            (What::WaitingForCpu, None) => {
                self.cpu_waits.entry((of, piece.cpu)).or_default().push(piece.interval);
            }
            (_, None) => {
                let history = self.history;
                let process = self.processes.entry(piece.actor).or_insert_with(|| piece.pid(history));
                self.lwp_waits.entry((of, *process)).or_default().push(piece.interval);
            }
        }
    }

    /// The place of a cause.
    fn cause(&mut self, cause: &'static str) -> u8 {
        let same = |known: &&str| std::ptr::eq(known.as_ptr(), cause.as_ptr()) && known.len() == cause.len();
        let place = self.causes.iter().position(same);
        let place = place.or_else(|| self.causes.iter().position(|known| *known == cause));
        place.unwrap_or_else(|| {
            self.causes.push(cause);
            self.causes.len() - 1
        }) as u8
    }

    /// Adds all of another.
    pub(crate) fn merge(&mut self, other: Totals<'h>) {
        let places: Vec<u8> = other.causes.iter().map(|cause| self.cause(cause)).collect();
        let of = |(cause, is_own): Of| (places[usize::from(cause)], is_own);
        for ((key, blame), sum) in other.others {
            let into = self.others.entry((of(key), blame)).or_default();
            into.count += sum.count;
            into.ticks += sum.ticks;
        }
        for ((key, cpu), mut waits) in other.cpu_waits {
            self.cpu_waits.entry((of(key), cpu)).or_default().append(&mut waits);
        }
        for ((key, process), mut waits) in other.lwp_waits {
            self.lwp_waits.entry((of(key), process)).or_default().append(&mut waits);
        }
    }

    /// The sums, the largest first. A wait counts for each stretch of a culprit in it.
    pub(crate) fn finish(self) -> Vec<(Key, Sum)> {
        let Totals { history, by, causes, others, cpu_waits, lwp_waits, .. } = self;
        let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
        let mut add = |(cause, is_own): Of, shares: Shares| {
            let cause = causes[usize::from(cause)];
            for (blame, share) in shares {
                let sum = sums.entry(Key { cause, is_own, culprit: blame.label(history, by) }).or_default();
                sum.count += share.count;
                sum.ticks += share.ticks;
            }
        };
        for ((of, blame), sum) in others {
            add(of, Shares::from_iter([(blame, sum)]));
        }
        let of_cpus: Vec<_> = cpu_waits
            .into_par_iter()
            .map(|((of, cpu), waits)| {
                (of, carried::of_cpu(history, by == By::Lwp, cpu, &Coverage::new(waits)))
            })
            .collect();
        of_cpus.into_iter().for_each(|(of, shares)| add(of, shares));
        for ((of, pid), waits) in lwp_waits {
            add(of, carried::of_lwps(history, pid, &Coverage::new(waits)));
        }
        let mut sums: Vec<(Key, Sum)> = sums.into_iter().filter(|(_, sum)| sum.ticks > 0).collect();
        sums.sort_by_key(|(_, sum)| -sum.ticks);
        sums
    }
}
