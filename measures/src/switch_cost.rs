//! `--switch-cost`: an upper bound of the time of a switch, from the events before and after it.

use std::{collections::HashSet, io};

use rayon::prelude::*;
use sigmund_model::{LwpState, ThreadState};

use crate::{
    Answer, Column, Distribution, EventAt, Group, History, Interval, Level, Measure, Needs, Request,
    Searches, Series, Spill, Track,
    carried::Carried,
    gaps::Gaps,
    growing::{Growing, Run},
    map::Map,
    parallel,
    sliced::{Computed, Slice, Sliced},
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
    needs: Needs { turns: true, culprits: false, ..Needs::STATES },
    computed: Computed::Sliced(start),
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
    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let level = self.request.level(history);
        let carried = Carried::new(history, &self.request);
        let is_selected =
            |event: &EventAt| event.lwp().is_none_or(|lwp| lwp == 0 || carried.at(lwp, event.tick()));
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
        let parts = self.counted(history, pairs);
        self.first.extend(first.into_iter().filter_map(|(place, event)| Some((place, event?))));
        self.unknown.extend(unknown(history, level, slice));
        let until = self.first.values().map(|event| event.tick()).max().unwrap_or(i64::MIN);
        self.unknown.retain(|(_, interval)| interval.from < until);
        let open: HashSet<u64> = self.first.values().filter_map(|event| event.thread()).collect();
        let is_open = |thread| open.contains(&thread);
        let runs = |group: &Group, pairs| runs(history, group, pairs);
        self.pairs.add_slice((history, slice), parts, Kinds::merge, is_open, runs);
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
        let mut answer = pairs.finish(columns, |group, pairs| runs(history, group, pairs));
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
    fn counted(&mut self, history: &History, pairs: Vec<Pair>) -> Vec<Vec<(Group, Kinds<&'static str>)>> {
        let (level, by) = (self.request.level(history), self.request.by(history));
        let (gaps, later) = (Gaps::new(&history.gaps), std::mem::take(&mut self.unknown));
        // LWPs are looked up in the order of time, and threads in that of their numbers.
        let stay = |(searches, stay): &mut (Searches<'_>, Vec<Pair>), pair: &Pair| {
            if level == Level::Lwps || pair.event.lwp().is_some_and(|lwp| stays_on_cpu(searches, lwp, pair)) {
                stay.push(*pair);
            }
        };
        let parts = parallel::fold(&pairs, || (Searches::new(history), Vec::new()), stay);
        let mut pairs: Vec<Pair> = parts.into_iter().flat_map(|(_, pairs)| pairs).collect();
        pairs.par_sort_unstable_by_key(|pair| pair.comes);
        let threads: Vec<&[Pair]> = pairs.chunk_by(|a, b| a.comes == b.comes).collect();
        let count = |(tally, uncounted): &mut (Tally<&'static str>, u64), pairs: &&[Pair]| {
            for pair in *pairs {
                let (between, comes) = (pair.between(), pair.comes);
                let lwp = pair.event.lwp().filter(|_| level == Level::Threads);
                if !pair.is_known(history, level, &later) || gaps.touch(pair.event.cpu(), lwp, between) {
                    *uncounted += 1;
                    continue;
                }
                let from = if level == Level::Lwps && pair.left == 0 { "idle" } else { "other" };
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

impl Pair {
    fn between(&self) -> Interval {
        Interval::new(self.before.tick(), self.event.tick())
    }

    /// Whether both threads are in known states. `later` has the unknown states in later slices.
    fn is_known(&self, history: &History, level: Level, later: &[(u64, Interval)]) -> bool {
        let between = self.between();
        [self.left, self.comes].into_iter().all(|who| {
            let is_known = match level {
                Level::Lwps => {
                    is_known(history.lwps.of(who), between, |stay| stay.state == LwpState::Unknown)
                }
                Level::Threads => {
                    is_known(history.threads.of(who), between, |stay| stay.state == ThreadState::Unknown)
                }
            };
            let is_unknown_later = |(of, at): &(u64, Interval)| *of == who && at.overlap(between) > 0;
            is_known && !(self.is_over && later.iter().any(is_unknown_later))
        })
    }
}

/// When user threads, or LWPs, were in an unknown state.
fn unknown(history: &History, level: Level, slice: Slice) -> Vec<(u64, Interval)> {
    fn of<T>(
        series: &Series<T>,
        slice: Slice,
        is_unknown: impl Fn(&T) -> bool + Copy,
    ) -> Vec<(u64, Interval)> {
        let of_key = |(key, track): (u64, Track<'_, T>)| {
            let within = track.within(slice.interval);
            let unknown = within.filter(move |(_, stay)| is_unknown(stay));
            unknown.map(move |(part, _)| (key, part)).collect::<Vec<_>>()
        };
        series.iter().flat_map(of_key).collect()
    }
    match level {
        Level::Lwps => of(&history.lwps, slice, |stay| stay.state == LwpState::Unknown),
        Level::Threads => of(&history.threads, slice, |stay| stay.state == ThreadState::Unknown),
    }
}

fn runs<'h>(history: &'h History, group: &Group, pairs: Kinds<&'static str>) -> Vec<Run<'h>> {
    tally::runs(history, group, pairs, |from| from)
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
