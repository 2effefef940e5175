//! `--switch-cost`: an upper bound of the time of a switch, from the events before and after it.

use std::collections::HashSet;

use crate::map::Map;

use sigmund_model::{LwpState, ThreadState};

use crate::{
    Answer, Column, Distribution, EventAt, Group, History, Interval, Level, Measure, Needs, Request, Series,
    Track,
    carried::Carried,
    gaps::Gaps,
    growing::{Growing, Run},
    sliced::{Computed, Slice, Sliced},
    tally::{self, Kinds},
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

impl Sliced for SwitchCost {
    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let (level, gaps) = (self.request.level(history), Gaps::new(&history.gaps));
        let carried = Carried::new(history, &self.request);
        let is_selected =
            |event: &EventAt| event.lwp().is_none_or(|lwp| lwp == 0 || carried.at(lwp, event.tick()));
        // The last event of each CPU or LWP; `None` if it is unknown what ran there.
        let mut last: Map<u32, Option<EventAt>> = Map::default();
        let mut first = Vec::new();
        for event in history.events.iter().filter(|event| slice.interval.contains(event.tick())) {
            let Some((place, comes)) = who(level, *event) else { continue };
            match last.insert(place, comes.map(|_| *event)) {
                Some(Some(before)) if is_selected(event) => {
                    self.add_pair(history, level, (&gaps, &[]), before, *event);
                }
                Some(_) => {}
                None => first.push((place, comes.map(|_| *event).filter(&is_selected))),
            }
        }
        let later = std::mem::take(&mut self.unknown);
        for (place, before) in &last {
            if let (Some(event), Some(before)) = (self.first.remove(place), before) {
                self.add_pair(history, level, (&gaps, &later), *before, event);
            }
        }
        self.unknown = later;
        self.first.extend(first.into_iter().filter_map(|(place, event)| Some((place, event?))));
        self.unknown.extend(unknown(history, level, slice));
        let until = self.first.values().map(|event| event.tick()).max().unwrap_or(i64::MIN);
        self.unknown.retain(|(_, interval)| interval.from < until);
        let open: HashSet<u64> = self.first.values().filter_map(|event| event.thread()).collect();
        let is_open = |thread| open.contains(&thread);
        self.pairs.settle(history, slice, is_open, |group, pairs| runs(history, group, pairs));
        Ok(())
    }

    fn looks_back(&self) -> bool {
        !self.first.is_empty()
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
    /// Adds two successive events of a CPU or LWP. `unknown` has the unknown states in later slices.
    fn add_pair(
        &mut self,
        history: &History,
        level: Level,
        (gaps, unknown): (&Gaps, &[(u64, Interval)]),
        before: EventAt,
        event: EventAt,
    ) {
        let of = |event| who(level, event).and_then(|(_, who)| who);
        let (Some(left), Some(comes)) = (of(before), of(event)) else { return };
        let request = &self.request;
        let is_counted = left != comes
            && request.window.contains(event.tick())
            && request.has_place(event.lwp(), event.cpu());
        if !is_counted {
            return;
        }
        let between = Interval::new(before.tick(), event.tick());
        let is_selected = match (level, event.lwp()) {
            (Level::Lwps, lwp) => lwp != Some(0),
            (Level::Threads, Some(lwp)) => request.has_thread(comes) && stays_on_cpu(history, lwp, between),
            (Level::Threads, None) => false,
        };
        if !is_selected {
            return;
        }
        let lwp = event.lwp().filter(|_| level == Level::Threads);
        let are_known = [left, comes].into_iter().all(|who| {
            let is_known = match level {
                Level::Lwps => {
                    is_known(history.lwps.of(who), between, |stay| stay.state == LwpState::Unknown)
                }
                Level::Threads => {
                    is_known(history.threads.of(who), between, |stay| stay.state == ThreadState::Unknown)
                }
            };
            is_known && !unknown.iter().any(|(of, at)| *of == who && at.overlap(between) > 0)
        });
        if !are_known || gaps.touch(event.cpu(), lwp, between) {
            self.uncounted += 1;
            return;
        }
        let from = if level == Level::Lwps && left == 0 { "idle" } else { "other" };
        let by = self.request.by(history);
        let group = match level {
            Level::Lwps => Group::of_lwp(history, by, comes as u32),
            Level::Threads => Group::of_thread(history, by, comes),
        };
        self.pairs.of(group).of(from).push(between.ticks());
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
fn stays_on_cpu(history: &History, lwp: u32, between: Interval) -> bool {
    let stay = history.lwps.of(lwp.into()).at(between.from);
    stay.is_some_and(|(interval, stay)| stay.state == LwpState::Running && between.to <= interval.to)
}
