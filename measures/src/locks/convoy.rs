//! What the holders of a lock did while others waited for it.

use sigmund_model::{LwpState, ThreadState, WaitKind};

use crate::{
    By, Culprit, History, Interval, Searches, Word,
    culprit::{OnCpu, each_on_cpu},
    groups::Owner,
    locks::holding::{Class, Does, each_holder},
    map::Map,
    near,
};

/// Why a holder was not active.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Reason {
    /// Its LWP was runnable, and this culprit had the CPU.
    Cpu(Culprit),
    /// It was ready. The LWPs of its process carried others, or no thread.
    Lwps,
    /// It slept in a system call.
    Call(Word),
    /// It was blocked, waiting for something else.
    Waits(WaitKind, i64),
    /// Not known.
    Unknown,
}

/// A reason whose culprit is not grouped yet. Many of these can become one [`Reason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Raw {
    Cpu(OnCpu),
    Lwps,
    Call(Word),
    Waits(WaitKind, i64),
    Unknown,
}

/// Ticks by what the holder did. The three do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holders {
    pub(super) active: i64,
    pub(super) off: i64,
    pub(super) unknown: i64,
}

impl Holders {
    pub(super) fn add(&mut self, other: Holders) {
        self.active += other.active;
        self.off += other.off;
        self.unknown += other.unknown;
    }

    pub(super) fn total(self) -> i64 {
        self.active + self.off + self.unknown
    }
}

/// Disjoint intervals, sorted by time, and for each the ticks of all intervals before it.
#[derive(Debug, Default)]
struct Stretches {
    at: Vec<Interval>,
    before: Vec<i64>,
    total: i64,
}

impl Stretches {
    fn push(&mut self, interval: Interval) {
        match self.at.last_mut() {
            Some(last) if last.to == interval.from => last.to = interval.to,
            _ => {
                self.at.push(interval);
                self.before.push(self.total);
            }
        }
        self.total += interval.ticks();
    }

    /// The ticks before an instant.
    fn until(&self, tick: i64, hint: &mut usize) -> i64 {
        *hint = near(&self.at, |stretch| stretch.from < tick, *hint);
        let Some(place) = hint.checked_sub(1) else { return 0 };
        let Interval { from, to } = self.at[place];
        self.before[place] + to.min(tick) - from
    }

    /// The ticks in these intervals, which have to be sorted.
    fn within(&self, intervals: &[Interval]) -> i64 {
        let mut hint = 0;
        let of = |interval: &Interval| {
            let before = self.until(interval.from, &mut hint);
            self.until(interval.to, &mut hint) - before
        };
        intervals.iter().map(of).sum()
    }
}

/// What the holders of one lock did, in the time in which somebody waited for it.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    active: Stretches,
    off: Stretches,
    unknown: Stretches,
    /// The states of holders that were not active, and the reasons.
    reasons: Map<(&'static str, Raw), i64>,
    /// When which holders waited for an LWP.
    pub(super) ready: Vec<Ready>,
}

/// A stretch in which a holder waited for an LWP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) interval: Interval,
    pub(super) thread: u64,
    pub(super) state: &'static str,
}

impl Timeline {
    /// `holds` are the holds of a lock in the order of acquisition. `waited` is the time in which somebody waited for
    /// it: sorted and disjoint.
    pub(super) fn new(
        searches: &mut Searches<'_>,
        of_lwps: bool,
        holds: Vec<(Interval, Owner)>,
        waited: &[Interval],
    ) -> Timeline {
        let mut timeline = Timeline::default();
        let mut wait = 0;
        for Does { interval, class, holder } in each_holder(searches, holds, waited) {
            wait = near(waited, |wait| wait.to <= interval.from, wait);
            for both in waited[wait..].iter().take_while(|wait| wait.from < interval.to) {
                let both = Interval::new(both.from.max(interval.from), both.to.min(interval.to));
                match class {
                    Class::Active => timeline.active.push(both),
                    Class::Unknown => timeline.unknown.push(both),
                    Class::Off => {
                        timeline.off.push(both);
                        timeline.add_reasons(searches, of_lwps, holder, both);
                    }
                }
            }
        }
        timeline
    }

    /// The ticks of sorted waits, by what the holder did. For the rest of the waits, no holder is known.
    pub(super) fn within(&self, waits: &[Interval]) -> Holders {
        Holders {
            active: self.active.within(waits),
            off: self.off.within(waits),
            unknown: self.unknown.within(waits),
        }
    }

    /// The states of holders that were not active, and the reasons, with grouped culprits.
    pub(super) fn reasons(&self, history: &History, by: By) -> Map<(&'static str, Reason), i64> {
        let mut reasons = Map::default();
        for ((state, raw), ticks) in &self.reasons {
            let reason = match *raw {
                Raw::Cpu(on_cpu) => Reason::Cpu(on_cpu.culprit(history, by)),
                Raw::Lwps => Reason::Lwps,
                Raw::Call(name) => Reason::Call(name),
                Raw::Waits(kind, object) => Reason::Waits(kind, object),
                Raw::Unknown => Reason::Unknown,
            };
            *reasons.entry((*state, reason)).or_insert(0) += ticks;
        }
        reasons
    }

    /// Adds why a holder was not active.
    fn add_reasons(&mut self, searches: &mut Searches<'_>, of_lwps: bool, holder: Owner, interval: Interval) {
        let at = interval.from;
        let (state, reason) = match holder {
            Owner::Thread(thread) => {
                let Some((_, stay)) = searches.threads.of(thread).at(at) else { return };
                let reason = match (stay.state, stay.lwp) {
                    (ThreadState::Stalled, Some(lwp)) => {
                        for (part, of_lwp) in searches.lwps.of(lwp.into()).partition(interval) {
                            let cpu = of_lwp.and_then(|stay| stay.cpu);
                            self.add_shares(searches, of_lwps, stay.state.name(), cpu, part);
                        }
                        return;
                    }
                    (ThreadState::Ready | ThreadState::New, _) => {
                        self.ready.push(Ready { interval, thread, state: stay.state.name() });
                        Raw::Lwps
                    }
                    (ThreadState::InKernel, Some(lwp)) => {
                        return self.add_calls(searches, stay.state.name(), lwp, interval);
                    }
                    (ThreadState::Blocked, _) => match stay.waits_for {
                        // A sleep or park waits for no object.
                        Some(kind @ (WaitKind::Sleep | WaitKind::Park)) => Raw::Waits(kind, 0),
                        Some(kind) => Raw::Waits(kind, stay.object),
                        None => Raw::Unknown,
                    },
                    _ => Raw::Unknown,
                };
                (stay.state.name(), reason)
            }
            Owner::Lwp(lwp) => {
                let Some((_, stay)) = searches.lwps.of(lwp.into()).at(at) else { return };
                let reason = match stay.state {
                    LwpState::Runnable => {
                        return self.add_shares(searches, of_lwps, stay.state.name(), stay.cpu, interval);
                    }
                    LwpState::Sleeping | LwpState::DiskSleep => {
                        return self.add_calls(searches, stay.state.name(), lwp, interval);
                    }
                    _ => Raw::Unknown,
                };
                (stay.state.name(), reason)
            }
        };
        *self.reasons.entry((state, reason)).or_insert(0) += interval.ticks();
    }

    /// Adds the system calls that an LWP was in.
    fn add_calls(&mut self, searches: &mut Searches<'_>, state: &'static str, lwp: u32, interval: Interval) {
        let syscalls = &searches.history.syscalls;
        for (part, place) in searches.calls.of(lwp.into()).partition(interval) {
            let call = place.and_then(|place| syscalls.get(*place as usize));
            let reason = call.map_or(Raw::Unknown, |call| Raw::Call(call.name));
            *self.reasons.entry((state, reason)).or_insert(0) += part.ticks();
        }
    }

    fn add_shares(
        &mut self,
        searches: &mut Searches<'_>,
        of_lwps: bool,
        state: &'static str,
        cpu: Option<u32>,
        interval: Interval,
    ) {
        each_on_cpu(searches, of_lwps, cpu, interval, |on_cpu, ticks| {
            *self.reasons.entry((state, Raw::Cpu(on_cpu))).or_insert(0) += ticks;
        });
    }
}

/// Adds an interval to a sorted and disjoint union. It must not begin before the last interval of the union.
pub(super) fn unite(union: &mut Vec<Interval>, next: Interval) {
    match union.last_mut() {
        Some(last) if next.from <= last.to => last.to = last.to.max(next.to),
        _ => union.push(next),
    }
}
