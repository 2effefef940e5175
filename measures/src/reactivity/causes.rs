//! What took the time from FROM to TO: the walk back from TO, and the interrupts of the waking CPU.

use std::collections::BTreeMap;

use super::pairs::Pair;
use crate::{
    Actor, Blame, By, Context, History, Interval, Joint, Key, Many, Origin, Piece, Pieces, Slice, Source,
    Sum, Totals, Walking, What, wait_context,
};

/// The walks of pairs, and the sums of their pieces.
pub(super) struct Causes {
    /// Sorted by their ends.
    pairs: Vec<Explained>,
    /// Pairs in interrupts of idle CPUs. Sorted by their ends.
    in_interrupts: Vec<Meanwhile>,
    walking: Walks,
    /// Waits for interrupts that began before the slices so far. Their culprits are still searched for.
    meanwhile: Vec<Meanwhile>,
    totals: Totals,
}

/// A pair whose thread or LWP is known. There may be millions.
struct Explained {
    /// The number of the sum that it counts in.
    part: u32,
    actor: Actor,
    interval: Interval,
}

enum Walks {
    /// Walks of few pairs, each with its own sums.
    Each(Walking<Origin>),
    /// Walks of all pairs, with common sums. There may be millions of long and overlapping pairs: with many FROM
    /// events, `next` makes such pairs. So walks that meet continue as one.
    Joint(Joint),
}

/// An interval in which some pairs waited for an interrupt, or were in one on an idle CPU. The CPU's interrupts in it
/// are counted. What is before the current slice remains open.
#[derive(Clone, Copy)]
struct Meanwhile {
    part: u32,
    /// The number of pairs.
    count: u64,
    interval: Interval,
    /// The CPU that handled the interrupt at last.
    cpu: u32,
    /// The cause outside of interrupts: a word, and the culprit.
    otherwise: (&'static str, Blame),
    /// Whether the interval continues in a later slice.
    goes_on: bool,
}

/// The sums of one task.
struct Part {
    pieces: Pieces,
    meanwhile: Vec<Meanwhile>,
}

impl Causes {
    /// Common sums for all pairs.
    pub(super) fn of_all(pairs: Vec<Pair>) -> Causes {
        Causes::new(pairs.into_iter().map(|pair| (0, pair)), Walks::Joint(Joint::default()))
    }

    /// Separate sums for each pair, by its place.
    pub(super) fn of_each(pairs: &[Pair]) -> Causes {
        Causes::new((0..).zip(pairs.iter().copied()), Walks::Each(Walking::default()))
    }

    fn new(pairs: impl Iterator<Item = (u32, Pair)>, walking: Walks) -> Causes {
        let mut totals = Totals::new(|part| vec![part]);
        let (mut explained, mut in_interrupts) = (Vec::with_capacity(pairs.size_hint().0), Vec::new());
        for (part, pair) in pairs {
            let interval = pair.interval;
            if let Some(actor) = pair.actor {
                explained.push(Explained { part, actor, interval });
            } else if let Some(meanwhile) = self::in_interrupts(part, &pair) {
                in_interrupts.push(meanwhile);
            } else if interval.ticks() > 0 {
                totals.pieces().add_known((part, "unknown"), Blame::Unknown, interval.ticks(), 1, false);
            }
        }
        explained.sort_by_key(|pair| pair.interval.to);
        in_interrupts.sort_by_key(|pair| pair.interval.to);
        Causes { pairs: explained, in_interrupts, walking, meanwhile: Vec::new(), totals }
    }

    pub(super) fn add(&mut self, history: &History, slice: Slice, by: By) {
        let begin = slice.interval.from;
        let is_before = |interval: Interval| !slice.is_earliest() && interval.to <= begin;
        let pairs = self.pairs.split_off(self.pairs.partition_point(|pair| is_before(pair.interval)));
        let first = self.in_interrupts.partition_point(|pair| is_before(pair.interval));
        self.meanwhile.extend(self.in_interrupts.drain(first..));
        let start = |pair: &Explained| {
            let Explained { part, actor, interval } = *pair;
            (Origin { place: part, part, actor: Some(actor) }, actor, interval)
        };
        let add = |sum: &mut Part, walks: Many, piece: &Piece, goes_on: bool| {
            let Many { part, is_own, count } = walks;
            let cause = match piece.what {
                What::Interrupt(place) => by_kind(history, place),
                What::Running if !is_own => "another running",
                What::WaitingFor(Source::Interrupt(place)) => {
                    let cpu = history.interrupts[place as usize].cpu;
                    let Some(source) = Blame::of(history, piece, false) else { return };
                    let (interval, otherwise) = (piece.interval, ("waiting for an interrupt", source));
                    let meanwhile = Meanwhile { part, count, interval, cpu, otherwise, goes_on: false };
                    sum.meanwhile.extend(meanwhile.add(history, begin, &mut sum.pieces));
                    return;
                }
                _ => piece.what.name(),
            };
            // The actor's own running is also a row, with its name as culprit.
            sum.pieces.add(history, cause, Many { is_own: false, ..walks }, piece, goes_on);
        };
        let add_one = |sum: &mut Part, of: Origin, piece: &Piece, goes_on: bool| {
            add(sum, Many { part: of.part, is_own: of.actor == Some(piece.actor), count: 1 }, piece, goes_on);
        };
        let earlier = |meanwhile: Meanwhile| meanwhile.add(history, begin, self.totals.pieces());
        self.meanwhile = std::mem::take(&mut self.meanwhile).into_iter().filter_map(earlier).collect();
        let new = || Part { pieces: Pieces::new(by), meanwhile: Vec::new() };
        let parts = match &mut self.walking {
            Walks::Each(walking) => walking.add_slice(history, slice, &pairs, start, new, add_one),
            Walks::Joint(joint) => joint.add_slice(history, slice, &pairs, start, new, add).0,
        };
        for mut part in parts {
            self.totals.pieces().merge(history, part.pieces);
            self.meanwhile.append(&mut part.meanwhile);
        }
        self.totals.add_slice(history, by, slice.interval);
    }

    /// The causes of each part, the largest first.
    pub(super) fn finish(self, history: &History, by: By) -> BTreeMap<u32, Vec<(Key, Sum)>> {
        self.totals.finish(history, by)
    }
}

impl Meanwhile {
    /// Adds what the CPU did from `begin` on. Returns the part before `begin`.
    fn add(self, history: &History, begin: i64, pieces: &mut Pieces) -> Option<Meanwhile> {
        let Meanwhile { part, count, interval, cpu, otherwise: (word, source), goes_on } = self;
        if interval.from >= interval.to {
            return None;
        }
        let here = Interval { from: interval.from.max(begin), to: interval.to };
        if here.from >= here.to {
            return Some(self);
        }
        let interrupts = history.innermost.of(cpu.into());
        for (during, inside) in interrupts.partition(here) {
            // If it continues after this slice, it is counted in the later slice.
            let goes_on = goes_on && during.to == here.to && {
                let later = interrupts.at(here.to).map(|(later, place)| (later.from < here.to, place));
                match (inside, later) {
                    (None, None) => true,
                    (Some(place), Some((is_longer, of_later))) => is_longer && place == of_later,
                    _ => false,
                }
            };
            let ticks = during.ticks();
            match inside {
                Some(place) => {
                    let interrupt = &history.interrupts[*place as usize];
                    let blame = Blame::Interrupt(interrupt.kind, interrupt.number, interrupt.name);
                    pieces.add_known((part, by_kind(history, *place)), blame, ticks, count, goes_on);
                }
                None => pieces.add_known((part, word), source, ticks, count, goes_on),
            }
        }
        let rest = Interval { from: interval.from, to: here.from };
        (rest.from < rest.to).then_some(Meanwhile { interval: rest, goes_on: true, ..self })
    }
}

/// A pair without a thread or LWP, if its CPU is known: from an interrupt of an idle CPU to an event in that interrupt
/// or its softirqs.
fn in_interrupts(part: u32, pair: &Pair) -> Option<Meanwhile> {
    let cpu =
        pair.from_cpu.filter(|_| pair.is_caused && pair.actor.is_none() && pair.interval.ticks() > 0)?;
    let otherwise = ("unknown", Blame::Unknown);
    Some(Meanwhile { part, count: 1, interval: pair.interval, cpu, otherwise, goes_on: false })
}

fn by_kind(history: &History, place: u32) -> &'static str {
    let interrupt = &history.interrupts[place as usize];
    if wait_context(history, interrupt) == Context::Softirq { "softirq" } else { "interrupt" }
}
