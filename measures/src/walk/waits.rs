//! Waits for CPUs and for LWPs, and who had these in the meantime. This is computed for all waits together, slice by
//! slice.

use std::{collections::BTreeSet, hash::Hash};

use super::{
    Blame, Piece, What,
    coverage::Wait,
    labels::Labels,
    ranking::{Largest, Ranking},
    shares::{self, InSlice, Shares, Sum},
};
use crate::{Actor, By, History, Interval, few::Few, map::Map, parallel};

/// Waits of several kinds `K`, whose culprits are not known yet.
pub(crate) struct Waits<K> {
    of_cpus: Map<(K, u32), Vec<Wait>>,
    /// By process.
    of_lwps: Map<(K, Option<u32>), Vec<Wait>>,
    /// Waits for an unknown CPU.
    unknown: Map<K, Sum>,
    processes: Map<Actor, Option<u32>>,
}

impl<K> Default for Waits<K> {
    fn default() -> Waits<K> {
        let (of_cpus, of_lwps, unknown, processes) = Default::default();
        Waits { of_cpus, of_lwps, unknown, processes }
    }
}

impl<K: Copy + Eq + Hash> Waits<K> {
    /// Adds a piece that is a wait, for `count` walks. The piece must not be cut.
    pub(crate) fn push(&mut self, history: &History, kind: K, piece: &Piece, count: u64) {
        let wait = Wait { interval: piece.interval, count };
        if piece.what != What::WaitingForCpu {
            let process = *self.processes.entry(piece.actor).or_insert_with(|| piece.pid(history));
            self.of_lwps.entry((kind, process)).or_default().push(wait);
        } else if let Some(cpu) = piece.cpu {
            self.of_cpus.entry((kind, cpu)).or_default().push(wait);
        } else {
            self.unknown.entry(kind).or_default().add(Sum::of(count, piece.interval.ticks(), false));
        }
    }

    /// Adds the waits of another.
    pub(crate) fn merge<L: Copy>(&mut self, other: Waits<L>, kind: impl Fn(L) -> K) {
        for ((of, cpu), mut waits) in other.of_cpus {
            self.of_cpus.entry((kind(of), cpu)).or_default().append(&mut waits);
        }
        for ((of, process), mut waits) in other.of_lwps {
            self.of_lwps.entry((kind(of), process)).or_default().append(&mut waits);
        }
        for (of, sum) in other.unknown {
            self.unknown.entry(kind(of)).or_default().add(sum);
        }
    }
}

/// Who had the CPUs and LWPs during waits of several kinds `K`, in the slices so far.
///
/// A wait that began before these slices is kept until a slice contains its beginning.
pub(crate) struct Culprits<K> {
    /// The maximum number of culprits with sums of their own.
    most: usize,
    open: Waits<K>,
    had_cpus: Map<K, Ranking>,
    had_lwps: Map<(K, Option<u32>), HadLwps>,
    /// LWPs that carried a user thread.
    carriers: BTreeSet<u32>,
}

/// With more kinds than this, each is the work of one CPU.
const MANY_KINDS: usize = 64;

/// What LWPs of a process carried during waits.
struct HadLwps {
    /// The length of the waits.
    total: i64,
    threads: Ranking,
    /// What each LWP did without a user thread. This counts if the LWP carries a user thread at any time.
    others: Few<(u32, Blame), Sum>,
}

impl<K: Copy + Eq + Hash + Send + Sync> Culprits<K> {
    pub(crate) fn new(most: usize) -> Culprits<K> {
        let (open, had_cpus, had_lwps, carriers) = Default::default();
        Culprits { most, open, had_cpus, had_lwps, carriers }
    }

    /// Finds who had the CPUs and LWPs in a slice. `waits` are those that end in it. `kinds` gives the sums that a kind
    /// counts in.
    pub(crate) fn add_slice<I: Iterator<Item = K>>(
        &mut self,
        history: &History,
        (by, labels): (By, &mut Labels),
        slice: Interval,
        waits: Waits<K>,
        kinds: impl Fn(K) -> I,
    ) {
        self.open.merge(waits, |kind| kind);
        let Culprits { most, open, had_cpus, had_lwps, carriers } = self;
        let new = || Ranking::new(*most);
        for (kind, sum) in std::mem::take(&mut open.unknown) {
            let label = labels.of(history, by, Blame::Unknown);
            kinds(kind).for_each(|kind| had_cpus.entry(kind).or_insert_with(new).add(label, sum));
        }
        let begun_before = |waits: &[Wait]| -> Vec<Wait> {
            waits.iter().copied().filter(|wait| wait.interval.from < slice.from).collect()
        };
        let of_cpu = |((kind, cpu), waits): ((K, u32), Vec<Wait>)| {
            let rest = begun_before(&waits);
            let shares = shares::of_cpu(history, by, cpu, &InSlice::new(waits, slice));
            ((kind, cpu), rest, shares)
        };
        let of_cpus = parallel::map(std::mem::take(&mut open.of_cpus), of_cpu);
        for ((kind, cpu), rest, shares) in of_cpus {
            let shares: Vec<_> =
                shares.into_iter().map(|(blame, sum)| (labels.of(history, by, blame), sum)).collect();
            for kind in kinds(kind) {
                let into = had_cpus.entry(kind).or_insert_with(new);
                shares.iter().for_each(|(label, sum)| into.add(*label, *sum));
            }
            if !rest.is_empty() {
                open.of_cpus.insert((kind, cpu), rest);
            }
        }
        let carries = |lwp: &u64| history.mounted.of(*lwp).within(slice).next().is_some();
        carriers.extend(history.mounted.keys().filter(carries).map(|lwp| lwp as u32));
        let mut of_processes: Map<Option<u32>, Vec<u32>> = Map::default();
        for (lwp, life) in history.names.lwps.iter().filter(|(_, life)| life.pid.is_some()) {
            of_processes.entry(life.pid).or_default().push(lwp);
        }
        // Few kinds have many waits each, and many kinds few.
        let waiting: Vec<_> = std::mem::take(&mut open.of_lwps).into_iter().collect();
        let are_many = waiting.len() > MANY_KINDS;
        let of_kind = |((kind, process), waits): ((K, Option<u32>), Vec<Wait>)| {
            let rest = begun_before(&waits);
            let overlap = |wait: &Wait| wait.interval.overlap(slice) * wait.count as i64;
            let total: i64 = waits.iter().map(overlap).sum();
            let waits = InSlice::new(waits, slice);
            let lwps = of_processes.get(&process).map_or(&[][..], Vec::as_slice);
            let of_lwp = |lwp: &u32| (*lwp, shares::of_lwp(history, by, *lwp, &waits));
            let of_lwps: Vec<(u32, Shares)> =
                if are_many { lwps.iter().map(of_lwp).collect() } else { parallel::map(lwps, of_lwp) };
            ((kind, process), (rest, total, of_lwps))
        };
        let of_kinds: Vec<_> = if are_many {
            parallel::map(waiting, of_kind)
        } else {
            waiting.into_iter().map(of_kind).collect()
        };
        for ((kind, process), (rest, total, of_lwps)) in of_kinds {
            for kind in kinds(kind) {
                let new = || HadLwps { total: 0, threads: new(), others: Few::default() };
                let HadLwps { total: into_total, threads, others } =
                    had_lwps.entry((kind, process)).or_insert_with(new);
                *into_total += total;
                for (lwp, shares) in &of_lwps {
                    for (blame, sum) in shares {
                        match blame {
                            Blame::Who(_) => threads.add(labels.of(history, by, *blame), *sum),
                            _ => others.of((*lwp, *blame)).add(*sum),
                        }
                    }
                }
            }
            if !rest.is_empty() {
                open.of_lwps.insert((kind, process), rest);
            }
        }
        if *most == usize::MAX {
            return;
        }
        let labels = &*labels;
        let rankings = had_cpus.values_mut().chain(had_lwps.values_mut().map(|had| &mut had.threads));
        let rankings: Vec<&mut Ranking> = rankings.collect();
        parallel::map(rankings, |ranking| ranking.settle(history, labels, slice.from));
    }

    /// Who had the CPUs and LWPs during the waits. To be called after all slices. The ticks sum to the waits: waits for
    /// an LWP are divided between all LWPs of the process, each with the same weight while it lives. A kind may occur
    /// several times.
    pub(crate) fn finish(self, history: &History, (by, labels): (By, &mut Labels)) -> Vec<(K, Largest)> {
        let mut all: Vec<(K, Largest)> = Vec::new();
        for (kind, ranking) in self.had_cpus {
            all.push((kind, ranking.finish(history, labels)));
        }
        for ((kind, _), HadLwps { total, mut threads, others }) in self.had_lwps {
            if total <= 0 {
                continue;
            }
            let others = others.into_entries().into_iter();
            for ((_, blame), sum) in others.filter(|((lwp, _), _)| self.carriers.contains(lwp)) {
                threads.add(labels.of(history, by, blame), sum);
            }
            let unknown = labels.of(history, by, Blame::Unknown);
            let mut largest = threads.finish(history, labels);
            largest.scale(total, unknown, history, labels);
            all.push((kind, largest));
        }
        all
    }
}
