//! `--switch-cost`: an upper bound of the time of a switch, from the events before and after it.

use std::{collections::HashSet, io};

use rayon::prelude::*;
use sigmund_model::LwpState;

use crate::{
    Answer, Column, Distribution, EventAt, Group, History, Interval, Level, LwpStay, Measure, Needs, Request,
    Searches, Series, Spill, ThreadStay, Track,
    carried::Carried,
    gaps::Gaps,
    growing::{Growing, Runs},
    map::Map,
    parallel,
    sliced::{Slice, Sliced},
    tally::{self, Kinds, Tally},
};

/// An upper bound of the time that a switch takes.
pub(crate) const SWITCH_COST: Measure = Measure {
    name: "switch-cost",
    question: "How much time does a switch from one thread to another take, at most?",
    heading: crate::measure::headings::SCHEDULING,
    subject: crate::measure::Subject::None,
    lists_cases: false,
    is_of_one_level: true,
    definition: include_str!("definitions/switch-cost.md"),
    needs: Needs { turns: true, only_lives: true, before_lives: true, ..Needs::ONLY_STATES },
    computed: start,
};

/// The pairs of the slices so far.
struct SwitchCost {
    request: Request,
    /// By the kind of the thread that left.
    pairs: Growing<Kinds<&'static str>>,
    uncounted: u64,
    /// The first event of each CPU or LWP in later slices.
    first: Map<u32, EventAt>,
    /// When a user thread or LWP was in an unknown state between the slice and such an event.
    unknown: Vec<(u64, Interval)>,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(SwitchCost {
        request: request.clone(),
        pairs: Growing::new(request),
        uncounted: 0,
        first: Map::default(),
        unknown: Vec::new(),
    })
}

/// Two successive events of a CPU or LWP, of different threads.
#[derive(Clone, Copy)]
struct Pair {
    left: u64,
    comes: u64,
    before: EventAt,
    event: EventAt,
    /// Whether the later event is in a later slice.
    is_over: bool,
}

impl Sliced for SwitchCost {
    fn needs(&self) -> Option<Needs> {
        // LWPs count while they carry the selected threads.
        let only_unknown = self.request.threads.is_none() || self.request.is_of_own_threads();
        Some(Needs { only_unknown, ..SWITCH_COST.needs })
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let level = self.request.level(history);
        let carried = Carried::new(history, &self.request);
        let is_selected = |event: &EventAt| match level {
            Level::Lwps => event.lwp().is_none_or(|lwp| lwp == 0 || carried.at(lwp, event.tick())),
            Level::Threads => event.thread().is_some_and(|comes| self.request.has_thread(comes)),
        };
        // The last event of each CPU or LWP; `None` if it is unknown what ran there.
        let mut last: Map<u32, Option<EventAt>> = Map::default();
        let (mut first, mut pairs) = (Vec::new(), Vec::new());
        for event in history.events.iter().filter(|event| slice.interval.contains(event.tick())) {
            let Some((place, comes)) = who(level, *event) else { continue };
            match last.insert(place, comes.map(|_| *event)) {
                Some(Some(before)) if is_selected(event) => {
                    pairs.extend(self.pair(level, before, *event, false));
                }
                Some(_) => {}
                None => first.push((place, comes.map(|_| *event).filter(&is_selected))),
            }
        }
        for (place, before) in &last {
            if let (Some(event), Some(before)) = (self.first.remove(place), before) {
                pairs.extend(self.pair(level, *before, event, true));
            }
        }
        let unknown = unknown(history, level);
        let parts = self.counted(history, pairs, &unknown);
        self.first.extend(first.into_iter().filter_map(|(place, event)| Some((place, event?))));
        let in_slice = |(who, at): (u64, Interval)| Some((who, at.clipped(slice.interval)?));
        self.unknown.extend(unknown.into_iter().filter_map(in_slice));
        let until = self.first.values().map(|event| event.tick()).max().unwrap_or(i64::MIN);
        self.unknown.retain(|(_, interval)| interval.from < until);
        let open: HashSet<u64> = self.first.values().filter_map(|event| event.thread()).collect();
        let is_open = |thread| open.contains(&thread);
        self.pairs.add_slice((history, slice), parts, Kinds::merge, is_open, |group, pairs, out| {
            runs(history, group, pairs, out)
        });
        Ok(())
    }

    fn looks_back(&self) -> bool {
        !self.first.is_empty()
    }

    fn spill(&mut self, to: &Spill) -> io::Result<()> {
        self.pairs.spill(to)
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        let SwitchCost { request, pairs, uncounted, .. } = *self;
        let mut columns = Group::columns(request.by(history), request.level(history));
        columns.push(Column::text("from", "What left: idle (the idle task) or other."));
        columns.extend(Distribution::columns());
        let mut answer = pairs.finish(columns, |group, pairs, out| runs(history, group, pairs, out));
        if uncounted > 0 {
            answer.notes.push(format!("{uncounted} switches are not counted: events are missing in them."));
        }
        Ok(answer)
    }
}

/// The CPU of an event and the LWP on it; or its LWP and the user thread on it.
fn who(level: Level, event: EventAt) -> Option<(u32, Option<u64>)> {
    match level {
        Level::Lwps => Some((event.cpu()?, event.lwp().map(u64::from))),
        // Events in interrupts belong to no user thread.
        Level::Threads => Some((event.lwp()?, Some(event.thread()?))),
    }
}

impl SwitchCost {
    /// Two successive events of a CPU or LWP, if a selected thread came between them.
    fn pair(&self, level: Level, before: EventAt, event: EventAt, is_over: bool) -> Option<Pair> {
        let of = |event| who(level, event).and_then(|(_, who)| who);
        let (left, comes) = (of(before)?, of(event)?);
        let request = &self.request;
        let is_counted = left != comes
            && request.window.contains(event.tick())
            && request.has_place(event.lwp(), event.cpu())
            && match level {
                Level::Lwps => event.lwp() != Some(0),
                Level::Threads => request.has_thread(comes),
            };
        is_counted.then_some(Pair { left, comes, before, event, is_over })
    }

    /// Their times, of those in which nothing is unknown or missing, and whose LWP was on one CPU all the time. A thread is
    /// in one part.
    fn counted(
        &mut self,
        history: &History,
        pairs: Vec<Pair>,
        unknown: &[(u64, Interval)],
    ) -> Vec<Vec<(Group, Kinds<&'static str>)>> {
        let (level, by) = (self.request.level(history), self.request.by(history));
        let (gaps, later) = (Gaps::new(&history.gaps), std::mem::take(&mut self.unknown));
        // LWPs are looked up in the order of time, and threads in that of their numbers.
        let stay = |(searches, stay): &mut (Searches<'_>, Vec<Switch>), pair: &Pair| {
            if level == Level::Lwps || pair.event.lwp().is_some_and(|lwp| stays_on_cpu(searches, lwp, pair)) {
                stay.push(pair.switch(level));
            }
        };
        let parts = parallel::fold(&pairs, || (Searches::new(history), Vec::new()), stay);
        let mut switches: Vec<Switch> = parts.into_iter().flat_map(|(_, switches)| switches).collect();
        switches.par_sort_unstable_by_key(|switch| switch.comes);
        let threads: Vec<&[Switch]> = switches.chunk_by(|a, b| a.comes == b.comes).collect();
        let who: HashSet<u64> = unknown.iter().map(|(who, _)| *who).collect();
        let count = |(tally, uncounted): &mut (Tally<&'static str>, u64), switches: &&[Switch]| {
            for switch in *switches {
                let Switch { left, comes, between, cpu, lwp, .. } = *switch;
                if !switch.is_known(history, level, (&who, &later)) || gaps.touch(cpu, lwp, between) {
                    *uncounted += 1;
                    continue;
                }
                let from = if level == Level::Lwps && left == 0 { "idle" } else { "other" };
                let group = match level {
                    Level::Lwps => Group::of_lwp(history, by, comes as u32),
                    Level::Threads => Group::of_thread(history, by, comes),
                };
                tally.of(group).of(from).push(between.ticks());
            }
        };
        let parts = parallel::fold(&threads, || (Tally::new(), 0), count);
        self.uncounted += parts.iter().map(|(_, uncounted)| uncounted).sum::<u64>();
        self.unknown = later;
        parts.into_iter().map(|(tally, _)| tally.into_groups()).collect()
    }
}

/// A switch: what is needed of a [`Pair`] to count it.
#[derive(Clone, Copy)]
struct Switch {
    left: u64,
    comes: u64,
    between: Interval,
    cpu: Option<u32>,
    /// The LWP of user threads.
    lwp: Option<u32>,
    is_over: bool,
}

impl Pair {
    fn between(&self) -> Interval {
        Interval::new(self.before.tick(), self.event.tick())
    }

    fn switch(&self, level: Level) -> Switch {
        let Pair { left, comes, event, is_over, .. } = *self;
        let lwp = event.lwp().filter(|_| level == Level::Threads);
        Switch { left, comes, between: self.between(), cpu: event.cpu(), lwp, is_over }
    }
}

impl Switch {
    /// Whether both threads are in known states. `who` was in an unknown state at some time: most traces have few of these.
    /// `later` has the unknown states in later slices.
    fn is_known(
        &self,
        history: &History,
        level: Level,
        (who, later): (&HashSet<u64>, &[(u64, Interval)]),
    ) -> bool {
        let between = self.between;
        [self.left, self.comes].into_iter().all(|one| {
            let is_known = !who.contains(&one)
                || match level {
                    Level::Lwps => is_known(history.lwps.of(one), between, LwpStay::is_unknown),
                    Level::Threads => is_known(history.threads.of(one), between, ThreadStay::is_unknown),
                };
            let is_unknown_later = |(of, at): &(u64, Interval)| *of == one && at.overlap(between) > 0;
            is_known && !(self.is_over && later.iter().any(is_unknown_later))
        })
    }
}

/// When user threads, or LWPs, were in an unknown state.
fn unknown(history: &History, level: Level) -> Vec<(u64, Interval)> {
    fn of<T: Sync>(series: &Series<T>, is_unknown: impl Fn(&T) -> bool + Sync) -> Vec<(u64, Interval)> {
        let tracks: Vec<(u64, Track<'_, T>)> = series.iter().collect();
        let add = |unknown: &mut Vec<_>, (key, track): &(u64, Track<'_, T>)| {
            let stays = track.iter().filter(|(_, stay)| is_unknown(stay));
            unknown.extend(stays.map(|(interval, _)| (*key, interval)));
        };
        parallel::fold(&tracks, Vec::new, add).concat()
    }
    match level {
        Level::Lwps => of(&history.lwps, LwpStay::is_unknown),
        Level::Threads => of(&history.threads, ThreadStay::is_unknown),
    }
}

fn runs<'h>(history: &'h History, group: &Group, pairs: Kinds<&'static str>, out: &mut Runs<'_, 'h>) {
    tally::runs(history, group, pairs, |from| from, out);
}

/// Whether no part of an interval is unknown.
fn is_known<T>(track: Track<'_, T>, between: Interval, is_unknown: impl Fn(&T) -> bool) -> bool {
    !track.within(between).any(|(part, stay)| part.ticks() > 0 && is_unknown(stay))
}

/// Whether an LWP was on one CPU all the time.
fn stays_on_cpu(searches: &mut Searches<'_>, lwp: u32, pair: &Pair) -> bool {
    let between = pair.between();
    let stay = searches.lwps.of(lwp.into()).at(between.from);
    stay.is_some_and(|(interval, stay)| stay.state == LwpState::Running && between.to <= interval.to)
}
