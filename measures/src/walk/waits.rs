//! Waits for CPUs and for LWPs, and who had these meanwhile: found for all waits together, slice by slice.

use std::{collections::BTreeSet, hash::Hash};

use rayon::prelude::*;

use super::{
    Blame, Piece, What,
    shares::{self, InSlice, Shares, Sum},
};
use crate::{Actor, By, History, Interval, map::Map};

/// Waits of several kinds `K`.
///
/// Those that began before the slices so far are kept, until the slices have come to their begins.
pub(crate) struct Waits<K> {
    of_cpus: Map<(K, u32), Vec<Interval>>,
    /// By the process.
    of_lwps: Map<(K, Option<u32>), Vec<Interval>>,
    /// What is known of who had the CPUs.
    had_cpus: Map<K, Shares>,
    had_lwps: Map<(K, Option<u32>), HadLwps>,
    /// LWPs that carried a thread.
    carriers: BTreeSet<u32>,
    processes: Map<Actor, Option<u32>>,
}

/// What LWPs of a process carried during waits.
#[derive(Default)]
struct HadLwps {
    /// The length of the waits.
    total: i64,
    threads: Shares,
    /// By the LWP, what it did without a thread. It counts if the LWP ever carries one.
    others: Map<u32, Shares>,
}

impl<K> Default for Waits<K> {
    fn default() -> Waits<K> {
        Waits {
            of_cpus: Map::default(),
            of_lwps: Map::default(),
            had_cpus: Map::default(),
            had_lwps: Map::default(),
            carriers: BTreeSet::new(),
            processes: Map::default(),
        }
    }
}

impl<K: Copy + Eq + Hash + Send + Sync> Waits<K> {
    /// Adds a piece that is a wait. It is whole.
    pub(crate) fn push(&mut self, history: &History, kind: K, piece: &Piece) {
        if piece.what != What::WaitingForCpu {
            let process = *self.processes.entry(piece.actor).or_insert_with(|| piece.pid(history));
            self.of_lwps.entry((kind, process)).or_default().push(piece.interval);
        } else if let Some(cpu) = piece.cpu {
            self.of_cpus.entry((kind, cpu)).or_default().push(piece.interval);
        } else {
            let sum = Sum { count: 1, ticks: piece.interval.ticks() };
            shares::add(self.had_cpus.entry(kind).or_default(), Blame::Unknown, sum);
        }
    }

    /// Adds the waits of another, which has seen no slice.
    pub(crate) fn merge<L: Copy>(&mut self, other: Waits<L>, kind: impl Fn(L) -> K) {
        for ((of, cpu), mut waits) in other.of_cpus {
            self.of_cpus.entry((kind(of), cpu)).or_default().append(&mut waits);
        }
        for ((of, process), mut waits) in other.of_lwps {
            self.of_lwps.entry((kind(of), process)).or_default().append(&mut waits);
        }
        for (of, shares) in other.had_cpus {
            let into = self.had_cpus.entry(kind(of)).or_default();
            shares.into_iter().for_each(|(blame, sum)| shares::add(into, blame, sum));
        }
    }

    /// Takes away waits, all of whose culprits are known, from those of which that holds, too.
    pub(crate) fn take_away<L: Copy>(&mut self, other: Waits<L>, kind: impl Fn(L) -> K) {
        for (of, shares) in other.had_cpus {
            shares::take_away(self.had_cpus.entry(kind(of)).or_default(), shares);
        }
        for ((of, process), had) in other.had_lwps {
            let from = self.had_lwps.entry((kind(of), process)).or_default();
            from.total -= had.total;
            shares::take_away(&mut from.threads, had.threads);
            for (lwp, shares) in had.others {
                shares::take_away(from.others.entry(lwp).or_default(), shares);
            }
        }
    }

    /// Finds who had the CPUs and LWPs in a slice, after all waits that end in it were added.
    pub(crate) fn add_slice(&mut self, history: &History, by: By, slice: Interval) {
        let begun_before = |waits: &[Interval]| -> Vec<Interval> {
            waits.iter().copied().filter(|wait| wait.from < slice.from).collect()
        };
        let of_cpu = |((kind, cpu), waits): ((K, u32), Vec<Interval>)| {
            let rest = begun_before(&waits);
            let shares = shares::of_cpu(history, by == By::Lwp, cpu, &InSlice::new(waits, slice));
            ((kind, cpu), rest, shares)
        };
        let of_cpus: Vec<_> = std::mem::take(&mut self.of_cpus).into_par_iter().map(of_cpu).collect();
        for ((kind, cpu), rest, shares) in of_cpus {
            let into = self.had_cpus.entry(kind).or_default();
            shares.into_iter().for_each(|(blame, sum)| shares::add(into, blame, sum));
            if !rest.is_empty() {
                self.of_cpus.insert((kind, cpu), rest);
            }
        }
        let carries = |lwp: &u64| history.mounted.of(*lwp).within(slice).next().is_some();
        self.carriers.extend(history.mounted.keys().filter(carries).map(|lwp| lwp as u32));
        for ((kind, process), waits) in std::mem::take(&mut self.of_lwps) {
            let rest = begun_before(&waits);
            let had = self.had_lwps.entry((kind, process)).or_default();
            had.total += waits.iter().map(|wait| wait.overlap(slice)).sum::<i64>();
            let waits = InSlice::new(waits, slice);
            let lives =
                history.names.lwps.iter().filter(|(_, life)| process.is_some() && life.pid == process);
            let lwps: Vec<u32> = lives.map(|(lwp, _)| lwp).collect();
            let of_lwps: Vec<(u32, Shares)> =
                lwps.into_par_iter().map(|lwp| (lwp, shares::of_lwp(history, lwp, &waits))).collect();
            for (lwp, (blame, sum)) in of_lwps
                .into_iter()
                .flat_map(|(lwp, shares)| shares.into_iter().map(move |share| (lwp, share)))
            {
                let into = match blame {
                    Blame::Who(_) => &mut had.threads,
                    _ => had.others.entry(lwp).or_default(),
                };
                shares::add(into, blame, sum);
            }
            if !rest.is_empty() {
                self.of_lwps.insert((kind, process), rest);
            }
        }
    }

    /// Who had the CPUs and LWPs during the waits, after all slices. The ticks sum to the waits: those of all LWPs, which have
    /// the same weight while they live, are scaled. `kinds` are those in which a kind counts.
    pub(crate) fn finish<L, I>(self, kinds: impl Fn(K) -> I) -> Vec<(L, Shares)>
    where
        L: Copy + Eq + Hash,
        I: Iterator<Item = L>,
    {
        let mut all: Vec<(L, Shares)> = Vec::new();
        for (kind, shares) in self.had_cpus {
            all.extend(kinds(kind).map(|kind| (kind, shares.clone())));
        }
        let mut of_lwps: Map<(L, Option<u32>), (i64, Shares)> = Map::default();
        for ((kind, process), HadLwps { total, threads, others }) in self.had_lwps {
            let others = others.into_iter().filter(|(lwp, _)| self.carriers.contains(lwp));
            let mut shares = threads;
            for (blame, sum) in others.flat_map(|(_, shares)| shares) {
                shares::add(&mut shares, blame, sum);
            }
            for kind in kinds(kind) {
                let (into_total, into) = of_lwps.entry((kind, process)).or_default();
                *into_total += total;
                shares.iter().for_each(|(blame, sum)| shares::add(into, *blame, *sum));
            }
        }
        for ((kind, _), (total, mut shares)) in of_lwps.into_iter().filter(|(_, (total, _))| *total > 0) {
            shares::scale(&mut shares, total);
            all.push((kind, shares));
        }
        all
    }
}
