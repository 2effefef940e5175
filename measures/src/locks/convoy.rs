//! What the holder of a lock did while others waited for it.

use std::collections::BTreeSet;

use crate::map::Map;

use sigmund_model::{LwpState, ThreadState, WaitKind};

use crate::{By, Culprit, History, Interval, Word, groups::Owner, who_had_cpu};

/// What a holder did, as far as those who wait care. If several hold a lock (readers), the first of these counts: a lock
/// is not in a convoy while one of its holders runs, or may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Active,
    Unknown,
    Off,
}

/// Why a holder was not active.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Reason {
    /// Its LWP was runnable, and somebody else had the CPU.
    Cpu(Culprit),
    /// It slept in a system call.
    Call(Word),
    /// It was blocked for something else.
    Waits(WaitKind, i64),
    /// Not known.
    Unknown,
}

/// Ticks by what the holder did: they are disjoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holders {
    pub(super) active: i64,
    pub(super) off: i64,
    pub(super) unknown: i64,
}

impl Holders {
    pub(super) fn total(self) -> i64 {
        self.active + self.off + self.unknown
    }

    fn plus(self, class: Class, ticks: i64) -> Holders {
        match class {
            Class::Active => Holders { active: self.active + ticks, ..self },
            Class::Unknown => Holders { unknown: self.unknown + ticks, ..self },
            Class::Off => Holders { off: self.off + ticks, ..self },
        }
    }
}

/// A stretch in which one holder did one thing.
#[derive(Clone, Copy, Debug)]
struct Piece {
    interval: Interval,
    class: Class,
    holder: Owner,
}

/// What the holders of one lock did, while somebody waited for it.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// Disjoint, sorted by time, each with the sums of those before it.
    parts: Vec<(Interval, Class, Holders)>,
    /// What holders that were not active did, and why.
    pub(super) reasons: Map<(&'static str, Reason), i64>,
}

impl Timeline {
    /// Of the holds of a lock, and when somebody waited for it: sorted and disjoint.
    pub(super) fn new(
        history: &History,
        by: By,
        holds: &[(Interval, Owner)],
        waited: &[Interval],
    ) -> Timeline {
        let mut pieces = Vec::new();
        for (hold, holder) in holds {
            let first = waited.partition_point(|wait| wait.to <= hold.from);
            for wait in waited[first..].iter().take_while(|wait| wait.from < hold.to) {
                let both = Interval::new(wait.from.max(hold.from), wait.to.min(hold.to));
                add_pieces(&mut pieces, history, *holder, both);
            }
        }
        let mut timeline = Timeline::default();
        let mut sums = Holders::default();
        for (interval, place) in decisive(&pieces) {
            let Piece { class, holder, .. } = pieces[place];
            timeline.parts.push((interval, class, sums));
            sums = sums.plus(class, interval.ticks());
            if class == Class::Off {
                timeline.add_reasons(history, by, holder, interval);
            }
        }
        timeline
    }

    /// Ticks in which somebody waited, by what the holder did. The rest of the waits had no holder that is known.
    pub(super) fn within(&self, waits: &[Interval]) -> Holders {
        let mut sums = Holders::default();
        for wait in waits {
            let (before, after) = (self.until(wait.from), self.until(wait.to));
            sums.active += after.active - before.active;
            sums.off += after.off - before.off;
            sums.unknown += after.unknown - before.unknown;
        }
        sums
    }

    /// The sums of all parts before a tick.
    fn until(&self, tick: i64) -> Holders {
        let next = self.parts.partition_point(|(interval, ..)| interval.from < tick);
        let Some((interval, class, before)) = next.checked_sub(1).map(|place| self.parts[place]) else {
            return Holders::default();
        };
        before.plus(class, Interval::new(interval.from, interval.to.min(tick)).ticks())
    }

    /// Why a holder was not active.
    fn add_reasons(&mut self, history: &History, by: By, holder: Owner, interval: Interval) {
        let at = interval.from;
        let (state, reason) = match holder {
            Owner::Thread(thread) => {
                let Some((_, stay)) = history.threads.of(thread).at(at) else { return };
                let reason = match (stay.state, stay.lwp) {
                    (ThreadState::Stalled, Some(lwp)) => {
                        let cpu = history.lwps.of(lwp.into()).at(at).and_then(|(_, stay)| stay.cpu);
                        return self.add_shares(history, by, stay.state.name(), cpu, interval);
                    }
                    (ThreadState::InKernel, Some(lwp)) => in_call(history, lwp, at),
                    (ThreadState::Blocked, _) => {
                        stay.waits_for.map_or(Reason::Unknown, |kind| Reason::Waits(kind, stay.object))
                    }
                    _ => Reason::Unknown,
                };
                (stay.state.name(), reason)
            }
            Owner::Lwp(lwp) => {
                let Some((_, stay)) = history.lwps.of(lwp.into()).at(at) else { return };
                let reason = match stay.state {
                    LwpState::Runnable => {
                        return self.add_shares(history, by, stay.state.name(), stay.cpu, interval);
                    }
                    LwpState::Sleeping | LwpState::DiskSleep => in_call(history, lwp, at),
                    _ => Reason::Unknown,
                };
                (stay.state.name(), reason)
            }
        };
        *self.reasons.entry((state, reason)).or_insert(0) += interval.ticks();
    }

    fn add_shares(
        &mut self,
        history: &History,
        by: By,
        state: &'static str,
        cpu: Option<u32>,
        interval: Interval,
    ) {
        for (culprit, ticks) in who_had_cpu(history, by, cpu, interval) {
            *self.reasons.entry((state, Reason::Cpu(culprit))).or_insert(0) += ticks;
        }
    }
}

fn in_call(history: &History, lwp: u32, tick: i64) -> Reason {
    history.call_at(lwp, tick).map_or(Reason::Unknown, |call| Reason::Call(call.name))
}

/// What a holder did in an interval; where it has no state, that is not known.
fn add_pieces(pieces: &mut Vec<Piece>, history: &History, holder: Owner, interval: Interval) {
    match holder {
        Owner::Thread(thread) => {
            for (interval, stay) in history.threads.of(thread).partition(interval) {
                let class = match stay.map(|stay| stay.state) {
                    Some(ThreadState::Active) => Class::Active,
                    None | Some(ThreadState::Unknown | ThreadState::Mounted) => Class::Unknown,
                    Some(_) => Class::Off,
                };
                pieces.push(Piece { interval, class, holder });
            }
        }
        Owner::Lwp(lwp) => {
            for (interval, stay) in history.lwps.of(lwp.into()).partition(interval) {
                let class = match stay.map(|stay| stay.state) {
                    Some(LwpState::Running) => Class::Active,
                    None | Some(LwpState::Unknown) => Class::Unknown,
                    Some(_) => Class::Off,
                };
                pieces.push(Piece { interval, class, holder });
            }
        }
    }
}

/// Disjoint intervals, each with the place of the piece that decides it: the first by class, of those the first that was
/// added.
fn decisive(pieces: &[Piece]) -> Vec<(Interval, usize)> {
    if pieces.is_sorted_by(|one, next| one.interval.to <= next.interval.from) {
        return pieces.iter().enumerate().map(|(place, piece)| (piece.interval, place)).collect();
    }
    let ends = pieces
        .iter()
        .enumerate()
        .flat_map(|(place, piece)| [(piece.interval.to, false, place), (piece.interval.from, true, place)]);
    let mut ends: Vec<(i64, bool, usize)> = ends.collect();
    ends.sort_unstable();
    let (mut decided, mut open, mut since) = (Vec::new(), BTreeSet::new(), i64::MIN);
    for (tick, begins, place) in ends {
        if let (true, Some((_, first))) = (since < tick, open.first()) {
            decided.push((Interval::new(since, tick), *first));
        }
        since = tick;
        if begins {
            open.insert((pieces[place].class, place));
        } else {
            open.remove(&(pieces[place].class, place));
        }
    }
    decided
}

/// The union of intervals: sorted and disjoint.
pub(super) fn union(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable();
    intervals.dedup_by(|next, before| {
        let touch = next.from <= before.to;
        if touch {
            before.to = before.to.max(next.to);
        }
        touch
    });
    intervals
}
